"""Sets whose number of clusters is known, in families, and data that are one piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

from _automatic.sets import Set, all_sets, numbered
from subspaces.datasets import make_subspaces

FAMILIES = {
    **dict.fromkeys(("orl", "coil", "yaleb"), "faces, objects"),
    **dict.fromkeys(("digits", "usps", "mnist"), "digits"),
    **dict.fromkeys(("salinas", "made"), "spectra, words, cells"),
    **dict.fromkeys(("covtype", "tables"), "tables"),
    **dict.fromkeys(("made/union", "made/unequal", "unions"), "subspaces"),
    "gagolews": "shapes",
    "motion": "motion",
    "groups": "Gaussian groups",
    "small": "small clusters",
}
"""By the beginning of a name; the longest counts."""


def family_of(data: Set) -> str:
    """Sets that are left out together."""
    family = FAMILIES.get(max((head for head in FAMILIES if data.name.startswith(head)), key=len, default=""), "others")
    return "tables" if family == "shapes" and data.X.shape[1] > 3 else family


def known(folder: Path, own: Path | None = None) -> Iterator[Set]:
    """Every set of which somebody knows the clusters, and parts of those with many classes."""
    yield from all_sets(folder, own)
    for name, X, y in (*_parts(folder), *_tables(folder), *_unions(), *_groups()):
        yield Set(name, X.astype(float), numbered(y)[None])


def _parts(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Some of the classes of images of faces and objects."""
    for name, first, last in (
        *(("yaleb", 0, 5), ("yaleb", 0, 10), ("yaleb", 10, 30)),
        *(("orl", 0, 15), ("coil100", 20, 30), ("coil100", 30, 60)),
    ):
        file = folder / f"{name}_32x32.npz"
        if file.exists():
            with np.load(file) as arrays:
                part = np.isin(arrays["y"], np.unique(arrays["y"])[first:last])
                yield f"{name}/{last - first}", arrays["X"][part], arrays["y"][part]


def _tables(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if (folder / "tables_v1.npz").exists():
        with np.load(folder / "tables_v1.npz") as arrays:
            for name in sorted({key.partition("/")[0] for key in arrays.files}):
                yield f"tables/{name}", *(part[:2450] for part in (arrays[f"{name}/X"], arrays[f"{name}/y"]))


def _unions() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for k in (3, 6, 12, 30, 60):
        yield f"unions/{k}", *make_subspaces(k, 3, 30, 30 if k > 20 else 60, noise=0.1, random_state=k)


def _groups() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Round Gaussian groups whose nearest centres are so many deviations apart; some groups are small."""
    equal = [((100,) * 5, 6), ((100,) * 15, 6), ((30,) * 40, 7), ((200,) * 2, 6), ((200,) * 2, 4)]
    small = [((1000, 100, 20), 8), ((990, 10), 8), ((500, 50, 5), 8), ((300, 30), 8)]
    for sizes, apart in equal + small:
        for m in (1, 2, 5, 20):
            if m > 1 or len(sizes) < 4:
                rng = np.random.default_rng(1)
                centres = rng.normal(size=(len(sizes), m))
                y = np.repeat(np.arange(len(sizes)), sizes)
                X = rng.normal(size=(len(y), m)) + (apart / pdist(centres).min() * centres)[y]
                head = "small" if (sizes, apart) in small else "groups"
                yield f"{head}/{len(sizes)} of {min(sizes)} at {apart}, m={m}", X, y


# ------------------------------------------------------------------------------------------------ one piece


def _sheet(rng: np.random.Generator, n: int) -> np.ndarray:
    u = rng.random((n, 2))
    bent = np.column_stack([u, u[:, 0] ** 2, u[:, 0] * u[:, 1], np.sin(3 * u[:, 1])])
    return bent @ rng.normal(size=(5, 25)) + 0.02 * rng.normal(size=(n, 25))


def _roll(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 20 * rng.random(n), t * np.sin(t)]) + 0.1 * rng.normal(size=(n, 3))


def _curve(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 3 * np.pi * (rng.random(n) - 0.5)
    bent = np.column_stack([np.sin(t), 2 * rng.random(n), np.sign(t) * (np.cos(t) - 1)])
    return bent + 0.03 * rng.normal(size=(n, 3))


def _helix(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 4 * np.pi * rng.random(n)
    return np.column_stack([np.cos(t), np.sin(t), t / 3]) + 0.02 * rng.normal(size=(n, 3))


def _ring(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 2 * np.pi * rng.random(n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.normal(size=(n, 2))


def _sphere(rng: np.random.Generator, n: int) -> np.ndarray:
    drawn = rng.normal(size=(n, 3))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _gaussian(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    spread = np.exp(rng.normal(0, rng.choice([0, 0.5, 1.0]), m))
    return rng.normal(size=(n, m)) @ (rng.normal(size=(m, m)) * spread)


def _subspace(rng: np.random.Generator, n: int, d: int, m: int, noise: float) -> np.ndarray:
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, m)) + noise * rng.normal(size=(n, m))


def _words(rng: np.random.Generator, n: int) -> np.ndarray:
    share = rng.dirichlet(np.full(150, 0.3))
    return np.array([rng.multinomial(size, share) for size in rng.integers(30, 200, n)], dtype=float)


def _counts(rng: np.random.Generator, n: int) -> np.ndarray:
    mean = np.exp(rng.normal(0, 1.2, 200)) * np.exp(rng.normal(0, 0.4, (n, 1)))
    return rng.negative_binomial(1.5, 1.5 / (1.5 + mean)).astype(float)


NOISE = {
    "uniform": {f"uniform{m}": lambda rng, n, m=m: rng.random((n, m)) for m in (1, 2, 3, 5, 10, 30, 100)},
    "Gaussian": {
        **{f"round{m}": lambda rng, n, m=m: rng.normal(size=(n, m)) for m in (1, 5, 20, 60)},
        **{f"gauss{m}": lambda rng, n, m=m: _gaussian(rng, n, m) for m in (2, 4, 8, 20, 60, 200)},
    },
    "long tails": {
        "heavy": lambda rng, n: rng.standard_t(3, size=(n, 6)) @ rng.normal(size=(6, 6)),
        "lognormal": lambda rng, n: np.exp(0.8 * rng.normal(size=(n, 8))),
        "exponential": lambda rng, n: rng.exponential(size=(n, 8)),
    },
    "curves": {"helix": _helix, "ring": _ring},
    "curved sheets": {"sheet": _sheet, "roll": _roll, "scurve": _curve, "sphere": _sphere},
    "one subspace": {
        f"subspace{d}-{noise:g}": lambda rng, n, d=d, m=m, noise=noise: _subspace(rng, n, d, m, noise)
        for d, m, noise in ((2, 20, 0.0), (4, 30, 0.0), (8, 50, 0.0), (3, 20, 0.2), (6, 40, 0.2), (4, 60, 0.1))
    },
    "random walks": {"walks": lambda rng, n: np.cumsum(rng.normal(size=(n, 60)), axis=1)},
    "counts": {
        "counts": _counts,
        "words": _words,
        "poisson": lambda rng, n: rng.poisson(3, size=(n, 15)).astype(float),
        "zeros": lambda rng, n: rng.poisson(2, size=(n, 20)) * (rng.random((n, 20)) < 0.4) * 1.0,
    },
    "categories": {
        "yes or no": lambda rng, n: (rng.random((n, 20)) < 0.3).astype(float),
        "one of four": lambda rng, n: np.hstack([np.eye(4)[rng.integers(0, 4, n)] for _ in range(10)]),
    },
}
"""Kinds of data that are one piece."""


def noise(n_draws: int = 5) -> Iterator[tuple[str, Set]]:
    """Every kind, each of its makers so often, with different sizes."""
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        for kind, makers in NOISE.items():
            for name, make in makers.items():
                n = int(rng.choice([60, 120, 250, 500, 900, 1500], p=[0.15, 0.2, 0.25, 0.2, 0.1, 0.1]))
                yield kind, Set(f"null/{name}-{draw}", make(rng, n), np.ones((1, n), dtype=int))
