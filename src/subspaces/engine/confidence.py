"""How sure is each label: from the graph that was cut, for samples and for clusters.

The confidence of a label is the probability that it is right (last paragraph). It rests on this:

A walker that starts at a sample i and goes along the edges of the graph (with probability in proportion to their
weights, resting every other step on average) is after `N_STEPS` steps in cluster c with probability s_ic. Divided by
the weight of the cluster (large ones are met by chance more often) and scaled to length 1, these numbers are the
sample's *profile*. The mean profile of a cluster is its centre. With a the distance of a sample's profile to the centre
of its own cluster and b that to the nearest other one,

    margin = b − a,    walk = max(0, margin / max(a, b)),

the simplified silhouette, cut at 0: 1 means that the walks look like those of the own cluster and of no other, 0 that
another cluster suits as well or better (then the margin is negative). Nothing but the graph W and the labels is
needed, so every method has it; no n × n array is made. It can know no more than the graph: where the clusters are its
components, it is 1 for every label, right or wrong. So it is one of several signs, none of which is a probability.

A sample *fits nowhere* if it has no edge, if no cluster receives half of its weight within one and two steps (where
that is so of most samples, half of what the median sample has: the graph is noisy, not they), or if it lies further
from the samples it is tied to than Tukey's fence allows: with the logarithms of these distances, third quartile plus
1.5 times the distance between the quartiles, over all samples. (Noise put among digits, faces and objects is caught
so, nearly always, at the price of one good sample in a hundred; without logarithms it would be three.)

Confidence is a probability: what the graph says of a sample and its cluster and, after a search, how far other settings
put it into the same cluster go through a logistic function. Its weights were fitted to labelled data sets by
``benchmarks/confidence.py``, which also says how well the probabilities hold on families of sets that were left out: of
the samples with confidence 0.8 about 80 % should be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.graphs.affinity import edge_distances, far_points
from subspaces.kernels import is_precomputed
from subspaces.kernels.scaling import apply_scaling
from subspaces.spectral.hierarchy import ClusterTree, cluster_tree
from subspaces.utils.blocks import row_blocks
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Data, Labels, Sparse

UNSURE = 0.5
"""Confidence below which a label is doubtful: more probably wrong than right."""
N_STEPS = 40
"""Steps of the walk. On digits, faces and objects 20 to 100 tell right from wrong labels about equally well."""

MAX_COLUMNS = 256
"""Numbers kept of a profile; with more clusters, profiles are projected at random, which keeps distances."""

N_REFERENCES = 2000
"""Points that the others are compared with where a method leaves no graph."""

BY_GRAPH = (1.393, 0.6428, 0.1666, -3.791, 0.1801, -0.02331)
"""Of a label: walk, support, weight that stays in its cluster, mean return of the splits, log k; constant."""

BY_SEARCH = (1.158, 0.544, -1.632, -2.121, 0.2307, 1.377, 0.642, 1.482, -1.456)
"""The same after a search, then consensus of the settings, agreement of the winner, its stability; constant."""


@dataclass(frozen=True)
class Memberships:
    """How well the samples suit their clusters; clusters are counted 0, 1, ... in the order of their labels.

    Attributes
    ----------
    walk : array of shape (n,), from 0 to 1
    margin : array of shape (n,), distance to the second-best cluster minus distance to the own one
    second : array of shape (n,), position of the second-best cluster; −1 where walks reach no other
    support : array of shape (n,), largest share of the sample's weight that one cluster receives in one or two steps
    nearest : array of shape (k,), position of the cluster with the most similar profile; −1 if none is reached
    """

    walk: Array
    margin: Array
    second: Labels
    support: Array
    nearest: Labels


@dataclass(frozen=True, repr=False)
class Summary:
    """What is known of every sample and every cluster.

    Attributes
    ----------
    labels : array of shape (n,)
    confidence : array of shape (n,), probability that the label is right
    margin : array of shape (n,)
    second_cluster : array of shape (n,), label of the second-best cluster; −1 where there is none
    fits_nowhere : array of shape (n,) of bool
    clusters : array of shape (k,), the labels that occur; the fields below follow its order
    sizes : array of shape (k,)
    tightness : array of shape (k,), share of the weight of a cluster's edges that stays inside
    mean_confidence : array of shape (k,)
    nearest : array of shape (k,), label of the most similar cluster; −1 where there is none
    exemplars : list of k arrays, the most typical samples of each cluster, best first
    """

    labels: Labels
    confidence: Array
    margin: Array
    second_cluster: Labels
    fits_nowhere: Array
    clusters: Labels
    sizes: Labels
    tightness: Array
    mean_confidence: Array
    nearest: Labels
    exemplars: list[Labels]

    def columns(self) -> dict[str, Any]:
        """Return what is known of every sample beside its label, under the names that label files use."""
        return {
            "confidence": self.confidence.tolist(),
            "second_cluster": [None if label < 0 else label for label in self.second_cluster.tolist()],
            "doubtful": (self.confidence < UNSURE).tolist(),
            "margin": self.margin.tolist(),
            "fits_nowhere": self.fits_nowhere.tolist(),
        }

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per cluster."""
        flagged = np.bincount(np.searchsorted(self.clusters, self.labels), weights=self.fits_nowhere)
        return [
            {
                "cluster": int(label),
                "size": int(self.sizes[c]),
                "tightness": float(self.tightness[c]),
                "confidence": float(self.mean_confidence[c]),
                "nearest": int(self.nearest[c]),
                "fits_nowhere": int(flagged[c]),
                "exemplars": self.exemplars[c].tolist(),
            }
            for c, label in enumerate(self.clusters)
        ]

    def __repr__(self) -> str:
        """Return in a line what is known, not the arrays it is known from: those are attributes."""
        points, clusters = counted(len(self.labels), "point"), counted(len(self.clusters), "cluster")
        unsure, nowhere = int((self.confidence < UNSURE).sum()), int(self.fits_nowhere.sum())
        sure = f"median confidence {np.median(self.confidence):.2f}, {unsure} below {UNSURE}"
        return f"Summary({points} in {clusters}; {sure}; {counted(nowhere, 'fits', 'fit')} nowhere)"


def summarize(estimator: Any, X: Data | None = None, *, n_exemplars: int = 5) -> Summary:
    """Return confidence of every label and a description of every cluster of a fitted estimator.

    Parameters
    ----------
    estimator : fitted clusterer with ``labels_``, ours or another
    X : samples it was fitted to, default=None
        Needed only by methods that keep no graph (then the nearest of `N_REFERENCES` samples make one) and by those
        that keep no samples (then far samples are not looked for).
    n_exemplars : int, default=5
        Typical samples named for each cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import TRR
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> summary = summarize(TRR(2).fit(X))
    >>> summary.sizes, summary.confidence.min() > 0.5
    (array([20, 20]), np.True_)
    """
    labels = np.asarray(estimator.labels_)
    points = _points(estimator, X)
    W = getattr(estimator, "affinity_matrix_", None)
    with phase("Finding how sure each label is"):
        if W is None:
            if points is None:
                raise ValueError(f"{type(estimator).__name__} keeps no graph: give the points X it was fitted to.")
            W = neighbor_graph(points)
        known = getattr(estimator, "confidence_", None)
        return summarize_graph(W, labels, points, confidence=known, n_exemplars=n_exemplars)


def graph_confidence(
    W: Sparse, codes: Labels, found: Memberships, tree: ClusterTree | None = None, search: Agreement | None = None
) -> Array:
    """Return the probability that each label is right, from the graph and, where there was one, from a search.

    Parameters
    ----------
    W, codes : graph and cluster of each sample, 0, 1, ...
    found : :func:`memberships` of them
    tree : of the same graph and labels, made here if it is not given
    search : what other settings say
    """
    tree = cluster_tree(W, codes) if tree is None else tree
    features = graph_features(W, codes, found, tree)
    if search is not None:
        features = search_features(features, search)
    sizes = np.bincount(codes)
    alone = np.asarray(W.sum(axis=1)).ravel() == 0  # nothing is known of a sample without edges
    doubt = 0.0 if search is None else search.doubt
    return np.where(alone, 1 / len(sizes), probability_right(features, sizes[codes], doubt))


def summarize_graph(
    W: Sparse,
    labels: Labels,
    X: Data | None = None,
    *,
    confidence: Array | None = None,
    n_exemplars: int = 5,
) -> Summary:
    """Summarize from the affinity W (n, n), the labels and, to find far samples, the samples themselves."""
    W = sparse.csr_array(W)
    clusters, codes = np.unique(labels, return_inverse=True)
    found = memberships(W, codes)
    sure = graph_confidence(W, codes, found) if confidence is None else confidence
    typical = float(np.median(found.support))
    least = 0.5 if typical >= 0.5 else typical / 2
    flagged = (found.support < least) & (W.nnz > 0)  # without any edge nothing is known of any sample
    if X is not None:
        flagged |= far_points(edge_distances(W, X))
    inside, total = _weights(W, codes)
    sizes = np.bincount(codes)
    with np.errstate(invalid="ignore", divide="ignore"):
        tightness = np.bincount(codes, inside) / np.bincount(codes, total)
    return Summary(
        labels=np.asarray(labels),
        confidence=sure,
        margin=found.margin,
        second_cluster=_names(clusters, found.second),
        fits_nowhere=flagged,
        clusters=clusters,
        sizes=sizes,
        tightness=np.nan_to_num(tightness, nan=0.0),
        mean_confidence=np.bincount(codes, sure) / sizes,
        nearest=_names(clusters, found.nearest),
        exemplars=_most_typical(found.margin, inside, flagged, codes, n_exemplars),
    )


def memberships(W: Sparse, codes: Labels) -> Memberships:
    """Compare the walks from each sample with those from each cluster; see the top of this module.

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Affinity: symmetric, not negative.
    codes : array of shape (n,)
        Cluster of each sample, counted 0, 1, ...
    """
    n, k = len(codes), int(codes.max()) + 1
    degree = np.asarray(W.sum(axis=1)).ravel()
    with np.errstate(divide="ignore"):
        step = sparse.diags_array(np.where(degree > 0, 1 / degree, 0).astype(W.dtype)) @ W
    support = _support(step, codes, k)
    if k == 1:
        none = np.full(1, -1, dtype=np.intp)
        alike = (degree > 0).astype(W.dtype)
        return Memberships(alike, alike.copy(), np.full(n, -1, dtype=np.intp), support, none)

    profiles, n_columns = _profiles(step, codes, degree, k), min(k, MAX_COLUMNS)
    sizes = np.bincount(codes, minlength=k)
    to_mean = sparse.csr_array((1 / sizes[codes], (codes, np.arange(n))), shape=(k, n)).astype(W.dtype)
    centres = to_mean @ profiles
    lengths = np.einsum("ij,ij->i", centres, centres)
    own, other = np.empty(n, dtype=W.dtype), np.empty(n, dtype=W.dtype)
    second = np.empty(n, dtype=np.intp)
    # inner products below this are rounding, or (projected profiles) chance: the walks never met
    tiny = 4 * np.finfo(W.dtype).eps if k == n_columns else 1e-6
    for start, stop in row_blocks(n, 8 * k):
        block, label = profiles[start:stop], codes[start:stop]
        best, second[start:stop] = _other(block, label, centres, lengths, tiny)
        # differences first: the squares above would lose half of the digits of a small distance
        own[start:stop] = np.linalg.norm(block - centres[label], axis=1)
        other[start:stop] = np.linalg.norm(block - centres[best], axis=1)
    isolated = degree == 0
    margin = np.where(isolated, 0, other - own)
    walk = np.clip(margin / np.maximum(np.maximum(own, other), np.finfo(W.dtype).tiny), 0, 1)
    second[isolated] = -1
    blocks = [np.arange(*bounds) for bounds in row_blocks(k, 8 * k)]
    nearest = np.concatenate([_other(centres[rows], rows, centres, lengths, tiny)[1] for rows in blocks])
    return Memberships(walk, margin, second, support, nearest)


def _other(profiles: Array, own: Labels, centres: Array, lengths: Array, tiny: float) -> tuple[Labels, Labels]:
    """Return the nearest centre but the own of each profile; and the same, −1 where their walks never met."""
    rows = np.arange(len(profiles))
    overlap = profiles @ centres.T
    square = lengths - 2 * overlap  # without the constant 1: only the order counts
    square[rows, own] = np.inf
    best = square.argmin(axis=1)
    return best, np.where(overlap[rows, best] > tiny, best, -1)


def walk_ends(W: Sparse, codes: Labels) -> Array:
    """Return the share of the walks from each sample that end in each cluster, shape (n, k)."""
    n, k = len(codes), int(codes.max()) + 1
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    with np.errstate(divide="ignore"):
        step = sparse.diags_array(np.where(degree > 0, 1 / degree, 0)) @ sparse.csr_array(W)
    position = np.zeros((n, k))
    position[np.arange(n), codes] = 1
    for _ in range(N_STEPS):
        position += step @ position
        position /= 2
    return position


def _profiles(step: Sparse, codes: Labels, degree: Array, k: int) -> Array:
    """Return where walks end, per weight of each cluster, rows of length 1.

    At most `MAX_COLUMNS` numbers per sample.
    """
    n, dtype = len(codes), step.dtype
    volume = np.maximum(np.bincount(codes, degree, minlength=k), np.finfo(dtype).tiny)
    scale = volume.min() / volume
    if k <= MAX_COLUMNS:
        position = np.zeros((n, k), dtype=dtype)
        position[np.arange(n), codes] = scale[codes]
    else:
        directions = np.random.default_rng(0).normal(size=(k, MAX_COLUMNS)) / np.sqrt(MAX_COLUMNS)
        position = (scale[:, np.newaxis] * directions)[codes].astype(dtype)
    for _ in range(N_STEPS):
        position += step @ position
        position /= 2
    length = np.linalg.norm(position, axis=1, keepdims=True)
    return np.asarray(position / np.maximum(length, np.finfo(dtype).tiny), dtype=dtype)


def _support(step: Sparse, codes: Labels, k: int) -> Array:
    """Return largest share of a sample's weight that goes to one cluster, mean of one and two steps.

    Sparse all the way.
    """
    n = len(codes)
    indicator = sparse.csr_array((np.ones(n, dtype=step.dtype), (np.arange(n), codes)), shape=(n, k))
    once = sparse.csr_array(step @ indicator)
    shares = (once + step @ once) / 2
    return np.asarray(shares.max(axis=1).toarray()).ravel()


def neighbor_graph(X: Data, n_neighbors: int = 10) -> Sparse:
    """Tie each sample to the nearest of `N_REFERENCES` samples taken at equal steps; cost O(n), weights exp(−d²/r²).

    r is the distance of the last neighbour kept, so that the weights do not depend on the scale.
    """
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    references = np.unique(np.linspace(0, n - 1, min(n, N_REFERENCES)).astype(int))
    n_kept = min(n_neighbors + 1, len(references))
    distance, index = NearestNeighbors(n_neighbors=n_kept).fit(X[references]).kneighbors(X)
    radius = np.maximum(distance[:, -1:], np.finfo(distance.dtype).tiny)
    weight = np.exp(-((distance / radius) ** 2))
    target = references[index]
    weight[target == np.arange(n)[:, np.newaxis]] = 0  # a reference is no neighbour of itself
    rows = np.repeat(np.arange(n), n_kept)
    A = sparse.coo_array((weight.ravel(), (rows, target.ravel())), shape=(n, n)).tocsr()
    return A + A.T


def _points(estimator: Any, X: Data | None) -> Data | None:
    """Return samples as the method saw them: scaled; None for a precomputed kernel, whose rows are no samples."""
    if is_precomputed(getattr(estimator, "kernel", None)):
        return None
    fitted = getattr(estimator, "_predictor", None)
    if X is None:
        X = getattr(fitted, "X", None)
    if X is None:
        return None
    X = X if sparse.issparse(X) else np.asarray(X)
    scaling = getattr(fitted, "scaling", None)
    return X if scaling is None else apply_scaling(X if X.dtype.kind == "f" else X.astype(np.float64), scaling)


def _weights(W: Sparse, codes: Labels) -> tuple[Array, Array]:
    """Return the weight of each sample's edges to its own cluster, and to all."""
    edges = sparse.coo_array(W)
    same = codes[edges.row] == codes[edges.col]
    n = len(codes)
    return np.bincount(edges.row, edges.data * same, n), np.bincount(edges.row, edges.data, n)


def _most_typical(margin: Array, inside: Array, flagged: Array, codes: Labels, n_exemplars: int) -> list[Labels]:
    """Return members with the largest margin.

    Where that is the same to two digits, with the most weight in their cluster.

    A walk that stays in the cluster spends most of its time at the latter. On digits, faces and objects the margin
    picks members of the cluster's main class more often than the weight does.
    """
    order = np.lexsort((-inside, -np.round(margin, 2), flagged, codes))
    ends = np.cumsum(np.bincount(codes))
    starts = np.concatenate(([0], ends[:-1]))
    return [order[start : min(start + n_exemplars, end)] for start, end in zip(starts, ends, strict=True)]


def _names(clusters: Labels, positions: Labels) -> Labels:
    return np.where(positions < 0, -1, clusters[positions])


# ------------------------------------------------------------------------------------------------ calibration

FEW = 3
"""Points of a cluster that prove little: confidence is drawn towards one half by exp(−size / FEW)."""


_LEAD = 1e-6  # by which the own cluster is more probable than any other


class Agreement(NamedTuple):
    """What a search knows beside the graph."""

    consensus: Array  # of each sample, see subspaces.selection.criteria.consensus
    agreement: float  # of the winner with the settings most like it
    stability: float  # of its partition under removal of samples
    doubt: float = 0.0  # log odds that a search of the number takes away


def graph_features(W: Sparse, codes: Labels, found: Memberships, tree: ClusterTree) -> Array:
    """Return one row for each sample: walk, support, share of its cluster's weight that stays inside, gaps, number."""
    edges = sparse.coo_array(W)
    same = codes[edges.row] == codes[edges.col]
    total = np.bincount(codes[edges.row], edges.data, minlength=int(codes.max()) + 1)
    inside = np.bincount(codes[edges.row], edges.data * same, minlength=len(total))
    tight = np.divide(inside, total, out=np.zeros(len(total)), where=total > 0)
    k = tree.n_clusters
    splits = [tree.split(level) for level in range(1, min(k, tree.n_leaves))]
    back = float(np.mean(tree.returns[splits])) if splits else 0.0
    n = len(codes)
    columns = [found.walk, found.support, tight[codes], np.full(n, back), np.full(n, np.log(k))]
    return np.column_stack(columns).astype(np.float64)


def search_features(by_graph: Array, search: Agreement) -> Array:
    """Return the same, with what the search knows."""
    stability = search.stability if np.isfinite(search.stability) else search.agreement
    n = len(by_graph)
    return np.column_stack([by_graph, search.consensus, np.full(n, search.agreement), np.full(n, stability)])


def probability_right(features: Array, sizes_of_own: Array, doubt: float = 0.0) -> Array:
    """Return the probability that each label is right.

    Parameters
    ----------
    features : array of shape (n, 5) or (n, 8)
    sizes_of_own : array of shape (n,), samples in the cluster of each
    doubt : log odds to take away
    """
    weights = np.array(BY_GRAPH if features.shape[1] < len(BY_SEARCH) - 1 else BY_SEARCH)
    utility = features @ weights[:-1] + weights[-1] - doubt
    probability = 1 / (1 + np.exp(-np.clip(utility, -30, 30)))
    drawn: Array = 0.5 + (probability - 0.5) * (2 * certain(sizes_of_own) - 1)
    return drawn


def certain(sizes_of_own: Array) -> Array:
    """Return the largest probability that a label of a cluster of this size can have."""
    return np.asarray(1 - np.exp(-sizes_of_own / FEW) / 2)


def confidence_in_one(p_value: float) -> float:
    """Return the probability that a label is right where one cluster is reported, by the p-value of "one piece".

    At even odds before, the odds of one piece are at least −e p ln p (Sellke, Bayarri and Berger 2001) for p < 1/e;
    where there are classes instead, about half of the samples are in the largest.
    """
    p = np.clip(np.nan_to_num(p_value, nan=1.0), np.finfo(float).tiny, 1 / np.e)  # not tested is no evidence
    odds = -np.e * p * np.log(p)
    return float((odds + 0.5) / (odds + 1))


def soft_memberships(walks: Array, codes: Labels, confidence: Array) -> Array:
    """Return the probability of every cluster for every sample.

    The own one its confidence, the rest as walks end there.

    Parameters
    ----------
    walks : array of shape (n, k), where walks from each sample end
    codes : array of shape (n,), cluster of each sample
    confidence : array of shape (n,)

    No other cluster is given more than that, so the label stays the most probable one.
    """
    n, k = walks.shape
    if k == 1:
        return np.ones((n, 1))
    rows = np.arange(n)
    own = np.maximum(confidence, (1 + _LEAD) / k)
    others = np.maximum(walks, 1e-6)
    others[rows, codes] = 0
    others *= ((1 - own) / others.sum(axis=1))[:, None]
    others = np.minimum(others, (1 - _LEAD) * own[:, None])
    others[rows, codes] = 1 - others.sum(axis=1)
    return others
