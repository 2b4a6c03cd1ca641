"""The stages of the dense route one by one, then the whole journey and new points."""

# ruff: noqa: D102  (the classes say what a leg is)

from __future__ import annotations

from typing import Any

import numpy as np

from subspaces import KTRR, TRR
from subspaces.graphs.affinity import affinity
from subspaces.graphs.truncation import truncate, truncate_symmetric
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.spectral.embedding import spectral_embedding
from subspaces.spectral.partition import cut_by_modularity, cut_embedding

from ._points import CLUSTERS, DTYPES, SIZES, legs, points


class _Leg:
    """Every leg at every size and precision, on the result of the leg before."""

    params = (SIZES, DTYPES)
    param_names = ("n", "dtype")

    def setup(self, n: int, dtype: str) -> None:
        """Make what the leg starts from; asv does not count it."""
        self.legs = legs(n, dtype)


class Kernel(_Leg):
    """Points → kernel matrix."""

    def time_gram(self, n: int, dtype: str) -> None:
        self.legs.kernel.packed_gram(self.legs.X)

    peakmem_gram = time_gram


class Representation(_Leg):
    """Kernel matrix or features → coefficients."""

    def time_ridge(self, n: int, dtype: str) -> None:
        ridge(self.legs.K)

    peakmem_ridge = time_ridge

    def time_low_rank(self, n: int, dtype: str) -> None:
        ridge_low_rank(self.legs.X)

    peakmem_low_rank = time_low_rank


class Truncation(_Leg):
    """Coefficients → the largest of each column."""

    def time_symmetric(self, n: int, dtype: str) -> None:
        truncate_symmetric(self.legs.coefficients, 5)

    def time_column(self, n: int, dtype: str) -> None:
        truncate(self.legs.coefficients, 5)

    peakmem_symmetric = time_symmetric


class Affinity(_Leg):
    """Truncated coefficients → graph."""

    def time_affinity(self, n: int, dtype: str) -> None:
        affinity(self.legs.truncated)

    peakmem_affinity = time_affinity


class Embedding(_Leg):
    """Graph → eigenvectors: twice as many as there are components, so that some must be computed."""

    def time_spectral(self, n: int, dtype: str) -> None:
        spectral_embedding(self.legs.W, 2 * CLUSTERS)

    peakmem_spectral = time_spectral


class Partition(_Leg):
    """Embedding or graph → labels."""

    def time_kmeans(self, n: int, dtype: str) -> None:
        cut_embedding(self.legs.Y, CLUSTERS)

    def time_kmeans_500(self, n: int, dtype: str) -> None:
        cut_embedding(self.legs.Y, CLUSTERS, n_init=500)

    def time_qr(self, n: int, dtype: str) -> None:
        cut_embedding(self.legs.Y, CLUSTERS, method="cluster_qr")

    def time_modularity(self, n: int, dtype: str) -> None:
        cut_by_modularity(self.legs.W, CLUSTERS)

    peakmem_kmeans = time_kmeans


class Whole:
    """Data to labels by each route."""

    params = (SIZES, DTYPES, ["dense", "low_rank", "two_scale"])
    param_names = ("n", "dtype", "route")

    def setup(self, n: int, dtype: str, route: str) -> None:
        """Only the points."""
        self.X = points(n, dtype, features=30)

    def model(self, route: str) -> Any:
        """KTRR, or TRR for the route through a feature map."""
        return TRR(CLUSTERS) if route == "low_rank" else KTRR(CLUSTERS, solver=route)

    def time_fit(self, n: int, dtype: str, route: str) -> None:
        self.model(route).fit(self.X)

    peakmem_fit = time_fit


class Predict:
    """New points after a fit, a thousand at a time."""

    params = (SIZES, DTYPES)
    param_names = ("n", "dtype")

    def setup(self, n: int, dtype: str) -> None:
        """A fitted model and points it has not seen."""
        X = points(n, dtype, features=30)
        self.model = KTRR(CLUSTERS).fit(X)
        self.new = np.repeat(X, -(-1000 // n), axis=0)[:1000] * X.dtype.type(1.001)

    def time_predict(self, n: int, dtype: str) -> None:
        self.model.predict(self.new)

    peakmem_predict = time_predict
