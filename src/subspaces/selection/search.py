"""Scaling, kernel, penalty, truncation, cut and number of clusters from the samples alone.

Every setting that makes sense for the data gives a graph, every graph a partition
(:func:`subspaces.selection.graphs.suitable_cut` says by which cut). Then:

1. each partition is compared with those of all other settings; its agreement is the mean adjusted Rand index with the
   third of them that is most like it;
2. an affine subspace of 3, 4 and 6 dimensions is fitted to each of its clusters; its excess is the mean logarithm of
   what they leave over what those of the best partition leave;
3. the largest agreement − 0.3 × excess wins.

No label is looked at. The constants were chosen on data sets with labels, and ``docs/automatic.md`` says how well the
rule does on sets that were left out of that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse

from subspaces.kernels import is_precomputed
from subspaces.kernels.scaling import apply_scaling, fit_components, fit_scaling
from subspaces.selection import candidates
from subspaces.selection.candidates import AUTO, CUTS_TRIED, NEIGHBORS, PLANE, Setting, Tried, neighbouring, tried_on
from subspaces.selection.count import STEADY, ClusterCount, count_clusters, most_supported
from subspaces.selection.criteria import (
    consensus,
    leading_components,
    normalized_cut,
    stability,
    subspace_residuals,
    support,
)
from subspaces.selection.graphs import Candidate, Method, candidates_of, cut, plan_of_cut, recut, suitable_cut
from subspaces.selection.result import TOO_FEW, Kept, RunnerUp, Selection, Trial, name_of, sentence
from subspaces.selection.sampling import sample
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.partition import modularity
from subspaces.spectral.splits import MOST_POINTS, N_DRAWS, ONE_PIECE, one_piece
from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks
from subspaces.utils.choices import AssignLabels, Bandwidth, Effort, Ranking, Scaling
from subspaces.utils.components import N_COMPONENTS
from subspaces.utils.decompositions import eigh
from subspaces.utils.ordering import canonical_order, distinct_rows, hash_rows, rows_of
from subspaces.utils.process import one_thread, quiet
from subspaces.utils.progress import phase
from subspaces.utils.types import Array, Data, Labels

N_SEARCHED = 2500
"""Points the search looks at; of more it takes a sample."""

_EXCESS_WEIGHT = 0.3
_TIE = 1e-6  # scores that differ by less are equal: the setting tried first wins
_FEW_GRAPHS = 3
_OFTEN = 10  # copies of a row that make it a crowd
_REPEATED = 1.1  # copies of a row, on average, from which values are few: ties are broken alike in all settings
_N_TESTED = 4  # settings whose graphs tell whether there is more than one cluster
_SAME = 0.98  # adjusted Rand index from which two partitions are one answer
_SQUARES = 6.0  # arrays of the size of the searched samples' kernel matrix, on two threads, measured
_COPIES = 8.0  # and of the size of the searched samples
_OF_SETTING = {field.name for field in fields(Trial)} - {"kernel"}  # what a trial says of its setting


def choose(
    X: Data,
    *,
    n_clusters: int | str | None = AUTO,
    kernel: Any = AUTO,
    reg: float | str = AUTO,
    n_nonzero: int | str | None = AUTO,
    scaling: Scaling | Literal["auto"] | None = AUTO,
    assign_labels: AssignLabels | Literal["auto"] = AUTO,
    affine: bool | str = False,
    effort: Effort = "balanced",
    neighbors: bool = False,
    bandwidth: float | Bandwidth = "rms",
    kernel_params: Mapping[str, Any] | None = None,
    graph: Literal["auto", "symmetric", "column"] = "symmetric",
    by: Ranking = "magnitude",
    connect: bool = True,
    seed: int = 0,
    keep_partitions: bool = False,
    include: Labels | None = None,
) -> Selection:
    """Choose what is ``"auto"`` from the samples alone; what is given stays.

    Parameters
    ----------
    X : array of shape (n, m), dense or sparse; (n, n) with ``kernel="precomputed"``
    n_clusters, kernel, reg, n_nonzero, scaling, assign_labels, affine : a value or ``"auto"``
    effort : ``"fast"``, ``"balanced"`` or ``"thorough"``: how many settings are tried
    neighbors : whether the plain graph of nearest neighbours may win as well
    bandwidth, kernel_params, by, connect : as in :class:`~subspaces.KTRR`
    graph : ``"symmetric"``, ``"column"``, or ``"auto"``: symmetric, and for tracks of a film what suits them
    seed : of the sample, of k-means and of Leiden
    keep_partitions : keep the labels of every trial as well
    include : row numbers that are looked at whatever the sample is; the graphs of all settings are kept to be cut again

    Returns
    -------
    Selection

    Examples
    --------
    >>> from subspaces.datasets import make_subspaces
    >>> X, y = make_subspaces(4, dimension=3, ambient=20, n_samples=40, noise=0.01, random_state=0)
    >>> found = choose(X)
    >>> found.parameters["n_clusters"], len(found.trials)
    (4, 24)
    """
    if graph not in ("symmetric", "column", AUTO):
        raise ValueError(f'"auto" needs graph="symmetric" or "column", whose truncations are nested; got {graph!r}.')
    start = time.perf_counter()
    given = {"kernel": kernel, "reg": reg, "n_nonzero": n_nonzero, "scaling": scaling, "affine": affine}
    given["assign_labels"] = "modularity" if assign_labels == AUTO and n_clusters is None else assign_labels
    is_matrix = is_precomputed(kernel)
    with phase("Putting the points in order"):
        row_hashes = hash_rows(X)
        rows = canonical_order(X, row_hashes, pairwise=is_matrix)
        copies = np.ones(len(rows), dtype=np.intp)
        if not is_matrix:
            distinct = distinct_rows(row_hashes[rows])
            rows, copies = rows[distinct.rows], np.bincount(distinct.place)
    n_samples = len(rows)
    if n_samples > N_SEARCHED:
        with phase("Taking a sample"):
            some = sample(rows_of(X, rows, pairwise=is_matrix), N_SEARCHED, seed, pairwise=is_matrix)
            if include is not None:
                some = np.union1d(some, np.flatnonzero(np.isin(row_hashes[rows], row_hashes[include])))
            rows, copies = rows[some], copies[some]
    n_values = 0 if sparse.issparse(X) else len(rows) * X.shape[1]
    memory.require(
        int(8 * (_SQUARES * len(rows) ** 2 + _COPIES * n_values)),
        f'the search on {len(rows)} points for what is "auto"',
        "Give kernel, reg, n_nonzero, scaling and assign_labels to KTRR instead, or fewer features.",
    )
    part = rows_of(X, rows, pairwise=is_matrix)
    reduced = sparse.issparse(X) and not is_matrix and n_samples > candidates.LARGE
    n_components = N_COMPONENTS if reduced else None
    sizes: dict[str, Any] = {"n_samples": n_samples, "n_components": n_components}
    to_try = partial(tried_on, part, given, effort=effort, neighbors=neighbors, **sizes)
    known = None if graph != AUTO or isinstance(n_clusters, str) else n_clusters
    tried = to_try(n_clusters=known)
    rule: Literal["symmetric", "column"] = "symmetric" if graph == AUTO else graph
    method = Method(rule, by, bandwidth, kernel_params, connect, seed, known, n_components)
    # one BLAS thread: with two, the last digits decide between settings that are nearly equal, and it is hardly faster
    with quiet(), one_thread("blas"):  # whatever concerns the winner is said again by the final fit
        graphs = candidates_of(part, tried, method)
        if not graphs:
            raise ValueError("no setting gave a graph with an edge: check the points for rows of zeros, or the kernel.")
        count = None
        if n_clusters == AUTO:
            more = [] if len(graphs) >= _FEW_GRAPHS else candidates_of(part, neighbouring(tried, len(rows)), method)
            count = _counted([*graphs, *more], part, copies, method, is_matrix)
            counted = to_try(n_clusters=count.estimate) if graph == AUTO else tried
            if counted != tried:  # graphs that need the number
                tried, graphs = counted, candidates_of(part, counted, replace(method, n_clusters=count.estimate))
        k = count.estimate if count is not None else n_clusters
        assert not isinstance(k, str)

        def answer(k: int | None) -> tuple[list[Trial], list[Labels], list[int], Array, int, Candidate, float]:
            some = graphs if k is None or 1 < k <= part.shape[0] // 2 else graphs[:1]  # else nothing to choose by
            trials, partitions, of_graph = _all_cuts(some, tried, k)
            alike = pairwise_agreement(partitions)
            with phase("Comparing the answers"):
                trials = _scored(trials, partitions, alike, None if is_matrix else part, tried, method)
            best = _best(trials, n_samples)
            plan = plan_of_cut(some[of_graph[best]].plan, trials[best].assign_labels, k)
            graph = some[of_graph[best]].alone(plan)
            with phase("Checking how steady the answer is"):
                again = partial(recut, plan=plan)
                steady = np.nan if effort == "fast" else stability(graph.W, partitions[best], again, seed=seed)
            return trials, partitions, of_graph, alike[best], best, graph, steady

        trials, partitions, of_graph, alike, best, graph_of_best, steady = answer(k)
        if count is not None and (count := count.steadied(steady)).estimate != k:
            k = count.estimate
            trials, partitions, of_graph, alike, best, graph_of_best, _ = answer(k)
    winner = trials[best]
    setting = graph_of_best.setting
    found = {"n_clusters": k, **asdict(setting), "assign_labels": winner.assign_labels}
    asked = [
        name
        for name, value in {"n_clusters": n_clusters, **given, "assign_labels": assign_labels}.items()
        if value == AUTO
    ]
    copies = f" Copies counted once: {n_samples} of {X.shape[0]} rows were looked at." * (n_samples < X.shape[0])
    return Selection(
        parameters={name: found[name] for name in asked} | setting.own_graph(),
        winner=winner,
        trials=tuple(trials),
        reason=_reason(winner, graphs, tried, count) + copies,
        n_samples=X.shape[0],
        searched=rows,
        labels=partitions[best],
        runner_up=_runner_up(trials, alike, best),
        consensus=consensus(partitions, best, alike),
        n_clusters=count,
        stability=steady,
        seconds=time.perf_counter() - start,
        partitions=np.array(partitions, dtype=np.int32) if keep_partitions else None,
        kept=Kept([graph.alone() for graph in graphs], partitions, of_graph) if include is not None else None,
        graph=graph_of_best if len(rows) == n_samples else None,
    )


def _counted(graphs: list[Candidate], X: Data, copies: Labels, method: Method, is_matrix: bool) -> ClusterCount:
    """Return the number of clusters; where the settings do not decide, a test against one cluster does.

    `copies` says how often each sample occurs: chance repeats samples of few values as often. A few samples that each
    occur often are a cluster each.
    """
    with phase("Counting the clusters"):
        count = count_clusters(graphs, X.shape[1], method.seed)
    if X.shape[0] < TOO_FEW:
        n_kinds = X.shape[0] if copies.mean() >= _OFTEN else 1
        return replace(count, estimate=n_kinds, low=n_kinds, high=n_kinds, evidence="none", untested=n_kinds == 1)
    rows = np.repeat(np.arange(len(copies)), copies)
    if count.evidence == "gap" and len(rows) < _REPEATED * len(copies):
        return count
    views = [(X, graphs[0].setting.scaling)] if is_matrix else _views(graphs, X, method)
    p_value = 1.0
    with phase("Testing for one cluster", len(views) * (1 + 2 * N_DRAWS)) as step:
        for points, scaling in views:
            found = _one_piece(points, rows, _trusted(graphs, scaling), method, is_matrix, step)
            p_value = min(p_value, len(views) * found)
            if p_value <= ONE_PIECE:
                break
    return count.tested(p_value)


def _views(graphs: list[Candidate], X: Data, method: Method) -> list[tuple[Data, str | None]]:
    """Return the samples in the most trusted scaling, and in the next one or as unit rows.

    Subspaces meet at the origin, where samples of all of them are neighbours, and are apart as unit rows; clusters of
    which one lies about the origin are not.
    """
    tried = dict.fromkeys(graphs[i].setting.scaling for i in most_supported(graphs))
    if set(tried) == {None} and X.shape[1] > PLANE:
        tried["unit"] = None
    return [(_scaled(X, scaling, method), scaling) for scaling in list(tried)[:2]]


def _trusted(graphs: list[Candidate], scaling: str | None) -> tuple[Setting, ...]:
    """Return the most trusted settings of this scaling, one for each kernel and penalty."""
    order = [*most_supported(graphs), *range(len(graphs))]
    own = [graphs[i].setting for i in order if graphs[i].setting.scaling == scaling]
    own = own or [graphs[i].setting for i in order]
    alike = {(s.kernel, s.reg, s.affine): replace(s, scaling=None) for s in reversed(own)}
    return tuple(reversed(alike.values()))[:_N_TESTED]


def _one_piece(
    X: Data, rows: Labels, settings: tuple[Setting, ...], method: Method, is_matrix: bool, drawn: Callable[[], None]
) -> float:
    """P-value of "one piece" by the graphs of these settings; of a kernel matrix by samples whose products it holds."""

    def graphs_of(points: Array) -> list[Any]:
        seen = points @ points.T
        if not is_matrix:  # what was drawn is seen as the samples are: in canonical order, copies once
            row_hashes = hash_rows(points)
            rows = canonical_order(points, row_hashes)
            seen = points[rows[distinct_rows(row_hashes[rows]).rows]]
        found = candidates_of(seen, Tried(settings, CUTS_TRIED), method, find=False)
        drawn()
        return [graph.W for graph in found]

    if is_matrix:
        some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], MOST_POINTS)).astype(int)
        values, vectors = eigh(np.asarray(X[some][:, some], dtype=np.float64))
        X, rows = vectors * np.sqrt(np.maximum(values, 0)), np.arange(len(some))
    return one_piece(X, rows, graphs_of, seed=method.seed)


def _reason(winner: Trial, graphs: list[Candidate], tried: Tried, count: ClusterCount | None) -> str:
    if count is not None and count.untested:
        return "One cluster, because the points are too few to test for more."
    if count is not None and count.estimate == 1:
        return (
            "One cluster, because no split of the points is clearer than in one cloud made by chance "
            f"(p = {count.p_value:.2g}; groups are reported below {ONE_PIECE:g}), and the settings do not agree on any "
            f"division of it ({count.agreed:.2f} of 1; {STEADY:g} would be steady)."
        )
    return sentence(winner, len(graphs), tried.scaling_reason) + tried.kind_reason


def _all_cuts(
    graphs: list[Candidate], tried: Tried, n_clusters: int | None
) -> tuple[list[Trial], list[Labels], list[int]]:
    """Return every graph cut in the way that suits it, side by side, and which graph each trial is of.

    The graphs to trust are cut agglomeratively as well, which alone keeps small clusters beside large ones.
    """
    ways = [(i, suitable_cut(graph, n_clusters, tried.cuts)) for i, graph in enumerate(graphs)]
    if n_clusters is not None and "agglomerative" in tried.cuts:
        ways += [(i, "agglomerative") for i in most_supported(graphs)]

    def one(start: int, stop: int) -> tuple[Trial, Labels]:
        number, method = ways[start]
        graph = graphs[number]
        setting = graph.setting
        labels = np.unique(cut(graph, method, n_clusters), return_inverse=True)[1].astype(np.intp)
        trial = Trial(
            **{name: value for name, value in asdict(setting).items() if name in _OF_SETTING},
            kernel=name_of(setting.kernel),
            assign_labels=method,
            n_communities=int(graph.communities.max()) + 1,
            n_components=graph.n_components,
            modularity=modularity(graph.W, labels),
            normalized_cut=normalized_cut(graph.W, labels),
        )
        step()
        return trial, labels

    with phase("Cutting the graphs of all settings", len(ways)) as step:
        found = map_blocks(one, [(i, i + 1) for i in range(len(ways))])
    return [trial for trial, _ in found], [labels for _, labels in found], [number for number, _ in ways]


def _scored(
    trials: list[Trial], partitions: list[Labels], alike: Array, X: Data | None, tried: Tried, method: Method
) -> list[Trial]:
    """Return agreement, excess and score of every trial; X None, or samples in the plane, have no subspaces."""
    agreement = support(alike)
    excess = np.full(len(trials), np.nan)
    if X is not None and X.shape[1] > PLANE and len(trials) > 1:
        scalings = dict.fromkeys(setting.scaling for setting in tried.settings)
        excess = np.mean([_excess(_scaled(X, scaling, method), partitions) for scaling in scalings], axis=0)
    score = agreement - _EXCESS_WEIGHT * np.nan_to_num(excess)
    return [
        replace(trial, agreement=float(a), excess=float(e), score=float(s))
        for trial, a, e, s in zip(trials, agreement, excess, score, strict=True)
    ]


def _scaled(X: Data, scaling: str | None, method: Method) -> Data:
    X = X.astype(np.float64, copy=False)
    return apply_scaling(X, fit_components(X, fit_scaling(X, scaling), method.n_components, method.seed))


def _excess(points: Data, partitions: Sequence[Labels]) -> Array:
    """Return mean over the dimensions of log(residual / smallest residual of all partitions)."""
    components = leading_components(points)
    floor = 1e-9 * max(float(np.square(components).sum()), np.finfo(np.float64).tiny)
    residuals = np.log(np.maximum(subspace_residuals(components, partitions), floor))
    mean: Array = (residuals - residuals.min(axis=0)).mean(axis=1)
    return mean


def _best(trials: list[Trial], n_samples: int) -> int:
    """Return the first of the largest scores; a graph of neighbours cannot be fitted to very many samples."""
    scores = np.array([trial.score for trial in trials])
    allowed = np.array([trial.kernel != NEIGHBORS or n_samples <= candidates.LARGE for trial in trials])
    scores[~allowed] = -np.inf if allowed.any() else scores[~allowed]
    return int(np.argmax(scores >= scores.max() - _TIE))


def _runner_up(trials: list[Trial], alike: Array, best: int) -> RunnerUp | None:
    """Return the trial of largest score whose partition is not (nearly) the winner's."""
    scores = np.nan_to_num([trial.score for trial in trials], nan=-np.inf)
    for i in np.argsort(-scores, kind="stable"):
        if alike[i] < _SAME:
            return RunnerUp(trials[i], min(1.0, float(np.exp(scores[i] - scores[best]))), float(alike[i]))
    return None
