"""Return C and the trace of a solver as a pair, for tests that check both."""

from __future__ import annotations

from typing import Any, NamedTuple

from subspaces.representation.coefficients import Coefficients, Trace
from subspaces.representation.latent_low_rank import latent_lrr_factors
from subspaces.utils.types import Array, Sparse


def dense_and_trace(found: Coefficients) -> tuple[Array, Trace]:
    assert found.trace is not None
    return found.dense(), found.trace


def sparse_and_trace(found: Coefficients) -> tuple[Sparse, Trace]:
    assert found.trace is not None
    return found.sparse(), found.trace


class Latent(NamedTuple):
    coefficients: Array
    salient: Array
    trace: Trace


def latent_dense(X: Array, **options: Any) -> Latent:
    """Return Z and L of LatLRR as matrices, and the trace."""
    Z, L, trace = latent_lrr_factors(X, **options)
    return Latent(Z.dense(), L.dense(), trace)
