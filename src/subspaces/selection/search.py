"""Kernel, scaling, penalty, truncation, cut and number of clusters from the points alone.

Every setting of a small grid gives a graph, every graph a partition. Then:

1. of the two cuts of a graph the one with the larger modularity − normalised cut stays: modularity overlooks small
   clusters, the normalised cut overlooks how many points a cut misplaces;
2. each partition is compared with those of all other settings; its agreement is the mean adjusted Rand index with the
   5 % most similar to it;
3. the largest agreement² × modularity / ceiling wins, the ceiling being the modularity these clusters would have
   without an edge between them: modularity alone would prefer clusters of one size.

No label is looked at, and nothing here was fitted to one: the constants are round numbers, and halving or doubling
them changes little (``docs/selection.md``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from subspaces.engine.run import Cache
from subspaces.kernels import is_precomputed
from subspaces.numerics import memory
from subspaces.numerics.ordering import canonical_order, fingerprints, rows_of
from subspaces.numerics.process import one_thread, quiet
from subspaces.numerics.ties import first_largest, levels
from subspaces.numerics.types import Data, Labels
from subspaces.selection.candidates import AUTO, Grid, make_grid, neighbouring
from subspaces.selection.count import count_clusters
from subspaces.selection.criteria import (
    eigengap,
    modularity,
    modularity_ceiling,
    normalized_cut,
    pairwise_agreement,
    stability,
    support,
)
from subspaces.selection.cuts import cut, plan_of_cut, recut
from subspaces.selection.graphs import Candidate, candidates_of, search_cache
from subspaces.selection.result import RunnerUp, Selection, Trial, name_of, sentence

N_SEARCHED = 2500
"""Points the search looks at; of more it takes a random sample."""

_LEAST_CEILING = 0.3  # five sixths of all points in one cluster: separating a few crumbs is no merit
_FEW_GRAPHS = 6
_SAME = 0.98  # adjusted Rand index from which two partitions are one answer
_SQUARES = 5.5  # arrays of the size of the searched points' kernel matrix, measured


def choose(
    X: Data,
    *,
    n_clusters: int | str | None = AUTO,
    kernel: Any = AUTO,
    reg: float | str = AUTO,
    n_nonzero: int | str | None = AUTO,
    scaling: str | None = AUTO,
    partition: str = AUTO,
    bandwidth: float | str = "rms",
    kernel_params: Mapping[str, Any] | None = None,
    graph: str = "symmetric",
    by: str = "magnitude",
    connect: bool = True,
    seed: int = 0,
    keep_partitions: bool = False,
) -> Selection:
    """Choose what is ``"auto"`` for :class:`~subspaces.KTRR` from the points alone; what is given stays.

    Parameters
    ----------
    X : array of shape (n, m), dense or sparse; (n, n) with ``kernel="precomputed"``
    n_clusters, kernel, reg, n_nonzero, scaling, partition : a value or ``"auto"``
    bandwidth, kernel_params, graph, by, connect : as in :class:`~subspaces.KTRR`
    seed : of the sample, of k-means and of Leiden
    keep_partitions : keep the labels of every trial as well

    Returns
    -------
    Selection

    Examples
    --------
    >>> from subspaces.datasets import make_subspaces
    >>> X, y = make_subspaces(4, dimension=3, ambient=20, n_points=40, noise=0.01, random_state=0)
    >>> found = choose(X)
    >>> found.parameters["n_clusters"], len(found.trials)
    (4, 144)
    """
    if graph not in ("symmetric", "column"):
        raise ValueError(f'"auto" needs graph="symmetric" or "column", whose truncations are nested; got {graph!r}.')
    start = time.perf_counter()
    given = {
        "n_clusters": n_clusters,
        "kernel": kernel,
        "reg": reg,
        "n_nonzero": n_nonzero,
        "scaling": scaling,
        "partition": "modularity" if partition == AUTO and n_clusters is None else partition,
    }
    is_matrix = is_precomputed(kernel)
    rows = canonical_order(X, fingerprints(X), pairwise=is_matrix)[sample(X.shape[0], seed)]
    memory.require(
        int(8 * _SQUARES * len(rows) ** 2),
        f'the search on {len(rows)} points for what is "auto"',
        "Give kernel, reg, n_nonzero, scaling and partition instead.",
    )
    part = rows_of(X, rows, pairwise=is_matrix)
    values = {name: value for name, value in given.items() if name != "n_clusters"}
    grid = make_grid(part, n_points=X.shape[0], **values)
    # one BLAS thread: with two, the last digits decide between settings that are nearly equal, and it is hardly faster
    with quiet(), one_thread("blas"):  # whatever concerns the winner is said again by the final fit
        cache = search_cache()
        build = partial(
            candidates_of,
            part,
            cache=cache,
            graph=graph,
            by=by,
            bandwidth=bandwidth,
            kernel_params=kernel_params,
            connect=connect,
            seed=seed,
        )
        graphs = list(build(grid=grid))
        if not graphs:
            raise ValueError("no setting gave a graph with an edge: check the points for rows of zeros, or the kernel.")
        count = None
        if n_clusters == AUTO:
            more = [] if len(graphs) >= _FEW_GRAPHS else build(grid=neighbouring(grid, part.shape[0]))
            count = count_clusters([*graphs, *more], seed)
        k = count.estimate if count is not None else n_clusters
        assert not isinstance(k, str)
        tried = graphs if k is None or 1 < k <= part.shape[0] // 2 else graphs[:1]  # nothing to choose by otherwise
        trials, partitions = _all_cuts(tried, grid, k, part, cache)
        trials = _scored(trials, partitions, len(grid.cuts))
        best = int(first_largest(np.nan_to_num([trial.score for trial in trials], nan=-1.0)))
        winner, chosen = trials[best], tried[best // len(grid.cuts)]
        runner_up = _runner_up(trials, partitions, best)
        again = partial(recut, plan=plan_of_cut(chosen.plan, winner.partition, k))
        steady = stability(chosen.W, partitions[best], again, seed=seed)
    setting = chosen.setting
    found = {"n_clusters": k, **asdict(setting), "partition": winner.partition}
    asked = [name for name, value in {**given, "partition": partition}.items() if _is_auto(value)]
    return Selection(
        parameters={name: found[name] for name in asked},
        winner=winner,
        trials=tuple(trials),
        reason=sentence(winner, len(tried), grid.scaling_reason),
        n_points=X.shape[0],
        searched=rows,
        runner_up=runner_up,
        n_clusters=count,
        stability=steady,
        seconds=time.perf_counter() - start,
        partitions=np.array(partitions, dtype=np.int32) if keep_partitions else None,
    )


def sample(n: int, seed: int) -> Labels:
    """The points to search on: all of them, or a random N_SEARCHED."""
    if n <= N_SEARCHED:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, N_SEARCHED, replace=False))


def _all_cuts(
    graphs: list[Candidate], grid: Grid, n_clusters: int | None, X: Data, cache: Cache
) -> tuple[list[Trial], list[Labels]]:
    """Every graph cut in every way, the cuts of one graph side by side."""
    trials, partitions = [], []
    for graph in graphs:
        for method in grid.cuts:
            labels, eigenvalues = cut(graph, X, method, n_clusters, cache)
            labels = np.unique(labels, return_inverse=True)[1].astype(np.intp)
            setting = graph.setting
            trials.append(
                Trial(
                    scaling=setting.scaling,
                    kernel=name_of(setting.kernel),
                    reg=setting.reg,
                    n_nonzero=setting.n_nonzero,
                    partition=method,
                    n_communities=int(graph.communities.max()) + 1,
                    n_components=graph.n_components,
                    eigengap=eigengap(eigenvalues, n_clusters or 0) if len(eigenvalues) else float("nan"),
                    leave_one_out=graph.leave_one_out,
                    modularity=modularity(graph.W, labels),
                    ceiling=modularity_ceiling(graph.W, labels),
                    normalized_cut=normalized_cut(graph.W, labels),
                )
            )
            partitions.append(labels)
    return trials, partitions


def _scored(trials: list[Trial], partitions: list[Labels], n_cuts: int) -> list[Trial]:
    """Choose the cut of each graph, compare the chosen partitions, and enter agreement and score."""
    quality = np.array([trial.modularity - trial.normalized_cut for trial in trials]).reshape(-1, n_cuts)
    chosen = np.arange(len(quality)) * n_cuts + first_largest(quality, axis=1)
    agreement = support(pairwise_agreement([partitions[i] for i in chosen]))
    trials = list(trials)
    for i, value in zip(chosen, agreement, strict=True):
        fit = max(trials[i].modularity, 0.0) / max(trials[i].ceiling, _LEAST_CEILING)
        trials[i] = replace(trials[i], agreement=float(value), score=float(max(value, 0.0) ** 2 * fit))
    return trials


def _runner_up(trials: list[Trial], partitions: list[Labels], best: int) -> RunnerUp | None:
    """The trial of largest score whose partition is not (nearly) the winner's."""
    scores = np.array([np.nan_to_num(trial.score, nan=0.0) for trial in trials])
    for i in np.argsort(levels(-scores), kind="stable"):
        if not scores[i] > 0:
            break
        similarity = pairwise_agreement([partitions[best], partitions[i]])[0, 1]
        if similarity < _SAME:
            return RunnerUp(trials[i], float(scores[i] / scores[best]), float(similarity))
    return None


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO
