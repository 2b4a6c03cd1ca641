"""What Hypothesis draws: small points of every kind, and how often."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from method_data import METHODS, quiet

# heaps on rays are no subspaces of several dimensions: the cut of their graphs hangs on rounding
AMBIGUOUS = [METHODS[name] for name in ("ssc", "sscomp", "lsa", "sc", "sssc", "sec", "kssc")]


def examples(share: float) -> Any:
    """A share of the profile's examples: 50 in CI, 1000 with ``--hypothesis-profile=long``."""
    return settings(
        max_examples=max(2, round(settings().max_examples * share)),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def fitted(cls: Any, X: Any, n_clusters: int, **parameters: Any) -> Any:
    if cls.__name__ in ("LRR1", "LatLRR"):  # their default λ is for hundreds of points and leaves none of ten an edge
        parameters = {"error_weight": 1.0, **parameters}
    with quiet():
        return cls(n_clusters=n_clusters, **parameters).fit(X)


@st.composite
def heaps(draw: Any) -> tuple[Any, Any]:
    """Two to four tight heaps, one on each axis and far from the others, with their labels."""
    k = draw(st.integers(2, 4))
    sizes = draw(st.lists(st.integers(6, 11), min_size=k, max_size=k))
    m = k + draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = np.repeat(np.arange(k), sizes)
    return 5 * np.eye(m)[y] + 0.1 * rng.standard_normal((len(y), m)), y


@st.composite
def subspaces(draw: Any) -> tuple[Any, int]:
    """Noisy points of two or three subspaces in general position, and their number."""
    k = draw(st.integers(2, 3))
    dimension = draw(st.integers(1, 2))
    m = draw(st.integers(dimension * k, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = []
    for _ in range(k):
        basis = np.linalg.qr(rng.standard_normal((m, dimension)))[0]
        parts.append(rng.standard_normal((draw(st.integers(8, 12)), dimension)) @ basis.T)
    X = np.vstack(parts)
    return X + 0.02 * rng.standard_normal(X.shape), k


@st.composite
def any_points(draw: Any) -> Any:
    """Points of any size, rank, scale and type, with copies, zero rows and constant features."""
    n, m = draw(st.integers(2, 24)), draw(st.integers(1, 7))
    rank = draw(st.integers(1, m))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    if draw(st.booleans()):
        X = np.rint(2 * X)  # ties, copies and zeros
    for value in draw(st.lists(st.integers(0, n - 1), max_size=6)):
        X[value] = X[0] if draw(st.booleans()) else 0
    if draw(st.booleans()):
        X[:, draw(st.integers(0, m - 1))] = draw(st.sampled_from([0.0, 1.0, -3.0]))
    limit = 30 if dtype == np.float32 else 250
    return (X * 10.0 ** draw(st.integers(-limit, limit))).astype(dtype)
