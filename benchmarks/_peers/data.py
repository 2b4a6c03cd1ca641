"""The data sets of the comparison, by name and draw; every method gets exactly the same array."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL = ("digits", "coil20", "usps", "yaleb", "coil100", "mnist60000", "covtype")
UNIONS = ("uos2000", "hard2000", "clean2000", "noisy2000", "close2000", "unbalanced2000", "uos10000", "hard10000")
GROWTH = ("uos1000", "uos2000", "uos10000", "uos30000", "uos100000", "uos300000", "uos1000000")
SMALL_FIRST = (
    *("digits", "uos2000", "hard2000", "coil20", "usps", "yaleb", "clean2000", "noisy2000", "close2000"),
    *("unbalanced2000", "uos1000", "uos10000", "hard10000", "coil100", "mnist60000", "uos30000", "uos100000"),
    *("hard100000", "covtype", "uos300000", "uos1000000"),
)
ABOUT = {
    "digits": "scikit-learn's digits / 16",
    "coil20": "COIL20, 32 × 32 pixels",
    "usps": "USPS, 200 of each digit",
    "yaleb": "Extended Yale B, 32 × 32 pixels / 255",
    "coil100": "COIL100, 32 × 32 pixels / 255",
    "mnist60000": "MNIST's 60,000 training images, 50 principal components (not timed), float32",
    "covtype": "Covtype, attributes to [0, 1], float32",
    "uos": "10 random subspaces of dimension 5 in R³⁰, noise 0.01, on the sphere",
    "hard": "5 random subspaces of dimension 6 in R⁹, no noise: any two intersect",
    "clean": "10 random subspaces of dimension 5 in R³⁰, no noise",
    "noisy": "the same with noise 0.1 in every coordinate",
    "close": "10 subspaces of dimension 5 in R⁵⁰, all principal angles 20°, noise 0.01",
    "unbalanced": "like uos, each subspace with 0.72 times the points of the one before (1 to 19)",
}
_WIDE = 50_000  # points from which the data are float32 for everyone


def kind(name: str) -> str:
    """Name without the number of points of a synthetic set: its recipe."""
    return name if name in ABOUT else name.rstrip("0123456789")


def load(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and classes; `seed` draws the synthetic sets and the subset of USPS."""
    X, y = _real(name, seed) if name in REAL else _union(name, seed)
    if len(X) > _WIDE:
        X = X.astype(np.float32)
    return np.ascontiguousarray(X), np.asarray(y)


def _real(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    from subspaces import datasets

    where: dict[str, Any] = {"return_X_y": True}
    if "SUBSPACES_DATA" not in os.environ and BESIDE.is_dir():
        where["data_home"] = BESIDE
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16, y
    if name == "usps":
        return datasets.load_usps(per_class=200, random_state=seed, **where)
    if name == "coil20":
        return datasets.load_coil20(**where)
    if name in ("yaleb", "coil100"):
        X, y = (datasets.load_yaleb if name == "yaleb" else datasets.load_coil100)(**where)
        return X / max(1.0, float(X.max())), y
    if name == "mnist60000":
        from sklearn.decomposition import PCA

        X, y = datasets.load_mnist(dtype=np.float32, **where)
        return PCA(50, svd_solver="covariance_eigh").fit_transform(X / 255), y
    X, y = datasets.load_covtype(dtype=np.float32, **where)
    X -= X.min(axis=0)
    return X / np.maximum(X.max(axis=0), np.finfo(np.float32).tiny), y


def _union(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from subspaces.datasets import make_subspaces

    found = re.fullmatch(r"(uos|hard|clean|noisy|close|unbalanced)(\d+)", name)
    if found is None:
        raise ValueError(f"no data set {name!r}; there are {', '.join(SMALL_FIRST)}, and the recipes with any size.")
    recipe, n = found[1], int(found[2])
    if recipe == "hard":
        return make_subspaces(5, 6, 9, n // 5, random_state=seed)
    arguments: dict[str, Any] = {"ambient": 30, "n_samples": n // 10, "noise": 0.01}
    if recipe == "clean":
        arguments["noise"] = 0.0
    elif recipe == "noisy":
        arguments["noise"] = 0.1
    elif recipe == "close":
        arguments |= {"ambient": 50, "angle": 20}
    elif recipe == "unbalanced":
        share = 0.72 ** np.arange(10)
        arguments["n_samples"] = [max(6, round(n * part)) for part in share / share.sum()]
    return make_subspaces(10, 5, random_state=seed, **arguments)
