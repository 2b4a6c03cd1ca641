"""Scores of methods on data sets, run by run: means, tests, and tables for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from subspaces.metrics import CONSTANT, PAPER_SCORES
from subspaces.metrics.significance import LEVEL, Outcome, Ranking, friedman, holm, rank_sum, signed_rank
from subspaces.utils import tabular
from subspaces.utils.types import Array

SECONDS = "seconds"
MISSING = "–"


@dataclass(frozen=True)
class Comparison:
    """Scores of methods on data sets, run by run; ``print(comparison)`` shows mean ± sd (ddof = 1) in percent.

    Attributes
    ----------
    methods, datasets : names, in the order given; k-means and the constant labelling come last
    scores : for each of AC, NMI, ARI, F (as fractions) and seconds an array (n_methods, n_datasets, n_runs), NaN where
        a method failed
    gaps : what failed: (method, data set) → the error in one line
    repeated : boolean array (n_methods, n_datasets, n_runs), True where an earlier run of the method found the same
        partition: tests between runs count it once. None: no run repeats another
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Mapping[str, Array]
    gaps: Mapping[tuple[str, str], str]
    repeated: Array | None = None

    @property
    def n_runs(self) -> int:
        """Runs of each method on each data set."""
        return int(self.scores[SECONDS].shape[2])

    def mean(self, metric: str = "AC") -> Array:
        """Mean over the runs, (n_methods, n_datasets)."""
        return np.asarray(self._values(metric).mean(axis=2))

    def sd(self, metric: str = "AC") -> Array:
        """Standard deviation over the runs (ddof = 1), (n_methods, n_datasets); NaN for a single run."""
        values = self._values(metric)
        return np.asarray(values.std(axis=2, ddof=1)) if self.n_runs > 1 else np.full(values.shape[:2], np.nan)

    # ---------------------------------------------------------------- tests

    def signed_rank(self, metric: str = "AC", reference: str | None = None) -> dict[str, Outcome]:
        """Wilcoxon's signed-rank test of one method against each other one, over data sets; p-values after Holm.

        Parameters
        ----------
        metric : {"AC", "NMI", "ARI", "F", "seconds"}, default="AC"
        reference : str, default=None
            The method to compare with the others; left out, the first.
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

    def ranking(self, metric: str = "AC", *, level: float = LEVEL) -> Ranking:
        """Friedman's test over data sets, mean ranks and Nemenyi's critical difference.

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
        return [name for name in self.methods if name != CONSTANT]

    # ---------------------------------------------------------------- tables

    def to_markdown(self, metric: str | None = None) -> str:
        """Markdown: a table for each data set; with a metric, one of methods (rows) and data sets (columns).

        The best mean, the constant labelling aside, is bold; † says that it differs from every other method by the
        exact rank-sum test of the runs at 0.05 (runs on the same data, that differ in the seed), ‡ by its normal
        approximation, where many runs are tied. Runs of a method that found the same partition count once; a method
        all of whose runs did so is not tested.
        """
        parts = []
        for title, header, rows in self._tables(metric):
            cells = [[name, *(_markdown(*cell) for cell in row)] for name, row in rows]
            notes = "".join(f"\n{note}  " for note in self._notes(title, rows))
            parts.append(f"**{title}**\n\n{tabular.markdown(['', *header], cells)}\n{notes}".rstrip() + "\n")
        return "\n".join(parts)

    def to_latex(self, metric: str | None = None) -> str:
        """LaTeX: the tables of :meth:`to_markdown`; plain ``tabular``, no package is needed."""
        parts = []
        for title, header, rows in self._tables(metric):
            cells = [[tabular.escape(name), *(_latex(*cell) for cell in row)] for name, row in rows]
            body = tabular.tabular(f"l||{'l' * len(header)}", ["Methods", *map(tabular.escape, header)], cells)
            caption = tabular.escape(" ".join([f"{title}.", *self._notes(title, rows)]))
            parts += [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}", body, r"\end{table}", ""]
        return "\n".join(parts)

    def to_pandas(self, *, runs: bool = False) -> Any:
        """A DataFrame: mean and sd of every metric by data set and method; with `runs` one row for each run.

        Scores are fractions.
        """
        pandas = tabular.pandas()
        names = [(data, method) for data in self.datasets for method in self.methods]
        if runs:
            keys = [(*name, run) for name in names for run in range(self.n_runs)]
            index = pandas.MultiIndex.from_tuples(keys, names=["dataset", "method", "run"])
            columns = {metric: values.transpose(1, 0, 2).ravel() for metric, values in self.scores.items()}
            return pandas.DataFrame(columns, index=index)
        index = pandas.MultiIndex.from_tuples(names, names=["dataset", "method"])
        parts = {(m, what): f(m).T.ravel() for m in self.scores for what, f in (("mean", self.mean), ("sd", self.sd))}
        return pandas.DataFrame(parts, index=index)

    def __str__(self) -> str:
        parts = []
        for title, header, rows in self._tables(None):
            cells = [[name, *(text + "*" * best + mark for text, best, mark in row)] for name, row in rows]
            parts.append("\n".join([tabular.aligned([[title, *header], *cells]), *self._notes(title, rows)]) + "\n")
        return "\n".join([*parts, f"* the best mean, {CONSTANT} aside"])

    def _values(self, metric: str) -> Array:
        if metric not in self.scores:
            raise ValueError(f"metric must be one of {', '.join(self.scores)}; got {metric!r}")
        return self.scores[metric]

    def _tables(self, metric: str | None) -> Iterator[tuple[str, list[str], list[tuple[str, list[_Cell]]]]]:
        """Title, header and rows of every table."""
        names, places = list(self.scores), range(len(self.datasets))
        tables = [(self.datasets[j], names, [self._column(name, j) for name in names]) for j in places]
        if metric is not None:
            tables = [(metric, list(self.datasets), [self._column(metric, j) for j in places])]
        for title, header, columns in tables:
            yield title, header, list(zip(self.methods, map(list, zip(*columns, strict=True)), strict=True))

    def _column(self, metric: str, dataset: int) -> list[_Cell]:
        """Text of each method's cell, whether it is the best, and a dagger where it differs from all others."""
        values = self._values(metric)[:, dataset]
        scale, digits = (1, 2) if metric == SECONDS else (100, 1)
        means = values.mean(axis=1)
        compared = np.isfinite(means) & (np.array(self.methods) != CONSTANT)
        signed = np.where(compared, -means if metric == SECONDS else means, -np.inf)
        cells: list[_Cell] = []
        for i, runs in enumerate(values):
            if not np.isfinite(means[i]):
                cells.append((MISSING, False, ""))
                continue
            spread = f" ± {scale * runs.std(ddof=1):z.{digits}f}" if len(runs) > 1 else ""
            best = bool(compared[i] and signed[i] == signed.max())
            others = [self._observations(metric, j, dataset) for j in np.flatnonzero(compared).tolist() if j != i]
            mark = _dagger(self._observations(metric, i, dataset), others) if best else ""
            cells.append((f"{scale * means[i]:z.{digits}f}{spread}", best, mark))
        return cells

    def _observations(self, metric: str, method: int, dataset: int) -> Array:
        """Values of the runs that a test may count: a partition found again is no further observation, its time is."""
        values = self._values(metric)[method, dataset]
        return values if self.repeated is None or metric == SECONDS else values[~self.repeated[method, dataset]]

    def _untested(self, dataset: int) -> list[str]:
        """Methods all of whose runs on a data set found the same partition."""
        once = [name for i, name in enumerate(self.methods) if len(self._observations("AC", i, dataset)) == 1]
        return [name for name in once if name != CONSTANT and self.n_runs > 1]

    def _notes(self, title: str, rows: list[tuple[str, list[_Cell]]]) -> list[str]:
        """What a table, of a data set or of all, has to say below: its gaps, and what its dagger means."""
        own = [(method, data, error) for (method, data), error in self.gaps.items() if title in (data, *self.scores)]
        notes = [f"{method} failed on {data}: {error}." for method, data, error in own]
        marks = {mark for _, row in rows for _, _, mark in row}
        for mark, test in _TESTS.items():
            if mark in marks:
                notes.append(f"{mark} different from every other method at {LEVEL} by {test}.")
        for j, data in enumerate(self.datasets):
            if title in (data, *PAPER_SCORES) and (same := self._untested(j)):
                notes.append(
                    f"No test of the scores of {', '.join(same)} on {data}: all runs found the same partition."
                )
        return notes


_Cell: TypeAlias = tuple[str, bool, str]


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


def _markdown(text: str, best: bool, mark: str) -> str:
    return (f"**{text}**" if best else text) + mark


def _latex(text: str, best: bool, mark: str) -> str:
    cell = tabular.escape(text)
    return (rf"\textbf{{{cell}}}" if best else cell) + tabular.escape(mark)
