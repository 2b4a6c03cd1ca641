"""The paper's time column next to ours: every method at one setting on Extended Yale B, data to labels, × KTRR.

Run it by ``SUBSPACES_DATA=folder python benchmarks/times.py [--methods ssc lrr2]`` on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import time
import warnings

import methods
from subspaces.estimators import ESTIMATORS

SETTINGS = {"ktrr": {"scaling": "unit", "reg": 0.1}, "klrr": {"scaling": "unit"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=list(ESTIMATORS))
    warnings.simplefilter("ignore")
    X, _ = methods.load("yaleb")
    floor = 0.0
    for name in ["ktrr", *[method for method in parser.parse_args().methods if method != "ktrr"]]:
        seconds = []
        for _ in range(2 if name in ("lrr1", "latlrr") else 3):
            start = time.perf_counter()
            ESTIMATORS[name](38, **SETTINGS.get(name, {})).fit(X)
            seconds.append(time.perf_counter() - start)
        floor = floor or min(seconds)
        paper = methods.PAPER.get(name, {}).get("yaleb")
        printed = f"paper {paper[1] / methods.PAPER['ktrr']['yaleb'][1]:.1f} ×" if paper else ""
        print(f"{name:8} {min(seconds):7.2f} s  {min(seconds) / floor:6.1f} ×  {printed}", flush=True)


if __name__ == "__main__":
    main()
