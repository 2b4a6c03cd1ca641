"""KTRR of more samples than one process should hold: the caller's side, phase by phase.

Everything between the phases is in files, named by what they depend on, so that a run goes on where another ended. In
the checkpoint there are ``points-<name>`` (chunks sorted by shard, shards), ``graph-<name>`` (coefficients of blocks of
samples) and ``cut-<name>`` (the graph, groups, labels).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from subspaces.distributed import _blocks, _cut, _sample, _shards
from subspaces.distributed import _files as files
from subspaces.distributed._input import Source
from subspaces.distributed._output import Output
from subspaces.distributed._tasks import Workers, keep_freed_memory
from subspaces.engine.plan import DOUBLE, Plan, Shape
from subspaces.engine.predict import ByTrainingPoints
from subspaces.engine.validation import warn_of_bad_numbers
from subspaces.estimators.ktrr import KTRR
from subspaces.kernels.scaling import Scaling, apply_scaling
from subspaces.representation.nystrom import N_LANDMARKS, GlobalPart, choose_landmarks, settle_global_part
from subspaces.representation.two_scale import AROUND, candidates_for
from subspaces.utils import memory
from subspaces.utils.cells import build_cells
from subspaces.utils.choices import Spectral
from subspaces.utils.ordering import hash_rows
from subspaces.utils.process import one_thread, quiet, warn_caller
from subspaces.utils.types import Array, Labels

IN_MEMORY = 200_000
"""Samples up to which all of them are fetched and the engine runs here. A constant: labels must not depend on the
memory of a machine."""

_NEAR = 64  # shards around one whose cells are looked at
_DELIVERED = 2**22  # rows whose labels are brought back into the order given by one task
_GRAPHS = ("symmetric", "column", "mass")
_BESIDE = 230  # numbers that a task holds for each sample beside its features, measured at 10⁷ samples
_REMEDY = "Allow more, with fewer workers on a machine for instance, or let EKTRR cluster a sample and label the rest."


def fit_graph(estimator: KTRR, source: Source, workers: Workers, folder: Path, output: Output) -> None:
    """Fit the estimator: in memory up to :data:`IN_MEMORY` samples, in shards above where its route allows."""
    in_shards = source.shape[0] > IN_MEMORY and source.shape[0] != source.shape[1]
    if in_shards:
        estimator._validate_params()
        with estimator._fitting():
            in_shards = _fit_in_shards(estimator, source, workers, folder, output)
    if not in_shards:
        estimator.fit(source.whole(workers))
        output.keep(estimator)


def _fit_in_shards(estimator: KTRR, source: Source, workers: Workers, folder: Path, output: Output) -> bool:
    """Fit the estimator; return False where its solver or graph must see all samples at once."""
    n, estimator.n_features_in_ = source.shape
    bounds, pieces = source.pieces()
    _require_sample(source)
    start = perf_counter()
    look = _sample.look_at(pieces, bounds, workers)
    timings = {"look": perf_counter() - start}
    if (look.low == look.high).all():
        _one_cluster(estimator, look, n)
        output.take(estimator, iter([np.zeros(n, dtype=np.int32)]), n)
        return True
    plan = _planned(estimator, look.points, n)
    if plan.solver != "two_scale" or plan.graph.name not in _GRAPHS:
        return False
    _require_tasks(source, workers)
    warn_of_bad_numbers(look.points, plan.scaling)
    _Run(estimator, plan, source, workers, folder, look, pieces, bounds, timings).fit(output)
    return True


def _planned(estimator: KTRR, sample: Array, n: int) -> Plan:
    """Return the plan from a subset; it never embeds samples.

    Where few samples differ, the subset is small: the route is that of many samples all the same, so it is repeated.
    """
    sample = np.resize(sample, (max(len(sample), min(n, _sample.SAMPLE)), sample.shape[1]))
    if estimator.assign_labels == "agglomerative":
        raise ValueError(
            'assign_labels="agglomerative" needs the whole graph: use "modularity" or "kmeans" on workers.'
        )
    if estimator.spectral == "full" and estimator.assign_labels != "modularity":
        raise ValueError(
            f'spectral="full" embeds every sample, which {n} samples on workers are too many for: use spectral="auto".'
        )
    coarse: Spectral = "auto" if estimator.assign_labels == "modularity" else "coarse"
    asked = estimator.spectral
    try:
        estimator.spectral = coarse
        plan = estimator.plan(sample)
    finally:
        estimator.spectral = asked
    return replace(plan, shape=Shape(n, sample.shape[1], False))


def _require_sample(source: Source) -> None:
    """Refuse what this process has no room for: the subset, that of a piece, and both joined."""
    n, m = source.shape
    needed = 4 * min(n, _sample.SAMPLE) * m * source.dtype.itemsize
    memory.require(needed, f"a sample of {n} samples with {m} features", _REMEDY)


def _require_tasks(source: Source, workers: Workers) -> None:
    """Refuse what a task has no room for: a shard in two orders, or the samples around a block."""
    n, m = source.shape
    shard = 3 * min(n, _shards.SHARD) * m * source.dtype.itemsize
    block = min(n, AROUND) * (m + N_LANDMARKS + _BESIDE) * DOUBLE
    needed = max(shard, block)
    workers.require(needed, f"a task of the graph of {n} samples with {m} features", _REMEDY)


@dataclass
class _Run:
    """One run: its plan, its input, and where its files go."""

    estimator: KTRR
    plan: Plan
    source: Source
    workers: Workers
    checkpoint: Path
    look: _sample.Look
    pieces: Sequence[Any]
    bounds: Sequence[int]
    timings: dict[str, float]

    def fit(self, output: Output) -> None:
        """Run all phases."""
        n, plan = self.source.shape[0], self.plan
        with one_thread("blas"):
            with self._timed("look"):
                scaling = _sample.settle(self.look, self.pieces, n, plan.scaling, plan.kernel.sees_units, self.workers)
                sample = np.asarray(apply_scaling(self.look.points, scaling))
                work = self._work(plan.kernel.scaled(scaling.exponent).fit(sample))
            with self._timed("shards"):
                layout = self._sorted(work.points, sample, scaling)
            blocks = range(len(layout.tasks))
            with self._timed("coefficients"):
                model = self._global_part(work, len(layout.shards), sample)
                self._on_blocks(_blocks.represent, work, [work.graph / f"rows-{b}" for b in blocks], announce=True)
            with self._timed("graph"):
                self._on_blocks(_blocks.edges_of_block, work, [work.cut / f"edges-{b}" for b in blocks])
                self._on_blocks(_cut.group, work, [work.cut / f"groups-{b}" for b in blocks])
                sizes = [files.mapped(work.cut / f"groups-{b}" / "sizes.npy") for b in blocks]
                files.save(work.cut / "groups.npy", np.cumsum([0, *map(len, sizes)]))
                self._on_blocks(_cut.contract, work, [work.cut / f"contracted-{b}" for b in blocks])
            with self._timed("cut"):
                n_clusters = self._cut(work, np.concatenate(sizes))
            with self._timed("labels"):
                self._on_blocks(_cut.smooth, work, [work.cut / f"labels-{b}" for b in blocks])
                given, names = self._labels(work, layout, n_clusters)
        output.take(self.estimator, map(files.mapped, given), n)
        self._keep(scaling, model, sample, names, given)

    # ---------------------------------------------------------------- phases

    def _work(self, kernel: Any) -> _blocks.Work:
        """Return the arguments of the tasks; each folder's name stands for all that its files depend on."""
        plan, estimator, (n, m) = self.plan, self.estimator, self.source.shape
        n_candidates = min(candidates_for(plan.graph.n_nonzero), n - 1)
        known: dict[str, Any] = {"content": self.look.content, "shape": [n, m], "dtype": str(self.source.dtype)}
        known |= {"scaling": plan.scaling, "seed": plan.seed, "sample": _sample.SAMPLE}
        known |= {"shard": _shards.SHARD, "block": _shards.BLOCK}
        points = files.named_folder(self.checkpoint, "points", known)
        known = {"points": points.name, "kernel": files.identity_of(kernel), "reg": float(estimator.reg)}
        known |= {"affine": estimator.affine, "n_candidates": n_candidates, "around": AROUND}
        graph = files.named_folder(self.checkpoint, "graph", known)
        known = {"graph": graph.name, "rule": repr(plan.graph), "cut": repr(plan.cut), "seed": plan.seed}
        known |= {"n_clusters": plan.n_clusters, "connect": plan.connect}
        known |= {"groups": [_cut.MICRO_CLUSTERS, _cut.RESOLUTION]}
        cut = files.named_folder(self.checkpoint, "cut", known)
        by_modularity = plan.cut.method == "modularity"
        return _blocks.Work(points, graph, cut, kernel, plan.graph, n_candidates, by_modularity, plan.seed)

    def _sorted(self, folder: Path, sample: Array, scaling: Scaling) -> _shards.Layout:
        """Sort the samples into shards, through the chunks, and return their layout."""
        centres = _shards.shard_centres(sample, self.source.shape[0], self.plan.seed)
        if files.absent([folder / "centres.npy"]):
            files.save(folder / "centres.npy", centres)
        counts = files.load(folder / "counts.npy")
        if counts is None or files.absent([folder / f"shard-{shard}" for shard in np.flatnonzero(counts)]):
            parts = [(piece, a, b) for piece, (a, b) in zip(self.pieces, pairwise(self.bounds), strict=True) if a < b]
            splits = [folder / f"split-{a}-{b}" for _, a, b in parts]
            tasks = [(piece, a, path, scaling) for (piece, a, _), path in zip(parts, splits, strict=True)]
            self._phase(_shards.split, tasks, splits)
            counts = np.sum([np.diff(files.mapped(path / "bounds.npy")) for path in splits], axis=0)
            files.save(folder / "counts.npy", counts)
            there = np.flatnonzero(counts).tolist()
            self._phase(
                _shards.gather,
                [(folder, splits, s, self.plan.seed) for s in there],
                [folder / f"shard-{shard}" for shard in there],
            )
        if files.absent([folder / "layout"]):
            _shards.save_layout(_shards.make_layout(folder, counts, centres, _NEAR))
        return _shards.open_layout(folder)

    def _global_part(self, work: _blocks.Work, n_shards: int, sample: Array) -> GlobalPart:
        if files.absent([work.graph / "model"]):
            reg, affine = float(self.estimator.reg), self.estimator.affine
            frame = choose_landmarks(sample, work.kernel, N_LANDMARKS, work.seed, affine)
            tasks = [(work, frame, place) for place in range(n_shards)]
            self._phase(_blocks.add_up, tasks, [work.graph / f"sums-{place}" for place in range(n_shards)])
            _blocks.save_model(settle_global_part(frame, _blocks.read_sums(work, n_shards), reg), work.graph / "model")
        return _blocks.open_model(work)

    def _cut(self, work: _blocks.Work, sizes: Array) -> int:
        """Cut the graph between groups; return the number of clusters."""
        known = files.load(work.cut / "labels.npy")
        if known is None:
            n_blocks = len(work.layout.tasks)
            centroids = [files.mapped(work.cut / f"groups-{b}" / "centroids.npy") for b in range(n_blocks)]
            kept, reserve = (partial(_cut.contracted, work.cut, n_blocks, len(sizes), kind) for kind in ("kept", "all"))
            known = _cut.cut_groups(self.plan, work.kernel, kept(), reserve, sizes, np.concatenate(centroids))
            files.save(work.cut / "labels.npy", known)
        return int(known.max()) + 1

    def _labels(self, work: _blocks.Work, layout: _shards.Layout, n_clusters: int) -> tuple[list[Path], Labels]:
        """Write the labels of all samples in the order given; return the files, and the clusters' names."""
        lost: tuple[int, ...] = ()
        sizes, first = self._finished(work, layout, n_clusters, lost)
        if not sizes.all():
            lost = tuple(np.flatnonzero(sizes == 0).tolist())
            sizes, first = self._finished(work, layout, n_clusters, lost)
        names: Labels = np.full(n_clusters, -1, dtype=np.int32)
        there = np.flatnonzero(sizes)
        names[there[np.argsort(first[there])]] = np.arange(len(there))
        starts = range(0, layout.n, _DELIVERED)
        paths = [_cut.delivered_path(work, a) for a in starts]
        tasks = [(work, lost, names, a, min(a + _DELIVERED, layout.n)) for a in starts]
        self._phase(_cut.deliver, tasks, paths, anew=True)
        return paths, names

    def _finished(
        self, work: _blocks.Work, layout: _shards.Layout, n_clusters: int, lost: tuple[int, ...]
    ) -> tuple[Array, Array]:
        tasks = [(_cut.finish, work, n_clusters, lost, shard) for shard in range(len(layout.shards))]
        sizes, first = zip(*(found for _, found in self.workers.run(_alone, tasks)), strict=True)
        return np.sum(sizes, axis=0), np.min(first, axis=0)

    # ---------------------------------------------------------------- running tasks, keeping what was found

    def _on_blocks(
        self, function: Callable[..., Any], work: _blocks.Work, paths: list[Path], announce: bool = False
    ) -> None:
        self._phase(function, [(work, number) for number in range(len(paths))], paths, announce)

    def _phase(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        paths: list[Path],
        announce: bool = False,
        anew: bool = False,
    ) -> None:
        """Run the tasks whose results are not there."""
        missing = list(range(len(paths))) if anew else files.absent(paths)
        for number, _ in self.workers.run(_alone, [(function, *tasks[i]) for i in missing], announce):
            path = paths[missing[number]]
            if not files.is_whole(path, content=False):
                raise OSError(f"{path} was written by a worker and cannot be read here.")

    @contextmanager
    def _timed(self, name: str) -> Any:
        start = perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + perf_counter() - start

    def _keep(self, scaling: Scaling, model: GlobalPart, sample: Array, names: Labels, given: Sequence[Path]) -> None:
        """Set fitted attributes; new samples are labelled by the subset and the global part of all samples."""
        estimator, plan, rows = self.estimator, self.plan, self.look.rows
        of_sample = np.empty(len(rows), dtype=np.intp)
        for number, path in enumerate(given):
            inside = rows // _DELIVERED == number
            of_sample[inside] = files.mapped(path)[rows[inside] - number * _DELIVERED]
        estimator.n_clusters_ = int(names.max()) + 1
        estimator.kernel_, estimator.penalty_ = model.kernel, model.penalty
        estimator.solver_, estimator.timings_ = plan.solver, dict(self.timings)
        estimator.solver_reason_ = f"{plan.shape.n} samples are more than {IN_MEMORY}: in shards, through files"
        estimator._coefficients, estimator._embedding = None, None
        estimator._predictor = ByTrainingPoints(
            X=self.look.points,
            row_hashes=hash_rows(self.look.points),
            dtype=self.source.dtype.type,
            largest=self.look.largest,
            scaling=scaling,
            kernel=model.kernel,
            penalty=model.penalty,
            labels=of_sample,
            n_clusters=estimator.n_clusters_,
            n_nonzero=plan.graph.n_nonzero,
            rule="neighbors",
            cells=build_cells(sample, seed=plan.seed),
            affine=self.estimator.affine,
        )
        self.estimator._warn_if_fewer(estimator.n_clusters_, "too few samples differ, or the graph shows no more")


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task with one BLAS thread: rounding depends on their number."""
    keep_freed_memory()
    with one_thread("blas"):
        return function(*arguments)


def _one_cluster(estimator: KTRR, look: _sample.Look, n: int) -> None:
    if estimator.n_clusters not in (1, None):
        text = f"all {n} samples are equal: 1 cluster found instead of n_clusters={estimator.n_clusters}."
        warn_caller(text, ConvergenceWarning)
    with quiet():
        estimator.fit(np.repeat(look.points[:1], max(2, int(estimator.n_clusters or 2)), axis=0))
