"""What the explorer shows of a clustering, and the steps of a person: levels, edits by hand, answers, other settings.

No page and no drawing: ``subspaces ask`` takes the same steps in a terminal. A step takes a tenth of a second at 2,000
samples; only other settings and the first question take a fit.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.app.description import describe, with_evidence
from subspaces.app.explorer.answers import write_answers
from subspaces.app.features.documents import count_words, leading_words
from subspaces.app.files import Dataset, write_labels
from subspaces.app.groups import Groups, groups_of, table_of, unlike
from subspaces.engine.confidence import UNSURE, Summary, summarize
from subspaces.engine.run import Cache, reusing
from subspaces.estimators.explain import Explanation, explained
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.local import SC
from subspaces.inspection.plots.gallery import profiles_of
from subspaces.kernels import KERNELS
from subspaces.selection.auto import SubspaceClustering
from subspaces.selection.candidates import NEIGHBORS
from subspaces.selection.hints import Answer, Change, Question, n_moved
from subspaces.utils.components import dense_rows, mean_and_deviation
from subspaces.utils.memory import available_bytes
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted, first_line
from subspaces.utils.types import Array, Data, Labels

CHOICES = (*(name for name in KERNELS if name not in ("precomputed", "polynomial", "sigmoid")), NEIGHBORS)
"""Kernels, and the graph of nearest neighbours without one."""
MOST_LEVELS = 100
"""Most groups that the slider shows."""
N_TYPICAL, N_DIFFERENT, N_DOUBTFUL = 4, 3, 3
"""Samples of a group that are shown."""
CLEAR = 1.0
"""Standard deviations by which a value is told apart."""
MAX_NAME = 60
"""Letters of a name."""


@dataclass(frozen=True)
class Settings:
    """Parameters that a person can move: those of KTRR, or of SC where the kernel is ``"neighbors"``."""

    kernel: str = "rbf"
    scaling: str | None = None
    reg: float = 1.0
    n_nonzero: int = 5
    assign_labels: str = "kmeans"
    affine: bool = False

    @classmethod
    def of(cls, model: Any) -> Settings:
        """Return the settings of a method, or of the one that was chosen."""
        used = getattr(model, "estimator_", model)
        values: dict[str, Any] = {name: getattr(used, name) for name in ("scaling", "assign_labels")}
        if isinstance(used, SC):
            return cls(**values, kernel=NEIGHBORS, n_nonzero=used.n_neighbors or cls.n_nonzero)
        values |= {name: getattr(used, name) for name in ("kernel", "reg", "affine")}
        kept = getattr(used, "n_nonzero_", used.n_nonzero)  # None keeps all; a rule is a number once fitted
        return cls(**values, n_nonzero=kept if isinstance(kept, int) else cls.n_nonzero)

    def estimator(self, n_clusters: int, **more: Any) -> KTRR | SC:
        """Return the method with these settings, and more parameters that both have."""
        values = {**asdict(self), "n_clusters": n_clusters, **more}
        if self.kernel == NEIGHBORS:
            n_neighbors = values.pop("n_nonzero")
            for name in ("kernel", "reg", "affine"):
                del values[name]
            return SC(**values, n_neighbors=n_neighbors, bandwidth="local")
        return KTRR(**values)

    def options(self, n_clusters: int) -> str:
        """Return the options of ``subspaces cluster`` for the same method with these settings."""
        options = [f"-k {n_clusters} --scaling {self.scaling or 'none'} --set assign_labels={self.assign_labels}"]
        if self.kernel == NEIGHBORS:
            options += [f"--method sc --set n_neighbors={self.n_nonzero} --set bandwidth=local"]
        else:
            options += [f"--method ktrr --set kernel={self.kernel} --set reg={self.reg}"]
            options += [f"--set n_nonzero={self.n_nonzero}", *["--set affine=true"] * self.affine]
        return " ".join(options)


@dataclass(frozen=True)
class View:
    """What is shown; frozen, so that a step back is a step back.

    Attributes
    ----------
    model : fitted, with the labels that are shown
    fit : the same with the labels of the fit, whose tree has the levels
    summary : how sure each label is
    told : what the last step changed, one sentence
    level : of the tree, None for the groups of the fit
    by_hand : whether groups were merged or split by a person
    given : names that a person gave
    holder : array of shape (n,), the name that was given to the group of each sample, −1 for none
    """

    model: Any
    fit: Any
    summary: Summary
    told: str = ""
    level: int | None = None
    by_hand: bool = False
    given: tuple[str, ...] = ()
    holder: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def labels(self) -> Labels:
        """Return the group of each sample."""
        return np.asarray(self.model.labels_)

    @property
    def sizes(self) -> Labels:
        """Return the number of samples in each group."""
        return np.bincount(self.labels)

    @cached_property
    def verdict(self) -> str:
        """Return the sentence that ``subspaces cluster`` prints."""
        said = str(self.model.verdict_)
        return said if self.model is not self.fit or self.fit.n_clusters is None else with_evidence(said, self.fit)

    @property
    def n_doubtful(self) -> int:
        """Return the number of labels that are more probably wrong than right."""
        return int((self.summary.confidence < UNSURE).sum())

    @property
    def n_levels(self) -> int:
        """Return the largest number of groups that the slider reaches."""
        return max(2, min(MOST_LEVELS, self.fit._bare_tree().n_leaves), self.fit.n_clusters_)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the name of each group, empty where it has none.

        A name stays with the group that holds most of the samples it was given to, if named ones are most of that
        group; two names that come together are joined.
        """
        k = len(self.sizes)
        if not self.given:
            return ("",) * k
        table = np.zeros((len(self.given), k), dtype=np.intp)
        held = self.holder >= 0
        np.add.at(table, (self.holder[held], self.labels[held]), 1)
        stays = (2 * table > table.sum(axis=1, keepdims=True)) & (2 * table.sum(axis=0) > self.sizes)
        return tuple(" + ".join(self.given[i] for i in np.flatnonzero(stays[:, c])) for c in range(k))

    def name_of(self, cluster: int) -> str:
        """Return the name that a group was given, or its number."""
        return self.names[cluster] or str(cluster)


class Difference(NamedTuple):
    """A column of two rows."""

    column: str
    one: float
    other: float
    gap: float  # in standard deviations of the column


class Session:
    """A fitted model and the samples, with all steps since.

    Parameters
    ----------
    model : what ``subspaces cluster`` fits: :class:`subspaces.SubspaceClustering`, fitted to ``data.X``
    data : the samples with all that was read beside them
    title : name of the data
    reading : lines of Python that read the samples as X
    answers : file that every answer is written to
    """

    def __init__(
        self, model: Any, data: Dataset, *, title: str = "X", reading: str = "", answers: Path | None = None
    ) -> None:
        self.data, self.title, self.reading, self.answers_file = data, title, reading, answers
        n = data.n_samples
        kind = next(iter(data.places), "row")
        self.ids = [f"row {name}" if kind == "row" else str(name) for name in data.names or range(n)]
        self.texts = data.texts
        self.first_lines = [first_line(text) for text in data.texts or ()]
        squares = available_bytes() // 4 // max(n**2 * data.X.dtype.itemsize, 1)
        n_kept = int(np.clip(squares // 2, 1, 6))  # kernel matrices, and as many inverses
        self._cache = Cache(kernel=n_kept, coefficients=n_kept, graph=20, embedding=20, cut=20)
        self.steps = [self._view(model, model, holder=np.full(n, -1, dtype=np.intp))]

    # ---------------------------------------------------------------- steps

    @property
    def view(self) -> View:
        """Return what is shown now."""
        return self.steps[-1]

    def undo(self) -> None:
        """Go a step back; the first view stays. An answer that is taken back is no longer in its file."""
        if len(self.steps) == 1:
            return
        told = self.answers
        self.steps.pop()
        if len(told) > len(self.answers) + 1:  # of a file: only the last of them
            self.answer(told[:-1])
        elif len(told) > len(self.answers):
            self._save_answers()

    def at_level(self, k: int) -> None:
        """Show k groups, a level of the tree; levels one after the other are one step."""
        old = self.view
        if k == len(old.sizes) and not old.by_hand:
            return
        level = None if k == old.fit.n_clusters_ else k
        moves = len(self.steps) > 1 and old.fit is self.steps[-2].fit and old.told.startswith("Slider: ")
        before = self.steps[-2] if moves else old
        new = self._relabelled(old, old.fit.labels_at(k) if level else old.fit.labels_, level=level, by_hand=False)
        new = replace(new, told=f"Slider: {_told(before.labels, new.labels)}")
        self.steps = [*(self.steps[:-1] if moves else self.steps), new]

    def merge(self, clusters: Iterable[int]) -> None:
        """Make one group of several, which has the first of their numbers."""
        chosen = sorted(set(clusters))
        if len(chosen) > 1:
            labels = np.where(np.isin(self.view.labels, chosen), chosen[0], self.view.labels)
            self._edited(labels, f"merged {', '.join(map(self.view.name_of, chosen))}")

    def split(self, cluster: int) -> None:
        """Make two groups of one, where the tree parts it first.

        Raises
        ------
        ValueError
            If the tree does not part it.
        """
        view = self.view
        members = np.flatnonzero(view.labels == cluster)
        for k in range(2, view.fit._bare_tree().n_leaves + 1):
            parts = view.fit.labels_at(k)[members]
            sizes = np.bincount(parts)
            if np.count_nonzero(sizes) > 1:
                labels = view.labels.copy()
                labels[members[parts != sizes.argmax()]] = len(view.sizes)
                self._edited(labels, f"split {view.name_of(cluster)}")
                return
        raise ValueError(f"group {view.name_of(cluster)} is not split: nothing in its graph parts it.")

    def rename(self, cluster: int, name: str) -> None:
        """Give a name to a group; an empty one takes it away."""
        view, short = self.view, " ".join(name.split())[:MAX_NAME]
        if short == view.names[cluster]:
            return
        holder, told = view.holder.copy(), f"group {cluster} is now called {short}" if short else "name taken away"
        holder[view.labels == cluster] = len(view.given) if short else -1
        given = (*view.given, short) if short else view.given
        # a copy, not replace(): nothing but the name is made anew
        self.steps.append(View(view.model, view.fit, view.summary, told, view.level, view.by_hand, given, holder))

    def fit(self, settings: Settings) -> View:
        """Return the view of another fit, with as many groups as are shown; :meth:`take` makes it a step."""
        old, k = self.view, len(self.view.sizes)
        first = self.steps[0].model
        if k == first.n_clusters_ and settings == Settings.of(first):
            return replace(self._view(first, first, old), told=f"Settings: {_told(old.labels, first.labels_)}")
        with warnings.catch_warnings(record=True) as caught, reusing(self._cache):
            warnings.simplefilter("always")
            model = settings.estimator(k, random_state=first.random_state).fit(self.data.X)
        said = [f"Settings: {_told(old.labels, model.labels_)}", *dict.fromkeys(str(w.message) for w in caught)]
        return self._view(model, model, old, told=" ".join(said))

    def take(self, view: View) -> None:
        """Show a view as the next step."""
        self.steps.append(view)

    # ---------------------------------------------------------------- questions

    @property
    def _asker(self) -> SubspaceClustering:
        """Return the last model that asks questions."""
        return next(step.fit for step in reversed(self.steps) if isinstance(step.fit, SubspaceClustering))

    @property
    def answers(self) -> list[Answer]:
        """Return all answers so far."""
        return list(self._asker.answers_)

    def question(self) -> Question | None:
        """Return the question whose answer helps most; the first takes a search."""
        return next(iter(self._asker.questions(1)), None)

    def answer(self, answers: Sequence[Answer]) -> None:
        """Choose the groups again by answers, and write all answers to their file."""
        asker = self._asker
        asker.questions(1)  # what takes a search is made once, for all steps from here
        model = copy(asker)
        model.__dict__.update(vars(asker))  # a copy alone leaves that out
        change = model.answer(answers)
        named = [
            [f"{self.ids[i]} and {self.ids[j]}" for i, j in pairs]
            for pairs in (change.contradictions, change.not_followed)
        ]
        said = [str(change._replace(contradictions=[], not_followed=[]))]
        what = ("these answers contradict others", "the groups do not follow")
        said += [f"But {text}: {'; '.join(pairs)}." for text, pairs in zip(what, named, strict=True) if pairs]
        self.take(self._view(model, model, self.view, told=" ".join(said)))
        self._save_answers()

    def _save_answers(self) -> None:
        if self.answers_file is not None:
            write_answers(self.answers_file, self.data, self.answers)

    def difference(self, i: int, j: int, most: int = 12) -> list[Difference]:
        """Return the columns of two rows that differ most, and they first."""
        spread = self._scale[1]
        one, other = dense_rows(self.data.X[[i, j]])
        gaps = np.abs(one - other) / spread
        order = np.argsort(-gaps, kind="stable")[:most].tolist()
        return [Difference(self.columns[f], float(one[f]), float(other[f]), float(gaps[f])) for f in order]

    # ---------------------------------------------------------------- what is shown of groups

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the features."""
        return list(self.data.feature_names or (f"feature {f}" for f in range(self.data.X.shape[1])))

    @cached_property
    def _scale(self) -> tuple[Array, Array]:
        centre, spread = mean_and_deviation(self.data.X)
        return centre, np.where(spread > 0, spread, 1.0)

    @cached_property
    def standard(self) -> Data:
        """Return the samples with features of variance 1, so that a unit decides nothing; sparse ones as they are."""
        X = self.data.X
        return X if sparse.issparse(X) else (X - self._scale[0]) / self._scale[1]

    def members(self, view: View, cluster: int) -> tuple[Labels, Labels, Labels]:
        """Return the typical members of a group, the most different and the doubtful ones, the least sure first."""
        own, sure = np.flatnonzero(view.labels == cluster), view.summary.confidence
        typical = view.summary.exemplars[cluster][:N_TYPICAL]
        points = self.data.X if self.data.image_shape or self.texts is not None else self.standard
        different = own[unlike(points[own], np.searchsorted(own, typical), N_DIFFERENT)]
        doubtful = own[np.argsort(sure[own], kind="stable")]
        return typical, different, doubtful[sure[doubtful] < UNSURE][:N_DOUBTFUL]

    def groups(self, view: View) -> Groups | None:
        """Return what sets the groups apart, as ``subspaces cluster`` says it; None where samples have no columns."""
        data = self.data
        if data.feature_names is None and data.texts is None and data.image_shape is None:
            data = replace(data, feature_names=self.columns, columns=None)
        return groups_of(data, view.labels, dict(enumerate(view.names)))

    def profiles(self, view: View) -> Array:
        """Return lower end, mean and upper end of every standardised feature in each group."""
        return profiles_of(self.standard, view.labels)

    def words(self, view: View) -> list[list[str]]:
        """Return the words that set each group apart; none where samples are neither texts nor named counts."""
        return [] if self._counts is None else leading_words(*self._counts, view.labels, 8)

    @cached_property
    def _counts(self) -> tuple[Any, Any] | None:
        X, names = self.data.X, self.data.feature_names
        if self.texts is not None:
            try:
                return count_words(self.texts)
            except ValueError:  # not one word
                return None
        return (X, names) if names is not None and sparse.issparse(X) and X.nnz and X.data.min() >= 0 else None

    def explain(self, i: int, n: int = 8) -> Explanation:
        """Return the samples that represent sample `i` (its neighbours), with the groups that are shown."""
        fit = self.view.fit
        return explained(i, n, getattr(fit, "coefficients_", fit.affinity_matrix_), self.view.labels)

    # ---------------------------------------------------------------- what can be taken away

    def python(self) -> str:
        """Return lines that repeat what is shown in Python; of groups made by hand, those before."""
        fit, level = self.view.fit, self.view.level
        lines = [f"{self.reading or f'from subspaces import {type(fit).__name__}'}"]
        lines += [f"from subspaces import {type(fit).__name__}"] * bool(self.reading)
        lines += ["", f"model = {fit!r}.fit(X)"]
        told = getattr(fit, "answers_", None)
        lines += [f"model.answer({told!r})"] * bool(told)
        return "\n".join([*lines, "labels = model.labels_" if level is None else f"labels = model.labels_at({level})"])

    def command(self, source: str) -> str:
        """Return the command that gives these labels; "" where none does: of a level, of edits, after answers.

        `source` is the file with the options it is read with, quoted for a shell.
        """
        view, first = self.view, self.steps[0].model
        if view.level is not None or view.by_hand or getattr(view.fit, "answers_", None):
            return ""
        given = first.n_clusters
        options = "" if given is None else f"-k {given}"
        if view.fit is not first:
            options = Settings.of(view.fit).options(view.fit.n_clusters)
        return " ".join(f"subspaces cluster {source} {options} --seed {first.random_state} -o labels.csv".split())

    def write_labels(self, path: Path, force: bool = False) -> None:
        """Write the groups that are shown as ``subspaces cluster -o`` does, with a column of the names given."""
        view = self.view
        columns: dict[str, Any] = view.summary.columns()
        if any(view.names):
            columns = {"name": np.array([view.name_of(k) for k in view.labels.tolist()], dtype=object), **columns}
        table = table_of(self.data, self.groups(view))
        write_labels(path, view.labels, columns=columns, force=force, **table)

    def labels_file(self, suffix: str) -> io.BytesIO:
        """Return that file as bytes."""
        return _as_bytes(f"labels{suffix}", self.write_labels)

    def answers_as_file(self) -> io.BytesIO:
        """Return the answers as the bytes of their file."""
        return _as_bytes("answers.csv", lambda path: write_answers(path, self.data, self.answers))

    def report_file(self, source: str = "") -> io.BytesIO:
        """Return the report that ``subspaces cluster --report`` writes, of what is shown; `source` as in `command`."""
        from subspaces.app.report import Content, render

        view = self.view
        names = {k: name for k, name in enumerate(view.names) if name}
        more: dict[str, Any] = {"command": self.command(source) if source else "", "cluster_names": names}
        more["groups"] = self.groups(view)
        with phase("Writing the report"):
            content = Content.from_dataset(view.model, self.data, view.summary, self._document(), **more)
            return io.BytesIO(render(content).encode())

    def _document(self) -> dict[str, Any]:
        data, view = self.data, self.view
        notes = [*data.notes, *["groups were changed by hand"] * view.by_hand]
        notes += [f"{counted(len(self.answers), 'question')} answered"] * bool(getattr(view.fit, "answers_", None))
        known: dict[str, Any] = {"y": data.y, "names": data.names, "skipped": data.skipped, "texts": data.texts}
        shown: dict[str, Any] = {"source": self.title, "shape": data.X.shape, "summary": view.summary, "notes": notes}
        return describe(view.model, **shown, **known)

    # ---------------------------------------------------------------- how a view is made

    def _view(self, model: Any, fit: Any, old: View | None = None, **more: Any) -> View:
        if old is not None:
            more = {"given": old.given, "holder": old.holder, **more}
        return View(model, fit, summarize(model, self.data.X), **more)

    def _relabelled(self, old: View, labels: Labels, **more: Any) -> View:
        model = old.fit if np.array_equal(labels, old.fit.labels_) else old.fit.with_labels(labels)
        return self._view(model, old.fit, old, **more)

    def _edited(self, labels: Labels, done: str) -> None:
        codes = np.unique(labels, return_inverse=True)[1]
        told = f"{done[0].upper()}{done[1:]}: {_told(self.view.labels, codes)}"
        self.take(self._relabelled(self.view, codes, told=told, level=self.view.level, by_hand=True))


def _told(before: Labels, after: Labels) -> str:
    """Say how many groups there were and are, and how many samples moved."""
    return str(Change(int(before.max()) + 1, int(after.max()) + 1, n_moved(before, after), [], []))


def _as_bytes(name: str, write: Callable[[Path], None]) -> io.BytesIO:
    with TemporaryDirectory() as folder:
        write(Path(folder, name))
        return io.BytesIO(Path(folder, name).read_bytes())
