"""Fits whose labels must be the same on every machine, and the file that holds them.

python tests/machines/cases.py     # writes labels.npz anew: only after a change that is meant to change labels
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from subspaces import KTRR, TRR, SubspaceClustering, registry
from subspaces.spectral.partition import PARTITIONS

METHODS = registry.names(*registry.SHALLOW)
STORE = Path(__file__).parent / "labels.npz"


def subspaces() -> Any:
    """Noisy points of five subspaces."""
    rng = np.random.default_rng(7)
    bases = [np.linalg.qr(rng.standard_normal((12, 3)))[0] for _ in range(5)]
    X = np.vstack([rng.standard_normal((30, 3)) @ basis.T for basis in bases])
    return X + 0.05 * rng.standard_normal(X.shape)


def grid() -> Any:
    """Whole numbers: many copies, and many coefficients that are equal but for rounding."""
    return np.round(2 * np.random.default_rng(0).standard_normal((300, 5)))


def digits() -> Any:
    """600 handwritten digits, pixels of 17 grey levels."""
    return load_digits().data[:600]


DATA: dict[str, Callable[[], Any]] = {
    "subspaces": subspaces,
    "grid": grid,
    "digits": digits,
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
}


def small(name: str, n_clusters: int) -> Any:
    """A method, with few landmarks where it has any."""
    return registry.load(name)(n_clusters, **({} if name in registry.names("graph") else {"n_landmarks": 60}))


# of copies KSSC's optimum is not unique, and its steps end at 1e-5; EKTRR's network is trained by 500 chaotic steps
_NOT_ON_THE_GRID = ("kssc", "ektrr")

CASES: dict[str, tuple[str, Callable[[], Any]]] = {
    **{f"{name}, subspaces": ("subspaces", lambda name=name: small(name, 5)) for name in METHODS},
    **{f"{name}, grid": ("grid", lambda name=name: small(name, 6)) for name in METHODS if name not in _NOT_ON_THE_GRID},
    **{
        f"{cut}, {data}": (data, lambda cut=cut: KTRR(10, assign_labels=cut, scaling="unit"))
        for cut in PARTITIONS
        for data in ("grid", "digits")
    },
    **{f"two scales, {data}": (data, lambda: KTRR(10, solver="two_scale")) for data in ("subspaces", "grid", "digits")},
    "modularity, many, digits": ("digits", lambda: KTRR(40, assign_labels="modularity")),
    "free modularity, digits": ("digits", lambda: KTRR(None, assign_labels="modularity")),
    **{f"front door, {data}": (data, lambda: SubspaceClustering(6)) for data in DATA},
    **{f"front door, number unknown, {data}": (data, SubspaceClustering) for data in DATA},
    "affine, subspaces": ("subspaces", lambda: KTRR(5, affine=True, kernel="linear", reg=0.01)),
    "affine, grid": ("grid", lambda: TRR(6, affine=True)),
}


def labels_of(case: str, X: Any = None) -> Any:
    """Labels of a case, or of other points by its method."""
    data, make = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(DATA[data]() if X is None else X).labels_


def versions() -> str:
    """Versions of what the labels depend on besides this package."""
    from importlib.metadata import version

    names = ("numpy", "scipy", "scikit-learn", "graspologic-native")
    return ", ".join(f"{name} {version(name)}" for name in names)


if __name__ == "__main__":
    found = {case: labels_of(case).astype(np.int16) for case in CASES}
    np.savez_compressed(STORE, versions=np.array(versions()), **found)
    sys.stdout.write(f"{len(found)} cases with {versions()}\n")
