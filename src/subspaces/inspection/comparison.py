"""Compare methods on data sets: several runs of each, scored and tested, as tables for a paper."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import joblib
import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import ParameterGrid

from subspaces import __version__, registry
from subspaces.datasets.loaders import load_named
from subspaces.inspection.citations import name_of
from subspaces.metrics import CONSTANT, PAPER_SCORES, clustering_scores
from subspaces.metrics.significance import LEVEL, Outcome, Ranking, friedman, holm, rank_sum, signed_rank
from subspaces.metrics.tables import Cell, Table, import_pandas
from subspaces.utils.atomic import write_text
from subspaces.utils.ordering import in_order
from subspaces.utils.progress import Watcher, phase, progress_to, shown
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

SECONDS = "seconds"
METRICS = (*PAPER_SCORES, SECONDS)
"""Measured of every run: accuracy, NMI, ARI and pairwise F-score, and the time."""

KMEANS = "k-means"
"""Row that every comparison has beside the constant labelling: a method that does not beat both found nothing."""

BEST = ", best by labels"
"""Ends the name of the row of a grid that shows the setting of the best accuracy: it has seen the classes."""

Metric: TypeAlias = Literal["AC", "NMI", "ARI", "F", "seconds"]


def compare(
    methods: Any,
    datasets: Any,
    *,
    n_runs: int = 10,
    n_clusters: Literal["classes"] | int | None = "classes",
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool | Watcher | None = None,
) -> Comparison:
    """Run methods on data sets several times and score every run, with k-means and a constant labelling beside.

    Parameters
    ----------
    methods : mapping from names to methods, or names
        A method is an estimator with ``fit_predict``, of this package, of scikit-learn or your own, which is cloned
        and never changed; a name such as ``"ktrr"`` or ``"KTRR"`` for one with its defaults; a pair (method, grid),
        the grid as for ``GridSearchCV``: two rows, the method as it is and, marked so, with the setting that is best
        by the classes of each data set; or labels made elsewhere, one for each sample, or a mapping from names of data
        sets to them.
    datasets : mapping from names to pairs (X, y), or names
        A name, or a list of names, of the catalogue: :func:`~subspaces.datasets.load_named`.
    n_runs : int, default=10
        Runs that differ in `random_state`, where a method has such a parameter.
    n_clusters : "classes", int or None, default="classes"
        Value of the parameter `n_clusters` of each method: the number of classes of the data set, a number, or (None)
        its own.
    random_state : int, default=0
        Seed of the first run; the others count on from it.
    n_jobs : int or None, default=None
        Processes that run methods side by side, as in scikit-learn: None is 1, −1 all. Seconds are then longer.
    checkpoint : path of a folder or None
        Where every run is kept when it is done; the same call, or one with more runs or methods, goes on from there.
    progress : bool or callable, default=None
        Show on standard error how far it is, by default on a terminal; or a function of (name, runs done, all runs).

    Returns
    -------
    Comparison
        A method that fails, or needs what is not installed, leaves a gap with its error; everything else goes on.

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
    rivals, data = _rivals(methods), _datasets(datasets)
    if not isinstance(n_runs, int) or n_runs < 1:
        raise ValueError(f"n_runs must be a whole number of at least 1; got {n_runs!r}")
    if checkpoint is not None:
        Path(checkpoint).mkdir(parents=True, exist_ok=True)
    rivals |= {KMEANS: [_Setting(KMeans(n_init=10))], CONSTANT: [_Setting(_Constant())]}
    cells = [(name, method, setting) for name in data for method, settings in rivals.items() for setting in settings]
    seeds = range(random_state, random_state + n_runs)
    made = (_task(*cell, data, n_clusters) for cell in cells)
    tasks = [joblib.delayed(_runs)(*task, seeds, _path_of(checkpoint, *task, seeds.start)) for task in made]
    shows = progress_to(progress) if callable(progress) else shown(progress is not False, lines=progress is True)
    found: dict[tuple[str, str], list[tuple[_Setting, Any]]] = {pair: [] for pair in product(rivals, data)}
    with shows, phase("Comparing methods", len(cells) * n_runs) as step:
        done = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        for (name, method, setting), runs in zip(cells, done, strict=True):
            found[method, name].append((setting, runs))
            step(n_runs)
    return _gathered(tuple(rivals), tuple(data), n_runs, found)


class _Setting(NamedTuple):
    """One way to run a method, with the parameters that a grid sets."""

    estimator: Any
    parameters: Mapping[str, Any] = {}


def _task(
    name: str, method: str, setting: _Setting, data: Mapping[str, tuple[Any, Any]], n_clusters: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the estimator of one cell of the table, its samples and classes, and the number of clusters."""
    X, y = data[name]
    of_data = n_clusters == "classes" or method == KMEANS
    estimator = setting.estimator.on(name, data) if isinstance(setting.estimator, _Given) else setting.estimator
    return estimator, X, y, len(np.unique(y)) if of_data else n_clusters


def _gathered(
    methods: tuple[str, ...], datasets: tuple[str, ...], n_runs: int, found: Mapping[tuple[str, str], Any]
) -> Comparison:
    """Return the scores of all cells; of a grid those of its best setting."""
    shape = (len(methods), len(datasets), n_runs)
    scores, repeated = {metric: np.full(shape, np.nan) for metric in METRICS}, np.zeros(shape, dtype=bool)
    gaps, settings = {}, {}
    for (i, method), (j, name) in product(enumerate(methods), enumerate(datasets)):
        tried = found[method, name]
        whole = [(setting, runs) for setting, runs in tried if not isinstance(runs, str)]
        if not whole:
            gaps[method, name] = tried[0][1]
            continue
        setting, runs = max(whole, key=lambda each: sum(run["AC"] for run in each[1]))  # of several the first
        if method.endswith(BEST):
            chosen = ", ".join(f"{key}={value}" for key, value in setting.parameters.items())
            failed = f" that ran, {len(tried) - len(whole)} failed" if len(whole) < len(tried) else ""
            settings[method, name] = f"{chosen}, the best AC of {counted(len(whole), 'setting')}{failed}"
        for metric, values in scores.items():
            values[i, j] = [run[metric] for run in runs]
        partitions = [run["partition"] for run in runs]
        repeated[i, j] = [partition in partitions[:run] for run, partition in enumerate(partitions)]
    return Comparison(methods, datasets, scores, gaps, repeated, settings)


def _path_of(
    checkpoint: str | PathLike[str] | None, estimator: Any, X: Any, y: Labels, k: Any, seed: int
) -> Path | str | None:
    """Return the file that keeps the runs of a cell, or in one line why there is none.

    It is named here and not where the runs are made: a class of a notebook can be looked up in this process only.
    """
    if checkpoint is None:
        return None
    known = (type(estimator).__qualname__, estimator, X, y, k, seed, __version__, sklearn.__version__)
    try:
        return Path(checkpoint) / f"runs-{joblib.hash(known)}.json"
    except Exception as error:  # what cannot be pickled, such as a function without a name
        return f"checkpoint cannot keep runs of {type(estimator).__name__}: {error.args[0]}"


def _runs(
    estimator: Any, X: Any, y: Labels, k: Any, seeds: range, path: Path | str | None
) -> list[dict[str, Any]] | str:
    """Return scores and partition of each run; an error as one line: a method that fails once has no scores at all."""
    if isinstance(path, str):
        return path
    done = [] if path is None else _kept(path)
    for seed in seeds[len(done) :]:
        run = _run(estimator, X, y, k, seed)
        if isinstance(run, str):
            return run
        done.append(run)
        if path is not None:
            write_text(path, json.dumps(done))
    return done[: len(seeds)]


def _kept(path: Path) -> list[dict[str, Any]]:
    """Return the runs that a file holds; none if it is missing or damaged."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        good = all(np.isfinite([float(run[metric]) for metric in METRICS]).all() and run["partition"] for run in runs)
    except (ValueError, TypeError, KeyError, OSError):
        return []
    return runs if isinstance(runs, list) and good else []


def _run(estimator: Any, X: Any, y: Labels, k: Any, seed: int) -> dict[str, Any] | str:
    """Return scores and seconds of one run, and a hash of its partition under any names; an error as one line."""
    try:
        model = _configured(estimator, k, seed)
        start = time.perf_counter()
        labels = model.fit_predict(X)
        seconds = np.nan if isinstance(model, _Given) else time.perf_counter() - start
        found = clustering_scores(y, labels)
        partition = blake2b(in_order(np.asarray(labels)).tobytes(), digest_size=16).hexdigest()
    except Exception as error:  # whatever a method throws, the others go on
        return " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".")
    scores = {short: float(found[long]) for short, long in PAPER_SCORES.items()}
    return {**scores, SECONDS: seconds, "partition": partition}


class _Constant:
    """All samples in one cluster."""

    def fit_predict(self, X: Any) -> Labels:
        return np.zeros(X.shape[0], dtype=np.intp)


class _Missing:
    """A method that cannot be loaded here."""

    def __init__(self, error: str) -> None:
        self.error = error

    def fit_predict(self, X: Any) -> Labels:
        raise ImportError(self.error)


class _Given:
    """Labels made elsewhere, of the one data set or by names of data sets."""

    def __init__(self, name: str, labels: Any) -> None:
        self.name, self.labels = name, labels

    def on(self, dataset: str, data: Mapping[str, Any]) -> _Given:
        """Return the labels of a data set, checked before anything runs; None where there are none."""
        labels, y = self.labels, data[dataset][1]
        if isinstance(labels, Mapping):
            labels = labels.get(dataset)
        elif len(data) > 1:
            raise ValueError(f"methods[{self.name!r}] must map names of data sets to labels: there are {len(data)}")
        if labels is not None:
            try:
                clustering_scores(y, labels)
            except ValueError as error:
                raise ValueError(f"methods[{self.name!r}] are no labels of {dataset!r}: {error}") from None
            labels = np.unique(np.asarray(labels), return_inverse=True)[1]
        return _Given(self.name, labels)

    def fit_predict(self, X: Any) -> Labels:
        if self.labels is None:
            raise ValueError("no labels were given for it")
        return np.asarray(self.labels)


def _configured(estimator: Any, k: Any, seed: int) -> Any:
    """Return a copy with the number of clusters and the seed of this run, in the outermost parameters so called."""
    if not hasattr(estimator, "get_params"):
        return estimator
    model = clone(estimator)
    wanted = {"random_state": seed, **({} if k is None else {"n_clusters": k})}
    for name, value in wanted.items():
        keys = [key for key in model.get_params() if key.rpartition("__")[2] == name]
        least = min((key.count("__") for key in keys), default=0)
        model.set_params(**{key: value for key in keys if key.count("__") == least})
    return model


def _rivals(methods: Any) -> dict[str, list[_Setting]]:
    """Return the settings of each row, checked before anything runs."""
    if isinstance(methods, str):
        methods = [methods]
    if not isinstance(methods, Mapping) and not all(isinstance(method, str) for method in methods):
        raise TypeError("methods must be a mapping from names to estimators, or names such as 'ktrr'")
    named = methods if isinstance(methods, Mapping) else {name: name for name in methods}
    found: dict[str, list[_Setting]] = {}
    for name, method in named.items():
        has_grid = isinstance(method, tuple) and len(method) == 2 and isinstance(method[1], Mapping | list)
        grid = method[1] if has_grid else None
        estimator = _method(str(name), method if grid is None else method[0])
        rows = {str(name): [_Setting(estimator)]}
        if grid is not None:
            made = [] if isinstance(estimator, _Missing) else list(ParameterGrid(grid))
            settings = [_Setting(clone(estimator).set_params(**each), each) for each in made]
            rows[f"{name}{BEST}"] = settings or [_Setting(estimator)]
        for row in rows:
            if row in (KMEANS, CONSTANT, *found):
                raise ValueError(f"methods must not name a row {row!r}, which the comparison has already: rename it")
        found |= rows
    if not found:
        raise ValueError("methods must name at least one method; got none")
    return found


def _method(name: str, given: Any) -> Any:
    """Return what is run for a value of `methods`."""
    if isinstance(given, str):
        try:
            return registry.load(name_of(given))()
        except ImportError as error:
            return _Missing(str(error))
    if isinstance(given, Mapping | list | tuple) or (hasattr(given, "__array__") and not hasattr(given, "fit_predict")):
        return _Given(name, given)
    if isinstance(given, type) or not hasattr(given, "fit_predict"):
        raise TypeError(f"methods[{name!r}] must be an estimator with fit_predict, or labels; got {given!r}")
    return given


def _datasets(datasets: Any) -> dict[str, tuple[Any, Labels]]:
    """Return samples and classes by name, loaded and checked before anything runs."""
    if isinstance(datasets, str):
        datasets = [datasets]
    if not isinstance(datasets, Mapping):
        if len(datasets) == 2 and not isinstance(datasets[0], str | tuple | list):
            datasets = {"data": datasets}  # a single pair
        else:
            names = (each if isinstance(each, str) else f"data {i}" for i, each in enumerate(datasets, start=1))
            datasets = dict(zip(names, datasets, strict=True))
    found = {}
    for name, data in datasets.items():
        if not isinstance(data, str) and (not isinstance(data, tuple | list) or len(data) != 2):
            kind = type(data).__name__
            raise TypeError(f"datasets[{name!r}] must be a pair (X, y) or a name of the catalogue; got {kind}")
        X, y = load_named(data) if isinstance(data, str) else data
        X, y = X if hasattr(X, "shape") else np.asarray(X), np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(
                f"datasets[{name!r}] must have one class for each of its {X.shape[0]} samples; got y of {y.shape}"
            )
        try:
            clustering_scores(y, y)
        except ValueError as error:
            raise ValueError(f"datasets[{name!r}] has classes that cannot be scored: {error}") from None
        found[str(name)] = (X, y)
    if not found:
        raise ValueError("datasets must hold at least one data set; got none")
    return found


@dataclass(frozen=True)
class Comparison:
    """Scores of methods on data sets, run by run; ``print(comparison)`` shows mean ± sd (ddof = 1) in percent.

    Attributes
    ----------
    methods, datasets : names, in the order given; k-means and the constant labelling come last
    scores : for each of AC, NMI, ARI, F (as fractions) and seconds an array (n_methods, n_datasets, n_runs), NaN where
        a method failed
    gaps : errors in one line by (method, data set)
    repeated : boolean array (n_methods, n_datasets, n_runs), True where an earlier run of the method found the same
        partition: tests between runs count it once. None: no run repeats another
    settings : what a grid took, by (method, data set), where the classes chose it: such rows are not tested or ranked
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Mapping[str, Array]
    gaps: Mapping[tuple[str, str], str]
    repeated: Array | None = None
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def n_runs(self) -> int:
        """Runs of each method on each data set."""
        return int(self.scores[SECONDS].shape[2])

    def mean(self, metric: Metric = "AC") -> Array:
        """Return the mean over the runs, (n_methods, n_datasets)."""
        return np.asarray(self._values(metric).mean(axis=2))

    def sd(self, metric: Metric = "AC") -> Array:
        """Return the standard deviation over the runs (ddof = 1), (n_methods, n_datasets); NaN for a single run."""
        values = self._values(metric)
        return np.asarray(values.std(axis=2, ddof=1)) if self.n_runs > 1 else np.full(values.shape[:2], np.nan)

    def signed_rank(self, metric: Metric = "AC", reference: str | None = None) -> dict[str, Outcome]:
        """Test one method against each other one over data sets: Wilcoxon's signed-rank test, p-values after Holm.

        `reference` is the method to compare with the others; left out, the first.
        """
        names = self._ranked()
        own = names[0] if reference is None else reference
        if own not in self.methods:
            raise ValueError(f"reference must be one of {', '.join(self.methods)}; got {own!r}")
        means = dict(zip(self.methods, self.mean(metric), strict=True))
        found = {}
        for name in [name for name in names if name != own]:
            both = np.isfinite(means[own]) & np.isfinite(means[name])
            if both.any():
                found[name] = signed_rank(means[own][both], means[name][both])
        adjusted = holm([test.pvalue for test in found.values()])
        return {name: found[name]._replace(pvalue=float(p)) for name, p in zip(found, adjusted, strict=True)}

    def ranking(self, metric: Metric = "AC", *, level: float = LEVEL) -> Ranking:
        """Rank the methods over data sets: Friedman's test, mean ranks and Nemenyi's critical difference.

        The constant labelling is not ranked. Data sets with a gap are left out: ranks need all methods.

        See Also
        --------
        subspaces.inspection.plots.CriticalDifferenceDisplay : the picture of it
        """
        names = self._ranked()
        means = self.mean(metric)[[self.methods.index(name) for name in names]].T
        whole = means[np.isfinite(means).all(axis=1)]
        if len(whole) < 2:
            raise ValueError(
                f"a ranking needs two data sets or more on which no method failed; there are {len(whole)} of "
                f"{len(self.datasets)}. Give more data sets, or see gaps."
            )
        return friedman(whole, names, level=level, best="min" if metric == SECONDS else "max")

    def _ranked(self) -> list[str]:
        return [name for name in self.methods if name != CONSTANT and not name.endswith(BEST)]

    def tables(self, metric: Metric | None = None) -> list[Table]:
        """Return a table for each data set; with a metric, one of methods (rows) and data sets (columns).

        The best mean, the constant labelling and settings chosen by the classes aside, is bold; † says that it differs
        from every other method by the exact rank-sum test of the runs at 0.05 (runs on the same data, that differ in
        the seed), ‡ by its normal approximation, where many runs are tied. Runs of a method that found the same
        partition count once; a method all of whose runs did so is not tested.
        """
        if metric is not None:
            return [self._table(metric, [(name, metric, j) for j, name in enumerate(self.datasets)])]
        return [self._table(data, [(name, name, j) for name in self.scores]) for j, data in enumerate(self.datasets)]

    def to_markdown(self, metric: Metric | None = None) -> str:
        """Return the `tables` as Markdown."""
        return "\n\n".join(table.to_markdown() for table in self.tables(metric)) + "\n"

    def to_latex(self, metric: Metric | None = None) -> str:
        """Return the `tables` as LaTeX with the package booktabs."""
        return "\n\n".join(table.to_latex() for table in self.tables(metric)) + "\n"

    def to_pandas(self, *, runs: bool = False) -> Any:
        """Return a DataFrame: mean and sd of every metric by data set and method; with `runs` one row for each run.

        Scores are fractions.
        """
        pandas = import_pandas()
        keys = [self.datasets, self.methods, range(self.n_runs)]
        index = pandas.MultiIndex.from_product(keys, names=["dataset", "method", "run"])
        frame = pandas.DataFrame({m: v.transpose(1, 0, 2).ravel() for m, v in self.scores.items()}, index=index)
        if runs:
            return frame
        groups = frame.groupby(level=["dataset", "method"], sort=False)
        return groups.agg([("mean", lambda x: x.mean()), ("sd", lambda x: x.std())])

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.tables()), f"* the best mean, {CONSTANT} aside"])

    def _values(self, metric: str) -> Array:
        if metric not in self.scores:
            raise ValueError(f"metric must be one of {', '.join(self.scores)}; got {metric!r}")
        return self.scores[metric]

    def _table(self, title: str, columns: list[tuple[str, str, int]]) -> Table:
        """Make a table of columns (head, metric, data set), with notes on gaps and on what was tested."""
        cells = [self._column(metric, j) for _, metric, j in columns]
        places = {self.datasets[j]: j for _, _, j in columns}
        notes = [
            f"{method} failed on {data}: {error}." for (method, data), error in self.gaps.items() if data in places
        ]
        marks = {cell.mark for column in cells for cell in column}
        for mark, test in _TESTS.items():
            if mark in marks:
                notes.append(f"{mark} different from every other method at {LEVEL} by {test}.")
        seen = [f"{method} on {data}: {text}." for (method, data), text in self.settings.items() if data in places]
        if seen:
            notes += [*seen, f"Rows{BEST} have seen the classes: they are not compared with the others."]
        for data, j in places.items():
            ranked = [self.methods.index(name) for name in self._ranked()]
            once = [i for i in ranked if len(self._tested("AC", i, j)) == 1]
            if once and self.n_runs > 1 and title != SECONDS:
                same = ", ".join(self.methods[i] for i in once)
                notes.append(f"No test of the scores of {same} on {data}: all runs found the same partition.")
        rows = [[name, *row] for name, row in zip(self.methods, zip(*cells, strict=True), strict=True)]
        return Table(["", *(head for head, _, _ in columns)], rows, title, notes)

    def _column(self, metric: str, dataset: int) -> list[Cell]:
        """Return each method's cell: the best in bold, with a dagger where it differs from all others."""
        values = self._values(metric)[:, dataset]
        scale, digits = (1, 2) if metric == SECONDS else (100, 1)
        means = values.mean(axis=1)
        compared = np.isfinite(means) & np.isin(self.methods, self._ranked())
        signed = np.where(compared, -means if metric == SECONDS else means, -np.inf)
        cells = []
        for i, runs in enumerate(values):
            if not np.isfinite(means[i]):
                cells.append(Cell("–"))
                continue
            spread = f" ± {scale * runs.std(ddof=1):z.{digits}f}" if len(runs) > 1 else ""
            best = bool(compared[i] and signed[i] == signed.max())
            others = [self._tested(metric, j, dataset) for j in np.flatnonzero(compared).tolist() if j != i]
            mark = _dagger(self._tested(metric, i, dataset), others) if best else ""
            cells.append(
                Cell(
                    f"{scale * means[i]:z.{digits}f}{spread}",
                    bold=best,
                    italic=self.methods[i].endswith(BEST),
                    mark=mark,
                )
            )
        return cells

    def _tested(self, metric: str, method: int, dataset: int) -> Array:
        """Return the values that a test may count: a partition found again is no further observation, its time is."""
        values = self._values(metric)[method, dataset]
        return values if self.repeated is None or metric == SECONDS else values[~self.repeated[method, dataset]]


_TESTS = {
    "†": "the exact rank-sum test of the runs (for scores each partition counts once)",
    "‡": "the rank-sum test of the runs (for scores each partition counts once), in its normal approximation because "
    "runs are tied or very many",
}


def _dagger(runs: Array, others: list[Array]) -> str:
    """Return the mark of runs that differ from all others, by the test that was really used; none if they do not."""
    if not others or min(map(len, [runs, *others])) < 2:
        return ""
    found = [rank_sum(runs, other) for other in others]
    if any(test.pvalue >= LEVEL for test in found):
        return ""
    return "†" if all(test.exact for test in found) else "‡"
