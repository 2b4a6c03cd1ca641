"""Every method on every data set, several times; what fails is noted and the rest goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.cluster import KMeans

from subspaces import registry
from subspaces.datasets.loaders import load_named
from subspaces.inspection.comparison.compared import SECONDS, Comparison
from subspaces.metrics import CONSTANT, PAPER_SCORES, clustering_scores
from subspaces.spectral.partition import in_order
from subspaces.utils.types import Array, Labels

METRICS = (*PAPER_SCORES, SECONDS)
"""What is measured of every run: accuracy, NMI, ARI and pairwise F-score, and the time."""

KMEANS = "k-means"
BESIDE = (KMEANS, CONSTANT)
"""Rows that every comparison has: whoever does not beat them has found nothing."""

Listener: TypeAlias = Callable[[int, int, str], None]
"""Told of every run: how many are done, of how many, and what is next."""


def compare(
    methods: Any,
    datasets: Any,
    *,
    n_runs: int = 10,
    n_clusters: str | int | None = "classes",
    random_state: int = 0,
    progress: bool | Listener | None = None,
) -> Comparison:
    """Run methods on data sets several times and score every run, with k-means and a constant labelling beside.

    Parameters
    ----------
    methods : mapping from names to estimators
        Anything with ``fit_predict``, of this package, of scikit-learn or your own; or names such as ``"ktrr"`` (also
        as a list of them) for a method with its defaults. They are cloned, never changed.
    datasets : mapping from names to pairs (X, y), or names
        A name, or a list of names, of the catalogue: :func:`~subspaces.datasets.load_named`.
    n_runs : int, default=10
        Runs that differ in `random_state`, where a method has such a parameter.
    n_clusters : "classes", int or None, default="classes"
        What the parameter `n_clusters` of each method is set to: the number of classes of the data set, a number, or
        (None) nothing.
    random_state : int, default=0
        Seed of the first run; the others count on from it.
    progress : bool or callable, default=None
        A bar with the time left on standard error: by default where a person is watching. A function is called with
        (runs done, runs in all, what is next).

    Returns
    -------
    Comparison
        A method that fails on a data set leaves a gap with its error there; everything else goes on.

    Examples
    --------
    >>> from subspaces import TRR, compare
    >>> from subspaces.datasets import make_subspaces
    >>> found = compare({"mine": TRR()}, {"three planes": make_subspaces(3, 2, 20, 30, random_state=0)}, n_runs=3)
    >>> found.methods
    ('mine', 'k-means', 'constant label')
    >>> round(float(found.mean("AC")[0, 0]), 2)
    1.0
    """
    estimators = _estimators(methods)
    points = _points(datasets)
    if not isinstance(n_runs, int) or n_runs < 1:
        raise ValueError(f"n_runs must be a whole number of at least 1; got {n_runs!r}")
    rivals = {**estimators, KMEANS: KMeans(n_init=10), CONSTANT: _Constant()}
    with _told(progress, len(rivals) * len(points) * n_runs) as listen:
        found = _scored(rivals, points, range(random_state, random_state + n_runs), n_clusters, listen)
    return Comparison(tuple(rivals), tuple(points), *found)


def _scored(
    rivals: dict[str, Any], points: dict[str, tuple[Any, Labels]], seeds: range, n_clusters: Any, listen: Listener
) -> tuple[dict[str, Array], dict[tuple[str, str], str], Array]:
    """Run every method on every data set: scores, what failed (it has no scores at all), runs that repeat others."""
    shape = (len(rivals), len(points), len(seeds))
    scores, repeated = {metric: np.full(shape, np.nan) for metric in METRICS}, np.zeros(shape, dtype=bool)
    gaps: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, bytes]] = set()
    trials = list(product(enumerate(points), enumerate(rivals), enumerate(seeds)))
    for done, ((j, data), (i, name), (run, seed)) in enumerate(trials):
        listen(done, len(trials), f"{name} on {data}")
        if (name, data) in gaps:
            continue
        of_data = n_clusters == "classes" or name == KMEANS
        k = len(np.unique(points[data][1])) if of_data else n_clusters
        found = _run(rivals[name], *points[data], k, seed)
        if isinstance(found, str):
            gaps[name, data] = found
            for values in scores.values():
                values[i, j] = np.nan
            continue
        measured, partition = found
        for metric, values in scores.items():
            values[i, j, run] = measured[metric]
        repeated[i, j, run] = (name, data, partition) in seen
        seen.add((name, data, partition))
    listen(len(trials), len(trials), "")
    return scores, gaps, repeated


def _run(estimator: Any, X: Any, y: Labels, k: Any, seed: int) -> tuple[dict[str, float], bytes] | str:
    """Scores and seconds of one run, and its partition, whatever the clusters are called; an error as one line."""
    try:
        model = _settled(estimator, k, seed)
        start = time.perf_counter()
        labels = model.fit_predict(X)
        seconds = time.perf_counter() - start
        found = clustering_scores(y, labels)
        partition = blake2b(in_order(np.asarray(labels)).tobytes()).digest()
    except Exception as error:  # whatever a method throws, the others go on
        return " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".")
    return {**{short: found[long] for short, long in PAPER_SCORES.items()}, SECONDS: seconds}, partition


class _Constant:
    """All points in one cluster."""

    def fit_predict(self, X: Any) -> Labels:
        return np.zeros(X.shape[0], dtype=np.intp)


def _settled(estimator: Any, k: Any, seed: int) -> Any:
    """A copy with the number of clusters and the seed of this run, in the outermost parameters of those names."""
    if not hasattr(estimator, "get_params"):
        return estimator
    model = clone(estimator)
    wanted = {"random_state": seed, **({} if k is None else {"n_clusters": k})}
    for name, value in wanted.items():
        keys = [key for key in model.get_params() if key.rpartition("__")[2] == name]
        least = min((key.count("__") for key in keys), default=0)
        model.set_params(**{key: value for key in keys if key.count("__") == least})
    return model


def _estimators(methods: Any) -> dict[str, Any]:
    """Estimators by name; checked before anything runs."""
    if isinstance(methods, str):
        methods = [methods]
    if not isinstance(methods, Mapping) and not all(isinstance(method, str) for method in methods):
        raise TypeError("methods must be a mapping from names to estimators, or names such as 'ktrr'")
    named = methods if isinstance(methods, Mapping) else {name: name for name in methods}
    found = {str(name): registry.load(each)() if isinstance(each, str) else each for name, each in named.items()}
    for name, estimator in found.items():
        if name in BESIDE:
            raise ValueError(f"methods must not name a row {name!r}, every comparison adds its own: rename it")
        if isinstance(estimator, type) or not hasattr(estimator, "fit_predict"):
            raise TypeError(f"methods[{name!r}] must be an estimator with fit_predict; got {estimator!r}")
    if not found:
        raise ValueError("methods must name at least one method; got none")
    return found


def _points(datasets: Any) -> dict[str, tuple[Any, Labels]]:
    """Points and classes by name; loaded and checked before anything runs."""
    if isinstance(datasets, str):
        datasets = [datasets]
    if not isinstance(datasets, Mapping):
        datasets = _named_pairs(datasets)
    found = {}
    for name, data in datasets.items():
        X, y = load_named(data) if isinstance(data, str) else _pair(data, name)
        y = np.asarray(y)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if y.shape != (n,):
            raise ValueError(f"datasets[{name!r}] must have one class for each of its {n} points; got y of {y.shape}")
        try:
            clustering_scores(y, y)
        except ValueError as error:
            raise ValueError(f"datasets[{name!r}] has classes that cannot be scored: {error}") from None
        found[str(name)] = (X if hasattr(X, "shape") else np.asarray(X), y)
    if not found:
        raise ValueError("datasets must hold at least one data set; got none")
    return found


def _named_pairs(datasets: Sequence[Any]) -> dict[str, Any]:
    """Names for a list: of the catalogue they name themselves, pairs are counted."""
    if len(datasets) == 2 and not isinstance(datasets[0], str | tuple | list):
        return {"data": datasets}  # a single pair
    return {data if isinstance(data, str) else f"data {i}": data for i, data in enumerate(datasets, start=1)}


def _pair(data: Any, name: object) -> tuple[Any, ArrayLike]:
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(
            f"datasets[{name!r}] must be a pair (X, y) or a name of the catalogue; got {type(data).__name__}"
        )
    return data[0], data[1]


@contextmanager
def _told(progress: bool | Listener | None, total: int) -> Iterator[Listener]:
    """Who is told how far it is: a function, or a bar."""
    if callable(progress):
        yield progress
        return
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda done, total, text: None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    columns = (*Progress.get_default_columns(), TextColumn("[dim]{task.fields[text]}", markup=True))
    console = Console(stderr=True)
    unseen = not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, transient=True, disable=unseen) as bar:
        task = bar.add_task("compare", total=total, text="")
        yield lambda done, total, text: bar.update(task, completed=done, text=text)
