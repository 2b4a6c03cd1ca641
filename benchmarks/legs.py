"""Share of each stage: the whole Extended Yale B run (2414 faces, kernel to labels), best of a few fits.

Run it by ``SUBSPACES_DATA=folder python benchmarks/legs.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from subspaces import KTRR, datasets

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    X = datasets.load_yaleb(**({"data_home": BESIDE} if BESIDE.is_dir() else {})).data
    for name, parameters in {
        "k-means cut": {},
        "modularity cut": {"assign_labels": "modularity"},
        "float32, k-means cut": {"dtype": np.float32},
    }.items():
        dtype = parameters.pop("dtype", np.float64)
        fits = [KTRR(38, reg=0.1, n_nonzero=5, **parameters).fit(X.astype(dtype)).timings_ for _ in range(3)]
        best = min(fits, key=lambda timings: sum(timings.values()))
        total = sum(best.values())
        stages = ", ".join(f"{stage} {seconds:.3f} s ({seconds / total:.0%})" for stage, seconds in best.items())
        print(f"{name}: {total:.3f} s in all: {stages}", flush=True)


if __name__ == "__main__":
    main()
