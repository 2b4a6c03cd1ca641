"""Ours beside what a user would pick instead, and beside the lower bound: accuracy, time, memory, in one table.

    SUBSPACES_DATA=folder python benchmarks/peers.py                       # everything; resumes where it stopped
    python benchmarks/peers.py --data digits hard2000 --methods ktrr umap  # a part
    python benchmarks/peers.py --marks                                     # the targets: measured, met or not
    python benchmarks/peers.py --pages                                     # docs/speed/ from what has been run

Every run is a process of its own (a fork) with its own peak memory, on one thread by default; ours and the others take
turns and repeats go round the whole list, so that what else the machine does hits all alike. Finished runs are lines of
``results/peers.jsonl``. A peer that is not installed is said to be missing and left out:

    pip install umap-learn scikit-network genieclust faiss-cpu spectral-bridges spectralcluster clustpy
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from _peers import marks, pages
from _peers.data import SMALL_FIRST, kind
from _peers.measure import Store, in_child, preload, run_cell, with_threads
from _peers.methods import METHODS

HERE = Path(__file__).resolve().parent
STORE = HERE / "results" / "peers.jsonl"
PAGES = HERE.parent / "docs" / "speed"
SIZES = {"digits": 1797, "coil20": 1440, "usps": 2000, "yaleb": 2414, "coil100": 7200, "covtype": 581_012}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(SMALL_FIRST))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3, help="seeds 0, 1, …: draws of the data and of the method")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-limit", type=int, default=600, help="CPU seconds of one run, its loading included")
    parser.add_argument("--memory-limit", type=float, default=12, help="GB of one run")
    parser.add_argument("--marks", nargs="*", help="measure the targets, all or those named")
    parser.add_argument("--again", action="store_true", help="forget the finished runs of the data and methods named")
    parser.add_argument("--pages", action="store_true", help="only write docs/speed/")
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    preload()
    limits = {"cpu_limit": arguments.cpu_limit, "memory_limit": int(arguments.memory_limit * 2**30)}
    if arguments.marks is not None:
        marks.measure(arguments.marks, PAGES / "marks.md", limits)
        return
    store = Store(STORE)
    if arguments.again:
        store.forget(lambda key: key["data"] in arguments.data and key["method"] in arguments.methods)
    if not arguments.pages:
        compare(arguments, store, limits)
    pages.write(store.rows, PAGES)


def compare(arguments: argparse.Namespace, store: Store, limits: dict[str, int]) -> None:
    methods = arguments.methods
    for method in methods:
        if METHODS[method].missing():
            print(f"{METHODS[method].title}: {METHODS[method].needs} is not installed, left out", file=sys.stderr)
    failed = {(row["key"]["data"], row["key"]["method"]) for row in store.rows if "failed" in row["result"]}
    for seed in range(arguments.repeats):
        for name in arguments.data:
            n = SIZES.get(name) or int(name.removeprefix(kind(name)) or "60000")
            for method in methods:
                if METHODS[method].missing() or not METHODS[method].suits(kind(name), n) or (name, method) in failed:
                    continue
                cell = {"data": name, "method": method, "seed": seed}
                key = {**cell, "threads": arguments.threads}
                row = store.get(key, lambda cell=cell: in_child(run_cell, cell, **limits))
                if "failed" in row:
                    failed.add((name, method))
                print(f"{name:15} {seed} {METHODS[method].title:38} {shown(row)}", flush=True)


def shown(row: dict[str, Any]) -> str:
    if "failed" in row:
        return str(row["failed"])
    score = f"{row['ac']:5.1f} %" if "ac" in row else " " * 7
    return f"{score}  {row['cpu']:7.2f} CPU s  {row['mb']:6.0f} MB"


if __name__ == "__main__":
    main()
