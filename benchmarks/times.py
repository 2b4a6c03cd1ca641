"""The paper's time column next to ours: every method at one setting on Extended Yale B, data to labels, × KTRR.

Run it by ``SUBSPACES_DATA=folder python benchmarks/times.py [--methods ssc lrr2]`` on a machine that does nothing else,
or with ``OMP_NUM_THREADS=1`` and ``--cpu`` on one that does: CPU seconds, KTRR before and after each method.
"""

from __future__ import annotations

import argparse
import time
import warnings

import methods
from subspaces import registry

SETTINGS = {"ktrr": {"scaling": "unit", "reg": 0.1}, "klrr": {"scaling": "unit"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=registry.names("graph"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU instead of wall seconds")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    warnings.simplefilter("ignore")
    X, _ = methods.load("yaleb")

    def seconds(name: str) -> float:
        start = clock()
        registry.load(name)(38, **SETTINGS.get(name, {})).fit(X)
        return clock() - start

    for name in arguments.methods:
        pairs = [(seconds("ktrr"), seconds(name)) for _ in range(arguments.repeats)]
        floor, best = (min(column) for column in zip(*pairs, strict=True))
        paper = methods.PAPER.get(name, {}).get("yaleb")
        printed = f"paper {paper[1] / methods.PAPER['ktrr']['yaleb'][1]:.1f} ×" if paper else ""
        print(f"{name:8} {best:7.2f} s  {best / floor:6.1f} ×  {printed}  (ktrr {floor:.2f} s)", flush=True)


if __name__ == "__main__":
    main()
