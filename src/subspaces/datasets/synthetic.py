"""Samples with known classes: unions of linear and affine subspaces, of curves and of spheres."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils import check_random_state

from subspaces.utils.decompositions import cholesky
from subspaces.utils.types import Array, Labels

Counts = int | Sequence[int]
Seed = int | np.random.RandomState | None

BENCHMARKS: dict[str, dict[str, Any]] = {
    "uos2000": {"n_subspaces": 10, "dimension": 5, "ambient": 30, "n_samples": 200, "noise": 0.01},
    "uos10000": {"n_subspaces": 10, "dimension": 5, "ambient": 30, "n_samples": 1000, "noise": 0.01},
    "hard2000": {"n_subspaces": 5, "dimension": 6, "ambient": 9, "n_samples": 400, "noise": 0.0},
    "hard10000": {"n_subspaces": 5, "dimension": 6, "ambient": 9, "n_samples": 2000, "noise": 0.0},
}
"""Arguments of `make_subspaces` for the unions on which methods and packages are compared.

Of the hard ones any two subspaces meet in at least 3 dimensions, and nearest neighbours are mostly on other subspaces:
only self-expression helps. Of the others they are mostly right. The number is that of the samples.
"""


def make_subspaces(
    n_subspaces: int = 3,
    dimension: Counts = 3,
    ambient: int = 30,
    n_samples: Counts = 50,
    *,
    noise: float = 0.0,
    affine: bool = False,
    angle: float | None = None,
    on_sphere: bool = True,
    random_state: Seed = None,
) -> tuple[Array, Labels]:
    """Draw samples from a union of linear (or affine) subspaces.

    Parameters
    ----------
    n_subspaces : number of subspaces
    dimension : of all subspaces, or of each
    ambient : dimension of the space they lie in
    n_samples : samples on each subspace, one number or one for each
    noise : standard deviation of the Gaussian noise of every coordinate
    affine : move every subspace by a vector of length 1 orthogonal to it, in a random direction
    angle : float, default=None
        All principal angles between any two subspaces, in degrees from 0 (they coincide, excluded) to 90; needs
        ``ambient >= n_subspaces * max(dimension)``. By default the subspaces are random and independent.
    on_sphere : bool, default=True
        Draw uniformly from the unit sphere of each subspace (of a line: two samples); otherwise from a Gaussian with
        mean 0 and variance 1 in each of its directions.
    random_state : seed

    Returns
    -------
    X, y : samples of shape (n_samples, ambient), one subspace after the other, and the subspace of each

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import make_subspaces
    >>> X, y = make_subspaces(2, dimension=[1, 4], ambient=10, n_samples=20, random_state=0)
    >>> [int(np.linalg.matrix_rank(X[y == k])) for k in (0, 1)]
    [1, 4]
    """
    rng = check_random_state(random_state)
    sizes = per_cluster("n_samples", n_samples, n_subspaces)
    dimensions = per_cluster("dimension", dimension, n_subspaces)
    if max(dimensions) + affine > positive("ambient", ambient):
        room = "; affine subspaces need one more" if affine else ""
        raise ValueError(f"ambient must be at least the dimension of the subspaces; got {ambient}, {dimension}{room}")
    if angle is None:
        bases = [_random_basis(ambient, d, rng) for d in dimensions]
    else:
        bases = _bases_at_angle(angle, ambient, dimensions, rng)
    parts = []
    for basis, size in zip(bases, sizes, strict=True):
        coordinates = rng.standard_normal((size, basis.shape[1]))
        if on_sphere:
            coordinates /= np.linalg.norm(coordinates, axis=1, keepdims=True)
        points = coordinates @ basis.T
        parts.append(points + _normal_to(basis, rng) if affine else points)
    return _finish(parts, None, noise, rng)


def make_three_curves(
    n_samples: Counts = 50, *, noise: float = 0.0, ambient: int = 2, random_state: Seed = None
) -> tuple[Array, Labels]:
    """Draw samples from three curves in the plane that a quadratic map makes straight: the idea of the paper's Fig. 1.

    The curves are ``x₂ = a x₁²`` with a = 0.3, 1 and 3 and 0.2 ≤ x₁ ≤ 1. In the coordinates (x₁², x₂) they are three
    lines through the origin, so samples of one curve represent each other linearly there, and only there. (The paper
    prints a sketch without formulas; these curves are our choice.)

    Parameters
    ----------
    n_samples : samples on each curve, one number or three
    noise : standard deviation of the Gaussian noise of every coordinate
    ambient : dimension of the space; above 2 the plane is turned into it at random
    random_state : seed

    Returns
    -------
    X, y : samples of shape (n_samples, ambient), one curve after the other, and the curve of each

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import make_three_curves
    >>> X, y = make_three_curves(random_state=0)
    >>> hidden = np.column_stack([X[:, 0] ** 2, X[:, 1]])
    >>> [int(np.linalg.matrix_rank(hidden[y == k])) for k in range(3)]
    [1, 1, 1]
    """
    rng = check_random_state(random_state)
    parts = []
    for bend, size in zip((0.3, 1.0, 3.0), per_cluster("n_samples", n_samples, 3), strict=True):
        x = rng.uniform(0.2, 1.0, size)
        parts.append(np.column_stack([x, bend * x**2]))
    return _finish(parts, ambient, noise, rng)


def make_spheres(
    n_spheres: int = 2,
    dimension: int = 2,
    n_samples: Counts = 200,
    *,
    noise: float = 0.0,
    ambient: int | None = None,
    random_state: Seed = None,
) -> tuple[Array, Labels]:
    """Draw samples uniformly from spheres of radius 1, 2, ... around the origin.

    All span the same linear space, so linear methods see one cluster.

    Parameters
    ----------
    n_spheres : number of spheres
    dimension : of the spheres: 1 for circles, 2 for the usual sphere
    n_samples : samples on each sphere, one number or one for each
    noise : standard deviation of the Gaussian noise of every coordinate
    ambient : dimension of the space; above ``dimension + 1``, the default, the spheres are turned into it at random
    random_state : seed

    Returns
    -------
    X, y : samples of shape (n_samples, ambient), one sphere after the other, and the sphere of each

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import make_spheres
    >>> X, y = make_spheres(2, dimension=3, random_state=0)
    >>> bool(np.allclose(np.linalg.norm(X, axis=1), y + 1))
    True
    """
    rng = check_random_state(random_state)
    positive("dimension", dimension)
    parts = []
    for k, size in enumerate(per_cluster("n_samples", n_samples, positive("n_spheres", n_spheres))):
        directions = rng.standard_normal((size, dimension + 1))
        parts.append((k + 1) * directions / np.linalg.norm(directions, axis=1, keepdims=True))
    return _finish(parts, ambient, noise, rng)


def _finish(parts: list[Array], ambient: int | None, noise: float, rng: np.random.RandomState) -> tuple[Array, Labels]:
    """Stack the clusters, turn them into the ambient space without changing a distance, add noise, label."""
    X = np.concatenate(parts)
    n_natural = X.shape[1]
    if ambient is not None and positive("ambient", ambient) < n_natural:
        raise ValueError(f"ambient must be at least {n_natural}; got {ambient}")
    if ambient is not None and ambient > n_natural:
        X = X @ _random_basis(ambient, n_natural, rng).T
    if nonnegative("noise", noise) > 0:
        X += noise * rng.standard_normal(X.shape)
    return X, np.repeat(np.arange(len(parts), dtype=np.intp), [len(part) for part in parts])


def _random_basis(ambient: int, dimension: int, rng: np.random.RandomState) -> Array:
    """Return orthonormal columns that span a uniformly distributed subspace."""
    return scipy.linalg.qr(rng.standard_normal((ambient, dimension)), mode="economic")[0]


def _bases_at_angle(angle: float, ambient: int, dimensions: list[int], rng: np.random.RandomState) -> list[Array]:
    """Return orthonormal bases, any two of which have only this principal angle.

    With G = cos(angle) off the diagonal and 1 on it, and G = TTᵀ, basis k is Σⱼ Tₖⱼ Eⱼ for blocks Eⱼ of one orthonormal
    matrix: the product of bases k and l is then Gₖₗ I, whose singular values are the cosines of the principal angles.
    """
    n_subspaces, largest = len(dimensions), max(dimensions)
    if not 0 < angle <= 90:
        raise ValueError(f"angle must be above 0 and at most 90 degrees; got {angle}")
    if ambient < n_subspaces * largest:
        need = f"n_subspaces * max(dimension) = {n_subspaces * largest}"
        raise ValueError(f"ambient must be at least {need} when angle is given; got {ambient}")
    cosines = np.full((n_subspaces, n_subspaces), np.cos(np.deg2rad(angle)))
    np.fill_diagonal(cosines, 1)
    weights = cholesky(cosines)[0]
    blocks = _random_basis(ambient, n_subspaces * largest, rng).reshape(ambient, n_subspaces, largest)
    return [np.tensordot(blocks[:, :, :d], weights[k], axes=(1, 0)) for k, d in enumerate(dimensions)]


def _normal_to(basis: Array, rng: np.random.RandomState) -> Array:
    """Return a random unit vector orthogonal to a subspace."""
    vector = rng.standard_normal((basis.shape[0],))
    vector -= basis @ (basis.T @ vector)
    return vector / np.linalg.norm(vector)


def per_cluster(name: str, value: Counts, n_clusters: int) -> list[int]:
    """Return one positive integer for each cluster, given one for all or a sequence."""
    values = [value] * n_clusters if isinstance(value, Integral) else list(value)  # type: ignore[arg-type]
    if len(values) != n_clusters:
        raise ValueError(f"{name} must be one number or {n_clusters} of them; got {len(values)}")
    return [positive(name, number) for number in values]


def positive(name: str, value: Any) -> int:
    """Return the value of a parameter that must be an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    return int(value)


def nonnegative(name: str, value: Any, below: float = np.inf) -> float:
    """Return the value of a parameter that must be a number of at least 0."""
    if not isinstance(value, Real) or not 0 <= float(value) < below:
        raise ValueError(f"{name} must be at least 0 and below {below:g}; got {value!r}")
    return float(value)
