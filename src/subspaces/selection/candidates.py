"""What the search tries: scalings that make sense for the data, and for each of them a few graphs of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.kernels import KernelLike, is_precomputed
from subspaces.kernels.profiles import n_monomials
from subspaces.kernels.scaling import apply_scaling, fit_scaling
from subspaces.selection.trajectories import MOST_TRACKS, are_tracks
from subspaces.utils.choices import GraphName
from subspaces.utils.types import Array, Data

AUTO: Literal["auto"] = "auto"
NEIGHBORS = "neighbors"
"""In the place of a kernel: the plain graph of nearest neighbours, no representation (:class:`~subspaces.SC`)."""

LARGE = 10_000
"""Points above which only settings may win that need no n × n matrix."""
PLANE = 3
"""Features up to which points are shapes in the plane or in space, not subspaces of anything."""

_WIDE = 256  # features from which samples are images or expression profiles
_FEW = 8  # coefficients per sample that these, and shapes, may have
_ONE_UNIT = 0.5  # median range of a column over the largest from which all columns have one unit
_OTHER_UNITS = 0.06  # median deviation of a column over the largest below which a few columns hide the others
_ZEROS, _SKEW = 0.25, 2.0  # share of zeros and skewness of the rest from which non-negative numbers are counts
_SAME_LENGTH = 0.02  # of the squared length
_MANY_TRACKS = 1000  # above which one λ is tried
_TRAJECTORIES = (
    " Rows are tracks of a film, x and y of every frame: of the coefficients the low rank that motions have is kept."
)


@dataclass(frozen=True)
class Setting:
    """One setting, up to the graph; `kernel` may be :data:`NEIGHBORS`.

    `graph` is a rule of its own (:class:`~subspaces.graphs.rules.GraphRule`), one of all pairs that needs the number of
    clusters; None is that of the search, whose truncations are prefixes of one another.
    """

    scaling: str | None
    kernel: KernelLike
    reg: float
    n_nonzero: int | None
    affine: bool = False
    graph: GraphName | None = None
    graph_params: tuple[tuple[str, float], ...] = ()

    def own_graph(self) -> dict[str, Any]:
        """Return the parameters of an estimator that say its graph; none where it is that of the search."""
        return {} if self.graph is None else {"graph": self.graph, "graph_params": dict(self.graph_params)}


class Family(NamedTuple):
    """Settings with one inverse: a kernel, λ, and the truncations of its coefficients, or one graph of its own."""

    kernel: str
    reg: float
    n_nonzeros: tuple[int, ...]
    affine: bool = False
    graph: GraphName | None = None
    graph_params: tuple[tuple[str, float], ...] = ()


class Tried(NamedTuple):
    """The settings to try, in order of preference, the cuts, and in words why a scaling or a kind is clear."""

    settings: tuple[Setting, ...]
    cuts: tuple[str, ...]
    scaling_reason: str = ""
    kind_reason: str = ""

    def by_kernel(self) -> list[list[Setting]]:
        """Return settings that share a kernel matrix, together."""
        found: dict[tuple[Any, ...], list[Setting]] = {}
        for setting in self.settings:
            found.setdefault((setting.scaling, setting.kernel), []).append(setting)
        return list(found.values())


CUTS_TRIED = ("modularity", "kmeans", "agglomerative")


_FAMILIES = {
    "fast": (Family("rbf", 0.1, (5, 8, 15)),),
    "balanced": (
        Family("rbf", 0.1, (30,)),
        Family("quadratic", 0.1, (5, 8)),
        Family("exponential", 1.0, (8, 15)),
        Family("linear", 0.01, (5,), affine=True),
    ),
    "thorough": (
        Family("rbf", 0.1, (3,)),
        Family("rbf", 1.0, (5,)),  # KTRR with nothing set
        Family("exponential", 1.0, (30,)),
        Family("exponential", 10.0, (5, 8)),
        Family("quadratic", 1.0, (3, 5, 8)),
        Family("cubic", 0.1, (3, 5, 8)),
    ),
}


def families_tried(n_features: int, effort: str) -> tuple[Family, ...]:
    """Graphs of every kind: those of less effort and its own.

    Images and expression profiles want few coefficients per sample, tables and spectra more as well, for their coarse
    structure, and affine subspaces. In the plane, and in space, there are shapes but no subspaces: powers of products
    and affine subspaces mean nothing, and large truncations jump gaps. The Gaussian kernel comes first: ties go to it.
    """
    levels = list(_FAMILIES)
    found = [family for level in levels[: levels.index(effort) + 1] for family in _FAMILIES[level]]
    if n_features <= PLANE:
        found = [family for family in found if family.kernel in ("rbf", "exponential")]
        found[1:1] = [Family("rbf", 1.0, (5,))] if effort == "balanced" else []
    if not PLANE < n_features < _WIDE:
        few = {family: tuple(size for size in family.n_nonzeros if size <= _FEW) for family in found}
        found = [family._replace(n_nonzeros=sizes) for family, sizes in few.items() if sizes and not family.affine]
    return (*found, Family(NEIGHBORS, 0.0, (10,)))


def families_of_tracks(n_tracks: int, effort: str) -> tuple[Family, ...]:
    """Return what is tried on tracks of a film: affine ridge coefficients, of which a rank of 3 a motion is left.

    Tracks of a rigid object lie on an affine subspace of dimension 3 or less (4 with perspective, where time allows).
    The setting of docs/motion.md comes first, then a factor of two in λ and other powers of the cosines. Of many
    tracks a graph of all pairs takes long, so only the first λ is tried.
    """
    dimensions = (3, 4) if effort == "thorough" else (3,)
    regs = (0.002,) if effort == "fast" or n_tracks > _MANY_TRACKS else (0.002, 0.001, 0.004)
    return tuple(
        Family("linear", reg, (5,), True, "dscnet", (("subspace_dim", dimension), ("share", 1.0), ("power", power)))
        for dimension in dimensions
        for reg in regs
        for power in (6, 4, 8)
    )


def tried_on(
    X: Data,
    given: Mapping[str, Any],
    *,
    effort: str = "balanced",
    n_samples: int | None = None,
    neighbors: bool = False,
    n_clusters: int | None = None,
    n_components: int | None = None,
) -> Tried:
    """Return the settings to try on these samples.

    Parameters
    ----------
    given : scaling, kernel, reg, n_nonzero, affine and assign_labels, each a value that stays or ``"auto"``
    effort : how much to try
    n_samples : number of samples of the final fit where X is a subset of them
    neighbors : whether the plain graph of neighbours is tried as well
    n_clusters : their number, where graphs of other kinds that need it may be tried
    n_components : how many stand for sparse samples
    """
    n, kernel = X.shape[0], given["kernel"]
    width = _WIDE if is_precomputed(kernel) else min(X.shape[1], n_components or X.shape[1])
    if n_clusters is not None and _are_trajectories(X, given, n_samples or n):
        own = [Setting(None, f.kernel, f.reg, f.n_nonzeros[0], *f[3:]) for f in families_of_tracks(n, effort)]
        return Tried(tuple(own), ("kmeans",), kind_reason=_TRAJECTORIES)
    scalings: tuple[str | None, ...] = (given["scaling"],)
    reason = ""
    if given["scaling"] == AUTO:
        scalings, reason = ((None,), "") if is_precomputed(kernel) else scalings_tried(X)
        if n_components is not None and scalings == (None,):
            scalings = ("unit",)  # rows of one length, of which the components have another
        if effort == "fast":
            scalings = ("unit",) if "unit" in scalings else scalings[:1]
    few = max(2, n // 4)  # more coefficients than a quarter of the samples join everything to everything
    settings: dict[Setting, None] = {}
    for scaling in scalings:
        for family in families_tried(width, effort):
            if family.kernel == NEIGHBORS and not (neighbors and _is_auto(kernel)):
                continue
            if effort != "thorough" and len(scalings) > 1 and not _suits(family.kernel, scaling, scalings):
                continue
            for size in family.n_nonzeros:
                setting = Setting(scaling, family.kernel, family.reg, min(size, few, n - 1), family.affine)
                chosen = _as_given(setting, given)
                if chosen is not None and _has_solver(chosen, n_samples or n, X, _is_auto(kernel)):
                    settings[chosen] = None
    cuts = CUTS_TRIED if given["assign_labels"] == AUTO else (given["assign_labels"],)
    return Tried(tuple(settings), cuts, reason)


def _suits(kernel: str, scaling: str | None, scalings: tuple[str | None, ...]) -> bool:
    """Return whether no other of the scalings suits this kernel better.

    The quadratic kernel sees directions best, powers of cosines; the exponential one distances, which unit rows change.
    """
    if "unit" not in scalings or kernel not in ("quadratic", "exponential"):
        return True
    return (kernel == "quadratic") == (scaling == "unit")


def _are_trajectories(X: Data, given: Mapping[str, Any], n_samples: int) -> bool:
    """Return whether the samples are tracks, and nothing that is given stands against what is tried on them.

    Modularity makes nothing of a graph of all pairs.
    """
    free = all(_is_auto(given[name]) for name in ("kernel", "reg", "n_nonzero"))
    free = free and given["scaling"] in (AUTO, None) and given["affine"] in (AUTO, True)
    free = free and given["assign_labels"] in (AUTO, "kmeans")
    return free and n_samples <= MOST_TRACKS and are_tracks(X)


def _as_given(setting: Setting, given: Mapping[str, Any]) -> Setting | None:
    """Return the setting with what was given in place; None where nothing is left of it."""
    if setting.affine and given["affine"] is False:
        return None
    values = {name: given[name] for name in ("kernel", "reg", "n_nonzero", "affine") if not _is_auto(given[name])}
    return replace(setting, **values)


def neighbouring(tried: Tried, n: int) -> Tried:
    """Return settings around given ones, a factor of ten in the penalty and of two in the truncation.

    Where too few settings are tried to agree on a number of clusters, these are asked as well, and only about that.
    """
    found: dict[Setting, None] = {}
    for setting in tried.settings:
        sizes: list[int | None] = [setting.n_nonzero]
        if setting.n_nonzero is not None:
            sizes += [size for size in (max(2, setting.n_nonzero // 2), 2 * setting.n_nonzero) if size < n]
        for factor in (0.1, 1.0, 10.0):
            found |= {replace(setting, reg=setting.reg * factor, n_nonzero=size): None for size in sizes}
    return tried._replace(settings=tuple(found))


def _has_solver(setting: Setting, n_samples: int, X: Data, free: bool) -> bool:
    """Return whether a final fit of so many samples could be made.

    The graph of neighbours is asked, but cannot win there.

    Of many sparse samples only a kernel of distances has a route; another one that was given (not `free`) is refused by
    the fit.
    """
    name = setting.kernel if isinstance(setting.kernel, str) else ""
    if n_samples > LARGE and sparse.issparse(X) and free:
        return name in (NEIGHBORS, "rbf", "exponential")
    degree = {"quadratic": 2, "cubic": 3}.get(name)
    if n_samples <= LARGE or sparse.issparse(X) or degree is None:
        return True
    return 2 * n_monomials(X.shape[1], degree) <= n_samples


def scalings_tried(X: Data) -> tuple[tuple[str | None, ...], str]:
    """Scalings worth trying, and the reason in words where only one is.

    Counts (no value below zero, many zeros, a long tail) are seen by their logarithms. A table whose columns have
    different units is not seen at all by distances and products: the column with the largest numbers hides the
    others, and every setting agrees on it; so it is standardised. Where columns have one unit (pixels, coordinates)
    it is plain or unit rows; where they may, standardised as well.
    """
    X = apply_scaling(X, fit_scaling(X, None))  # a power of two where magnitudes are extreme
    if _are_counts(X):
        return ("log",), "they are counts: no value is negative, many are zero and few are large"
    if sparse.issparse(X):
        return (None,) if _all_of_one_length(X) else (None, "unit"), ""
    spread, deviation = _column_sizes(X)
    many = X.shape[1] > PLANE
    typical = float(np.median(deviation) if many else deviation.min()) if len(deviation) > 1 else np.inf
    if typical < _OTHER_UNITS * deviation.max(initial=0):
        share = min(99.0, 100 * float(np.square(deviation.max()) / np.square(deviation).sum()))
        return ("standard",), f"one feature has {share:.0f} % of the variance of all {X.shape[1]}"
    if not many:
        return (None,), ""
    plain: tuple[str | None, ...] = (None,) if _all_of_one_length(X) else (None, "unit")
    one_unit = len(spread) < 2 or float(np.median(spread)) >= _ONE_UNIT * float(spread.max())
    return plain if one_unit else (*plain, "standard"), ""


def _column_sizes(X: Array) -> tuple[Array, Array]:
    """Ranges and deviations of the columns that vary."""
    spread = np.ptp(X, axis=0).astype(np.float64)
    varying = spread > 0
    largest = max(float(spread.max(initial=0)), np.finfo(np.float64).tiny)  # squares must not overflow
    deviation = (X[:, varying] / largest).std(axis=0, dtype=np.float64)
    return spread[varying] / largest, deviation


def _are_counts(X: Data) -> bool:
    """Return whether the values look like counts, whole or not: of words, reads, events."""
    if X.shape[1] <= PLANE or float(X.min()) < 0:
        return False
    positive = X.data[X.data > 0] if sparse.issparse(X) else X[X > 0]
    if len(positive) < 2 or len(positive) > (1 - _ZEROS) * X.shape[0] * X.shape[1]:
        return False
    positive = positive.astype(np.float64) / positive.max()
    deviation = float(positive.std())
    return deviation > 0 and float(np.mean(((positive - positive.mean()) / deviation) ** 3)) > _SKEW


def _all_of_one_length(X: Data) -> bool:
    """Return whether unit rows would be the same samples but for their unit."""
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return bool(squares.max() - squares.min() <= _SAME_LENGTH * squares.max())


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO
