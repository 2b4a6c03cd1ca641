"""Is a split real? Each one is held against a null model drawn from the very samples that it divides.

The null model says that the samples are one piece: a Gaussian with their mean and covariance, so that dimension, noise
and unequal directions are those of the data, in which columns of two values, such as answers yes or no, keep these; and
where they lie on a piece of few dimensions, near a sample and over all, a flat one of as many that is filled evenly. As
many samples are drawn from it, the same graphs are made of them, and the best splits of those graphs are what chance
alone can do. Two numbers of a split are compared with theirs
(:mod:`subspaces.spectral.hierarchy`): the logarithm of the *cut* and the *return*. The cut of a curved sheet is smaller
than that of a Gaussian, its return is not; so both must be smaller than chance (of the flat piece only the return, for
the cut depends on the shape), and the larger of the two p-values is the answer. They come from Student's distribution
about the draws, whose spread is not believed to be below `SPREAD`: the return of a sheet or a cube is a little smaller.

A split of the tree is tested where its two sides are nearest: between the two clusters that are tied most strongly.

P-values of several splits are corrected from the root downwards (Meinshausen 2008): multiplied by the share of
the samples that the divided piece leaves out, and no split is more significant than the one above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.hierarchy import ClusterTree, fine_pieces, merged
from subspaces.spectral.partition import contracted, cut_by_modularity
from subspaces.utils.decompositions import svd
from subspaces.utils.ordering import first_largest
from subspaces.utils.progress import phase
from subspaces.utils.types import Array, Data, Labels, Sparse

Graphs = Callable[[Array], Sequence[Sparse]]
"""Makes one or more graphs of points; the same ones, whatever the points."""

ONE_PIECE = 0.03
"""P-value above which all samples are called one piece."""
MOST_POINTS = 400
"""Points of a piece that are drawn and tested; of more a random part."""
N_DRAWS = 12
N_STEPS = 4
"""After which a walker who has crossed a border is looked for."""
SPREAD = 0.02, 0.1
"""Least spread of the return, and of the logarithm of the cut."""

_DRAWS_OF_A_SPLIT = 8  # there are many
_FIRST_LOOK, _HOPELESS, _SURE = (
    5,
    0.2,
    0.003,
)  # after so many draws no more are made where the p-value is so large, or so small
_LEAST_POINTS = 8  # of a piece that is tested
_LOWEST = 1e-3  # a cut below is as good as none
_FEW_DIMENSIONS = 5.5
_SHARE = 0.03  # of the samples: a smaller piece that comes off is an outlier, not a cluster


def gaussian_like(points: Array, rng: np.random.Generator) -> Array:
    """As many samples of a Gaussian with the mean and the covariance of these; columns of two values keep theirs.

    Mixtures of the centred samples with independent normal weights have exactly their covariance on average, without
    an m × m matrix. Answers yes or no are no Gaussian, and each of their combinations is a crowd that no Gaussian has:
    such columns get the values of the samples in the order of the draw (a Gaussian copula). Columns of
    which exactly one is high in every row, the levels of one category, stay so.
    """
    centre, n = points.mean(axis=0), len(points)
    drawn: Array = rng.normal(size=(n, n)) @ (points - centre) / np.sqrt(n) + centre
    ordered = np.sort(points, axis=0)
    few = (np.diff(ordered, axis=0) > 0).sum(axis=0) <= 1
    latent = drawn.copy()
    drawn[:, few] = np.take_along_axis(ordered[:, few], drawn[:, few].argsort(axis=0).argsort(axis=0), axis=0)
    for levels in _categories(points > (ordered[0] + ordered[-1]) / 2, np.flatnonzero(few)):
        share = (points[:, levels] == ordered[-1, levels]).mean(axis=0)
        likely = (latent[:, levels] - centre[levels]) / points[:, levels].std(axis=0) + np.log(share)
        chosen = likely.argmax(axis=1)
        drawn[:, levels] = ordered[0, levels]
        drawn[np.arange(n), levels[chosen]] = ordered[-1, levels[chosen]]
    return drawn


def _categories(high: Array, columns: Labels) -> list[Labels]:
    """Return columns that are the levels of one category: in every row exactly one of them is high."""
    counts = high[:, columns].T.astype(np.float64) @ high[:, columns]
    label = connected_components(counts == 0, directed=False)[1]
    groups = [columns[label == group] for group in range(label.max(initial=-1) + 1)]
    return [levels for levels in groups if (high[:, levels].sum(axis=1) == 1).all() and len(levels) > 1]


def box_like(points: Array, dimension: int, rng: np.random.Generator) -> Array:
    """As many samples spread evenly over a box along the first principal directions, with the deviations of these."""
    centre = points.mean(axis=0)
    along, values, directions = svd(points - centre)
    # signs by the samples, not by the columns, whose order must not matter
    signs = np.sign(np.take_along_axis(along, first_largest(np.abs(along), axis=0)[np.newaxis], axis=0)[0])
    directions *= signs[: len(directions), np.newaxis]
    sides = values[:dimension] * np.sqrt(12 / len(points))
    drawn: Array = ((rng.random((len(points), len(sides))) - 0.5) * sides) @ directions[:dimension] + centre
    return drawn


def intrinsic_dimension(points: Array, n_neighbors: int = 10) -> float:
    """Dimension of the piece that the samples lie on, from how their distances to neighbours grow.

    Maximum likelihood (Levina and Bickel 2004), the harmonic mean over the samples (MacKay and Ghahramani 2005).
    """
    k = min(n_neighbors, len(points) - 1)
    distance = np.sort(cdist(points, points), axis=1)[:, 1 : k + 1]
    distance = distance[distance[:, 0] > 0]
    if k < 3 or not len(distance):
        return float("inf")
    growth = np.log(distance[:, -1:] / distance[:, :-1]).sum() / (len(distance) * (k - 2))
    return float(1 / growth) if growth > 0 else float("inf")


def one_piece(X: Data, rows: Labels, graphs_of: Graphs, *, seed: int = 0) -> float:
    """P-value of "all samples are one piece": small where a split of them is better than chance.

    Parameters
    ----------
    X : array of shape (n, m), the samples as the graphs see them
    rows : of X, each as often as the sample occurs
    graphs_of : function that makes the graphs of samples
    seed : of the draws
    """
    rng = np.random.default_rng(seed)
    points = _dense(X, _sampled(rows, rng))
    if len(points) < _LEAST_POINTS:
        return 1.0
    observed = _best_split(graphs_of(points), n_splits=3)
    return _largest_p_value(observed, points, graphs_of, rng, n_splits=3, n_draws=N_DRAWS)


class Border(NamedTuple):
    """Where the two sides of a split are nearest: a cluster on each side, or two pieces of one cluster."""

    split: int  # row of the tree's merges
    one: Labels  # samples of the cluster on the first side
    other: Labels


def borders(tree: ClusterTree, W: Sparse, most: int = 40) -> list[Border]:
    """Return the nearest clusters across every split down to the labels, and the two pieces of the next split.

    Coarsest first.

    If the two clusters that are tied most strongly across a split are apart, the whole sides are.
    """
    labels = tree.labels_at(tree.n_clusters)
    weights = contracted(W, labels).toarray()
    volume = weights.sum(axis=1)
    ties = weights / np.maximum(np.outer(volume, volume), np.finfo(np.float64).tiny) ** 0.75
    found = []
    for k in range(1, min(tree.n_clusters + 1, most + 1, tree.n_leaves)):
        i = tree.split(k)
        one, other = (tree.members(int(piece)) for piece in tree.merges[i])
        if k < tree.n_clusters:
            first, second = np.unique(labels[one]), np.unique(labels[other])
            place = int(first_largest(ties[np.ix_(first, second)].ravel()))
            one = np.flatnonzero(labels == first[place // len(second)])
            other = np.flatnonzero(labels == second[place % len(second)])
        found.append(Border(i, one, other))
    return found


def with_p_values(
    tree: ClusterTree, W: Sparse, X: Data, graphs_of: Graphs, *, order: Labels | None = None, seed: int = 0
) -> ClusterTree:
    """Return the tree with p-values of its splits, down to the level of its labels and one further.

    Parameters
    ----------
    tree : of the graph W
    X, graphs_of, seed : as in :func:`one_piece`
    order : of the samples, so that draws do not depend on that of the rows
    """
    p_value = np.full(len(tree.merges), np.nan)
    n = len(tree.leaves)
    place = np.arange(n) if order is None else np.argsort(order)
    tested = borders(tree, W)
    with phase("Testing the splits of the tree", len(tested)) as step:
        for border in tested:
            rng = np.random.default_rng([seed, border.split])
            both = np.concatenate([border.one, border.other])
            rows = _sampled(both[np.argsort(place[both])], rng)
            raw = 1.0
            if len(rows) >= _LEAST_POINTS:
                points = _dense(X, rows)
                observed = _given_split(graphs_of(points), np.isin(rows, border.one))
                raw = _largest_p_value(observed, points, graphs_of, rng, n_splits=1, n_draws=_DRAWS_OF_A_SPLIT)
            p_value[border.split] = min(1.0, raw * n / tree.sizes[tree.n_leaves + border.split])
            step()
    return replace(tree, p_value=_not_below_parents(tree, p_value))


def _not_below_parents(tree: ClusterTree, p_value: Array) -> Array:
    """No split is more significant than the one above it."""
    p_value = p_value.copy()
    m = tree.n_leaves
    for i in range(len(p_value) - 1, -1, -1):
        for child in tree.merges[i]:
            if child >= m:
                p_value[child - m] = np.maximum(p_value[child - m], p_value[i])
    return p_value


def with_stability(tree: ClusterTree, W: Sparse, *, n_draws: int = 4, seed: int = 0) -> ClusterTree:
    """Return the tree with the stability of the splits down to the level of its labels.

    Random 80 % of the two clusters at the border, cut in two by modularity: the adjusted Rand index of that with the
    clusters, mean of the draws, 0 where it is negative.
    """
    W = sparse.csr_array(W)
    found = np.full(len(tree.merges), np.nan)
    for border in borders(tree, W):
        rng = np.random.default_rng([seed, border.split])
        rows = np.concatenate([border.one, border.other])
        side = np.repeat([0, 1], [len(border.one), len(border.other)])
        values = []
        for _ in range(n_draws):
            kept = np.sort(rng.choice(len(rows), max(2, round(0.8 * len(rows))), replace=False))
            part = W[rows[kept]][:, rows[kept]]
            if part.nnz and 0 < side[kept].sum() < len(kept):
                two = cut_by_modularity(part, 2, seed=seed, iterations=2)
                values.append(max(0.0, float(pairwise_agreement([side[kept], two])[0, 1])))
        found[border.split] = float(np.mean(values)) if values else np.nan
    return replace(tree, stability=found)


def _sampled(rows: Labels, rng: np.random.Generator, most: int = MOST_POINTS) -> Labels:
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _dense(X: Data, rows: Labels) -> Array:
    """These rows, dense and in double precision."""
    part = X[rows]
    return np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _largest_p_value(
    observed: Array, points: Array, graphs_of: Graphs, rng: np.random.Generator, n_splits: int, n_draws: int
) -> float:
    """Of the two kinds of null model, each with its own draws; the box where the piece has few dimensions."""
    lengths = np.linalg.norm(points, axis=1)
    unit = bool(np.ptp(lengths) <= 1e-6 * lengths.max())
    found = []
    for model, numbers in null_models(points, rng):
        drawn: list[Array] = []
        for draw in range(n_draws):
            null = model()
            if graphs := graphs_of(_unit(null) if unit else null):
                drawn.append(_best_split(graphs, n_splits))
            if draw + 1 == _FIRST_LOOK and not _SURE <= _p_value(observed, drawn, numbers) <= _HOPELESS:
                break
        found.append(_p_value(observed, drawn, numbers))
        if found[-1] > ONE_PIECE:  # it cannot become significant again
            break
    return max(found)


def null_models(points: Array, rng: np.random.Generator) -> list[tuple[Callable[[], Array], slice]]:
    """Return what draws one piece like these samples, and which numbers of its splits are compared.

    A Gaussian, or also a box.

    The box is for a piece of few dimensions, and such a piece has few at every scale, be it bent. Clusters of few
    dimensions each, in many directions (topics, objects, subspaces), have few only near a sample; of these no flat box
    is a likeness.
    """
    models: list[tuple[Callable[[], Array], slice]] = [(lambda: gaussian_like(points, rng), slice(2))]
    dimension = intrinsic_dimension(points)
    if max(dimension, intrinsic_dimension(points, len(points) // 4)) < _FEW_DIMENSIONS:
        # only the return: the cut depends on the shape. Never a line: its graph falls apart at every larger gap
        models.append((lambda: box_like(points, max(2, round(dimension)), rng), slice(1)))
    return models


def _unit(points: Array) -> Array:
    scaled: Array = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return scaled


def _best_split(graphs: Sequence[Sparse], n_splits: int) -> Array:
    """Return and log cut: the smallest of the coarsest splits that divide off a sizeable piece, mean of the graphs."""
    values = []
    for W in graphs:
        W = sparse.csr_array(W)
        pieces = fine_pieces(W)
        found = merged(W, pieces)
        smaller = found.sizes[found.merges].min(axis=1) if len(found.merges) else np.zeros(0)
        sizeable = np.flatnonzero(smaller >= max(4, _SHARE * W.shape[0]))[-n_splits:]
        if len(sizeable):
            sides = _sides(found.merges, pieces, sizeable)
            cut = np.log(np.maximum(found.cuts[sizeable], _LOWEST))
            values.append([min(lasting_return(W, one, other) for one, other in sides), cut.min()])
    return np.mean(values, axis=0) if values else np.array([0.5, 0.0])


def _sides(merges: Labels, pieces: Labels, splits: Labels) -> list[tuple[Labels, Labels]]:
    """Return samples on the two sides of some splits."""
    m = len(merges) + 1
    leaves: list[list[int]] = [[leaf] for leaf in range(m)]
    for one, other in merges:
        leaves.append(leaves[one] + leaves[other])
    both = [merges[i] for i in splits]
    return [tuple(np.flatnonzero(np.isin(pieces, leaves[side])) for side in pair) for pair in both]  # type: ignore[misc]


def lasting_return(W: Sparse, one: Labels, other: Labels, n_steps: int = N_STEPS) -> float:
    """Return the probability that a walker who has just crossed from one side to the other is back some steps later.

    After one step that is the return of :mod:`subspaces.spectral.hierarchy`, which a single sample between two clusters
    makes as large as a continuous piece does. After a few steps the walker has left such a sample behind him. Edges to
    samples on neither side do not count.

    Examples
    --------
    >>> path = sparse.csr_array(np.eye(8, k=1) + np.eye(8, k=-1))
    >>> [round(lasting_return(path, np.arange(4), np.arange(4, 8), n_steps), 2) for n_steps in (1, 2)]
    [0.5, 0.25]
    """
    rows = np.concatenate([one, other])
    part = sparse.csr_array(W)[rows][:, rows].astype(np.float64)
    side = np.repeat([1.0, 0.0], [len(one), len(other)])  # of the walker: 1 on the first side
    degree = np.asarray(part.sum(axis=1)).ravel()
    to_first = part @ side
    crossing = np.where(side == 1, degree - to_first, to_first)
    total = float(crossing.sum())
    if total <= 0:
        return 0.0
    step = sparse.diags_array(1 / np.maximum(degree, np.finfo(np.float64).tiny)) @ part
    for _ in range(n_steps):
        side = step @ side
    back = np.concatenate([1 - side[: len(one)], side[len(one) :]])
    return float(crossing @ back / total)


def _given_split(graphs: Sequence[Sparse], side: Array) -> Array:
    """Return and log cut of a given division."""
    if not 0 < side.sum() < len(side):
        return np.array([0.5, 0.0])
    one, other = np.flatnonzero(side), np.flatnonzero(~side)
    values = []
    for W in (W for W in graphs if W.nnz):
        cut = merged(sparse.csr_array(W), side.astype(np.intp)).cuts[0]
        values.append([lasting_return(W, one, other), np.log(max(float(cut), _LOWEST))])
    return np.mean(values, axis=0) if values else np.array([0.5, 0.0])


def _p_value(observed: Array, drawn: Sequence[Array], numbers: slice) -> float:
    """Return the larger of the p-values of the two numbers, or that of the return alone."""
    if len(drawn) < 3:
        return 1.0
    null = np.array(drawn)
    spread = np.hypot(null.std(axis=0, ddof=1), SPREAD) * np.sqrt(1 + 1 / len(null))
    return float(student.cdf((observed - null.mean(axis=0)) / spread, len(null) - 1)[numbers].max())
