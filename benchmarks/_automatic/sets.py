"""Data sets of every kind: those of the data folder, scikit-learn's, made ones, and any folder of ``NAME.npz``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets as public

from subspaces.datasets import make_subspaces

MOST = 2450
"""Points of a set; of more a random 2,000 are taken."""


class Set(NamedTuple):
    """Points and their reference labellings: 1, 2, ...; 0 is noise, which no score counts."""

    name: str
    X: np.ndarray
    references: np.ndarray

    @property
    def numbers(self) -> list[int]:
        """Numbers of clusters that the references have."""
        return sorted({int(y.max()) for y in self.references})

    @property
    def kind(self) -> str:
        """What sort of data it is."""
        head = self.name.split("/")[0]
        if head in ("made", "motion"):
            return head
        return "plane" if self.X.shape[1] <= 3 else "table" if self.X.shape[1] < 64 else "images, spectra, genes"

    @property
    def family(self) -> str:
        """Sets that are left out together: draws and parts of one source."""
        head, _, rest = self.name.partition("/")
        if head in ("gagolews",):
            battery, _, name = rest.partition("/")
            return name if battery == "uci" else name.split("_")[0].rstrip("0123456789") or name
        return head if head == "motion" else rest.rstrip("0123456789") if head == "made" else head.rstrip("0123456789")


def numbered(y: np.ndarray) -> np.ndarray:
    return np.unique(y, return_inverse=True)[1] + 1


def some(X: np.ndarray, y: np.ndarray, n: int, draw: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rows = np.sort(np.random.default_rng(draw).choice(len(X), n, replace=False)) if len(X) > n else slice(None)
    return X[rows], y[..., rows]


def of_each(X: np.ndarray, y: np.ndarray, per_class: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(draw)
    rows = np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)]))
    return X[rows], y[rows]


def real(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The sets of the data folder and of scikit-learn."""
    yield "digits", *public.load_digits(return_X_y=True)
    if not folder.is_dir():
        return

    def load(name: str) -> tuple[np.ndarray, np.ndarray]:
        with np.load(folder / f"{name}.npz") as arrays:
            return arrays["X"].astype(float), arrays["y"].astype(int)

    for name in ("orl", "coil20", "yaleb"):
        yield name, *load(f"{name}_32x32")
    X, y = load("coil100_32x32")
    for draw, first in enumerate((0, 60)):
        part = (y > first) & (y <= first + 25)
        yield f"coil100-{draw}", X[part], y[part]
    for name, file in (("usps", "usps_9298"), ("mnist", "mnist_train")):
        X, y = load(file)
        for draw in range(3):
            yield f"{name}{draw}", *of_each(X[:10_000], y[:10_000], 200, draw)
    yield "covtype", *some(*load("covtype"), 1500)
    with np.load(folder / "salinas_a.npz") as arrays:
        cube, labels = arrays["cube"].reshape(-1, 204).astype(float), arrays["labels"].ravel().astype(int)
    yield "salinas", *some(cube[labels > 0], labels[labels > 0], 1200)
    with np.load(folder / "hopkins155_part.npz") as arrays:
        names = sorted(name[:-2] for name in arrays.files if name.endswith("_X"))
        for name in names[::6]:
            yield f"motion/{name}", arrays[f"{name}_X"].astype(float), arrays[f"{name}_y"].astype(int)


def gagolews(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The 51 sets of M. Gagolewski's benchmark, with all their reference labellings."""
    if not folder.is_dir():
        return
    with np.load(folder / "gagolews_v1.npz") as arrays:
        for name in sorted({"/".join(key.split("/")[:2]) for key in arrays.files}):
            keys = [key for key in arrays.files if key.startswith(f"{name}/y")]
            yield f"gagolews/{name}", arrays[f"{name}/X"].astype(float), np.array([arrays[k].astype(int) for k in keys])


def made() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Families that everybody can make again: unions, counts, spectra, units, cells."""
    rng = np.random.default_rng(5)
    for i, (k, d, m, n, noise) in enumerate([(10, 4, 25, 80, 0.04), (20, 3, 20, 40, 0.03), (12, 5, 60, 60, 0.1)]):
        yield f"made/union{i}", *make_subspaces(k, d, m, n, noise=noise, random_state=i)
    yield "made/unequal", *make_subspaces(8, 3, 30, [20, 30, 40, 60, 90, 130, 200, 300], noise=0.03, random_state=9)
    X, y = public.make_blobs(700, 6, centers=5, cluster_std=1.6, random_state=4)
    nuisance = rng.normal(size=(700, 3)) * [500, 1, 0.1]
    yield "made/units", np.column_stack([X * [1, 100, 0.01, 10, 1000, 1], nuisance]), y
    y = np.repeat(np.arange(7), 110)
    topics, common = rng.dirichlet(np.full(600, 0.03), 7), rng.dirichlet(np.full(600, 0.5))
    words = [
        rng.multinomial(n, 0.45 * topics[c] + 0.55 * common) for n, c in zip(rng.integers(30, 300, 770), y, strict=True)
    ]
    yield "made/topics", np.array(words, dtype=float), y
    y = np.repeat(np.arange(8), [300, 200, 120, 80, 60, 40, 30, 20])
    fold = np.ones((8, 500))
    for c in range(8):
        fold[c, rng.choice(500, 30, replace=False)] = np.exp(rng.normal(1.1, 0.5, 30))
    mean = np.exp(rng.normal(0, 1.2, 500)) * fold[y] * np.exp(rng.normal(0, 0.5, (len(y), 1)))
    yield "made/cells", rng.negative_binomial(1.5, 1.5 / (1.5 + mean)).astype(float), y
    t, y = np.linspace(0, 1, 180), np.repeat(np.arange(6), 100)

    def peaks(width: float, heights: np.ndarray) -> np.ndarray:
        places = rng.random(len(heights))
        return sum(h * np.exp(-(((t - place) / width) ** 2)) for h, place in zip(heights, places, strict=True))

    shared = peaks(0.05, rng.random(8) + 0.3)
    pure = np.array([shared + 0.12 * peaks(0.03, rng.normal(size=4)) for _ in range(6)])
    base = 0.08 * rng.normal(size=(600, 1)) * t + 0.1 * rng.normal(size=(600, 1))
    X = pure[y] * np.exp(0.15 * rng.normal(size=(600, 1))) + base + 0.015 * rng.normal(size=(600, 180))
    yield "made/spectra", X, y


def more(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Sets of the user's own: every ``NAME.npz`` of a folder, with arrays X and y."""
    for file in sorted(folder.glob("*.npz")) if folder is not None else []:
        with np.load(file) as arrays:
            yield file.stem, arrays["X"].astype(float), arrays["y"].astype(int)


def all_sets(folder: Path, own: Path | None = None) -> Iterator[Set]:
    """Every set, none with more than MOST points."""
    for name, X, y in (*real(folder), *gagolews(folder), *made(), *more(own)):
        references = y if y.ndim == 2 else numbered(y)[None]
        if len(X) > MOST:
            X, references = some(X, references, 2000)
        yield Set(name, np.asarray(X, dtype=float), references)
