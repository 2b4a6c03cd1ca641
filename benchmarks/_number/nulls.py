"""Points that are one piece, of many kinds: what a count must not divide."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _automatic.sets import Set

SIZES, SHARES = [60, 120, 250, 500, 900, 1500], [0.15, 0.2, 0.25, 0.2, 0.1, 0.1]


def sheet(rng: np.random.Generator, n: int) -> np.ndarray:
    u = rng.random((n, 2))
    bent = np.column_stack([u, u[:, 0] ** 2, u[:, 0] * u[:, 1], np.sin(3 * u[:, 1])])
    return bent @ rng.normal(size=(5, 25)) + 0.02 * rng.normal(size=(n, 25))


def roll(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 20 * rng.random(n), t * np.sin(t)]) + 0.1 * rng.normal(size=(n, 3))


def s_curve(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 3 * np.pi * (rng.random(n) - 0.5)
    bent = np.column_stack([np.sin(t), 2 * rng.random(n), np.sign(t) * (np.cos(t) - 1)])
    return bent + 0.03 * rng.normal(size=(n, 3))


def gaussian(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    spread = np.exp(rng.normal(0, rng.choice([0, 0.5, 1.0]), m))
    return rng.normal(size=(n, m)) @ (rng.normal(size=(m, m)) * spread)


def subspace(rng: np.random.Generator, n: int, d: int, m: int, noise: float = 0.0) -> np.ndarray:
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, m)) + noise * rng.normal(size=(n, m))


def words(rng: np.random.Generator, n: int) -> np.ndarray:
    share = rng.dirichlet(np.full(150, 0.3))
    return np.array([rng.multinomial(size, share) for size in rng.integers(30, 200, n)], dtype=float)


def counts(rng: np.random.Generator, n: int) -> np.ndarray:
    mean = np.exp(rng.normal(0, 1.2, 200)) * np.exp(rng.normal(0, 0.4, (n, 1)))
    return rng.negative_binomial(1.5, 1.5 / (1.5 + mean)).astype(float)


def sphere(rng: np.random.Generator, n: int) -> np.ndarray:
    drawn = rng.normal(size=(n, 3))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


MAKERS = {
    **{f"uniform{m}": lambda rng, n, m=m: rng.random((n, m)) for m in (2, 3, 5, 10, 30, 100)},
    **{f"gauss{m}": lambda rng, n, m=m: gaussian(rng, n, m) for m in (2, 4, 8, 20, 60, 200)},
    **{f"round{m}": lambda rng, n, m=m: rng.normal(size=(n, m)) for m in (5, 20, 60)},
    "sheet": sheet,
    "roll": roll,
    "scurve": s_curve,
    "sphere": sphere,
    **{f"subspace{d}": lambda rng, n, d=d, m=m: subspace(rng, n, d, m) for d, m in ((2, 20), (4, 30), (8, 50))},
    **{f"noisy{d}": lambda rng, n, d=d, m=m: subspace(rng, n, d, m, 0.2) for d, m in ((3, 20), (6, 40))},
    "heavy": lambda rng, n: rng.standard_t(3, size=(n, 6)) @ rng.normal(size=(6, 6)),
    "lognormal": lambda rng, n: np.exp(0.8 * rng.normal(size=(n, 8))),
    "counts": counts,
    "words": words,
}


def draws(n_draws: int = 5) -> Iterator[Set]:
    """Every kind so often, of different sizes."""
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        for name, make in MAKERS.items():
            n = int(rng.choice(SIZES, p=SHARES))
            yield Set(f"null/{name}-{draw}", make(rng, n), np.ones((1, n), dtype=int))
