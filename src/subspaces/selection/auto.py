"""SubspaceClustering: nothing to set. It tries what makes sense for the data and takes what is confirmed best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from subspaces.engine.confidence import Agreement
from subspaces.engine.run import run
from subspaces.engine.validation import all_equal
from subspaces.estimators.answers import MADE_AGAIN, doubtful
from subspaces.estimators.base import CONSTRAINTS
from subspaces.estimators.graph import GraphClusterer
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.local import SC
from subspaces.kernels import KernelLike
from subspaces.selection.candidates import AUTO, NEIGHBORS
from subspaces.selection.carrying import carried, following
from subspaces.selection.count import ClusterCount
from subspaces.selection.hints import (
    Answer,
    Change,
    Hints,
    Question,
    contradictions,
    n_moved,
    no_hints,
    read_answers,
    read_hints,
    said,
    with_answers,
)
from subspaces.selection.pool import Pool, pool_of, questions
from subspaces.selection.result import Selection, verdict
from subspaces.selection.search import choose
from subspaces.utils.choices import Bandwidth, Effort, Init, Scaling, options
from subspaces.utils.optional import from_app
from subspaces.utils.ordering import hash_rows
from subspaces.utils.process import quiet
from subspaces.utils.progress import shown
from subspaces.utils.types import Array, Data, Labels

Chosen: TypeAlias = tuple[KTRR | SC, Selection | None]
"""The method that won, unfitted, and what was tried; None where all points are equal."""


@dataclass(eq=False, repr=False, kw_only=True)
class SubspaceClustering(GraphClusterer):
    """Clusters with nothing to set: scaling, kernel, penalty, truncation, cut and number come from the samples alone.

    Ten to fifteen settings of :class:`KTRR`, affine subspaces and a plain graph of nearest neighbours are tried on (a
    sample of) the samples; tracks of a film are recognised and have settings of their own. The answer is the one that
    the others confirm best and to whose clusters subspaces fit (:func:`subspaces.selection.choose`, and the manual's
    page *Nothing to set* for how well that works). ``subspaces cluster`` does the same. As in every method, equal rows
    count once.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None finds it.
    effort : {"fast", "balanced", "thorough"}, default="balanced"
        How many settings are tried: for 2,000 samples about 2, 8 or 18 times the work of one :class:`KTRR`.
    scaling : {"auto", None, "unit", "max", "minmax", "standard", "log"}, default="auto"
        Scaling of the input; give it where you know the units.
    kernel, reg, n_nonzero, affine : default="auto"
        Kernel, penalty λ, coefficients kept per sample, and affine subspaces or not, with the values of :class:`KTRR`;
        what is given stays, the rest is chosen. With a kernel, no graph of neighbours is tried.
    bandwidth : float or {"rms", "mean", "median"}, default="rms"
        Width of kernels of distances, or how it is found from the samples.
    kernel_params : mapping or None, default=None
        Further parameters of a kernel that is given.
    assign_labels : {"auto", "kmeans", "modularity", "agglomerative"}, default="auto"
        How graphs are cut.
    features : None, {"pixels", "efficientnet", "tfidf", "sentences"}, path or callable
        What makes vectors of images before anything else, in :meth:`fit` and :meth:`predict` alike; X is then a list of
        paths, an array (n, height, width) or (n, height, width, 3), or rows of pixels with `image_shape`.
        ``"efficientnet"`` needs ``pip install "subspaces[images]"``; a path is a ``.npy`` with a vector for each image;
        a function is called with X and returns an array or a sparse matrix. None: X holds the samples, or a list of
        texts, which ``"tfidf"`` or ``"sentences"`` make vectors of. See ``subspaces.app.features``.
    image_shape : tuple or None, default=None
        With `features`, (height, width) or (height, width, 3) of rows of pixels.
    out_of_sample : {"neighbors", "residual", "network"}, default="neighbors"
        Rule of :meth:`predict` for new samples.
    random_state : int, RandomState, Generator or None, default=0
        0 gives the same labels every time, on every machine.
    verbose : bool, default=False
        Show how far a fit is, on standard error: a bar on a terminal, lines in a notebook.

    Attributes
    ----------
    known_ : array of shape (n,)
        Whether the label was given in y.
    class_names_ : dict
        Names of the clusters that y names, by their numbers in ``labels_``.
    answers_ : list
        What :meth:`answer` was told.
    selection_ : Selection or None
        Everything that was tried, with ``reason`` and ``runner_up``; None where all samples are equal.
    estimator_ : estimator
        The method that won, with its parameters and unfitted: fit it to do the same again without a search.
    kernel_, reg_, n_nonzero_, scaling_, assign_labels_
        The setting that was chosen.
    solver_, solver_reason_ : str
        The route to the coefficients, and why; where :class:`KTRR` won.
    extractor_ : Extractor or None
        What made the vectors; None where X was used as it is.

    Examples
    --------
    >>> from subspaces import SubspaceClustering
    >>> from subspaces.datasets import make_subspaces
    >>> X, y = make_subspaces(3, dimension=2, ambient=10, n_samples=30, noise=0.01, random_state=0)
    >>> model = SubspaceClustering().fit(X)
    >>> model.n_clusters_, model.predict(X[:1]) == model.labels_[:1]
    (3, array([ True]))
    """

    n_clusters: int | None = field(default=None, kw_only=False)
    effort: Effort = "balanced"
    scaling: Scaling | Literal["auto"] | None = AUTO  # type: ignore[assignment]
    kernel: KernelLike = AUTO
    bandwidth: float | Bandwidth = "rms"
    kernel_params: Mapping[str, Any] | None = None
    reg: float | Literal["auto"] = AUTO
    n_nonzero: int | Literal["auto"] | None = AUTO
    affine: bool | Literal["auto"] = AUTO
    assign_labels: Literal["auto", "kmeans", "modularity", "agglomerative"] = AUTO  # type: ignore[assignment]
    features: str | PathLike[str] | Callable[..., Any] | None = None
    image_shape: Sequence[int] | None = None

    n_init: ClassVar[int] = 20  # type: ignore[misc]  # not for the user to set
    init: ClassVar[Init] = "k-means++"  # type: ignore[misc]
    _constraints: ClassVar[dict[str, list[Any]]] = {
        "effort": [options(Effort)],
        **{
            name: [*CONSTRAINTS[name], StrOptions({AUTO})]
            for name in ("scaling", "kernel", "reg", "n_nonzero", "affine")
        },
        "assign_labels": [StrOptions({AUTO, "kmeans", "modularity", "agglomerative"})],
        "features": [str, PathLike, callable, None],
        "image_shape": [tuple, list, None],
    }
    _is_quick = True
    _not_saved: ClassVar[tuple[str, ...]] = ("_kept", "_pool", "_unaided")
    _state: ClassVar[tuple[str, ...]] = (*_not_saved, "_hints", "_said")
    _cost = "two, eight or eighteen fits of KTRR to at most 2,500 points, and one to all if there are more"
    _reference = KTRR._reference

    def _validated(self, X: Any) -> Data:
        self.extractor_: Any = None
        features = self.features
        if features is None and _are_texts(X):
            features = from_app("features.documents", "usual")(X)
        if features is not None:
            self.extractor_, X = from_app("features", "fit_extractor")(features, X, self.image_shape)
        elif self.image_shape is not None:
            raise ValueError("image_shape says how features see the rows of X; give features, or leave it out.")
        return super()._validated(X)

    def _validated_new(self, X: Any) -> Data:
        check_is_fitted(self, "labels_")
        if self.extractor_ is not None:
            X = self.extractor_(self.extractor_.items(X, self.image_shape))
        return super()._validated_new(X)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Cluster the rows of X; what is known of some of them decides what the samples alone do not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dense, sparse or a data frame; (n, n) with
            ``kernel="precomputed"``
        y : array-like of shape (n_samples,), labels of any kind where they are known; −1, NaN, None or "" where not.
            A y without an unknown entry is ignored, with a warning
        must_link, cannot_link : pairs of row numbers that belong, or do not belong, together

        Returns
        -------
        self
        """
        with self._fitting():
            points = self._validated(X)
            self._fit(points, hints=read_hints(y, must_link, cannot_link, points.shape[0], self.n_clusters))
        return self

    def fit_predict(self, X: Any, y: Any = None, **links: Any) -> Labels:
        """Cluster the rows of X, as :meth:`fit` does, and return their labels."""
        return self.fit(X, y, **links).labels_

    def fit_transform(self, X: Any, y: Any = None, **links: Any) -> Array:
        """Cluster the rows of X, as :meth:`fit` does, and return their spectral embedding."""
        return self.fit(X, y, **links).embedding_

    def fit_chosen(self, X: Any, chosen: Chosen) -> Self:
        """Fit with what :meth:`choose` found for the same samples: no second search, the same labels.

        Parameters
        ----------
        X : as in :meth:`fit`
        chosen : what :meth:`choose` of an estimator with the same parameters returned for X
        """
        with self._fitting():
            self._fit(self._validated(X), chosen)
        return self

    def _fit(self, X: Data, chosen: Chosen | None = None, hints: Hints | None = None) -> None:
        self.estimator_, selection = chosen or self._chosen(X, None if hints is None else hints.rows)
        self.selection_ = None if selection is None else replace(selection, graph=None)
        self._hints = no_hints(X.shape[0]) if hints is None else hints
        self.known_ = self._hints.codes >= 0
        self.class_names_: dict[int, Any] = {}
        self.answers_: list[Answer] = []
        if self.selection_ is not None and self.selection_.n_samples != X.shape[0]:
            n_samples = self.selection_.n_samples
            raise ValueError(f"chosen must be of the same samples: it is of {n_samples}, and X has {X.shape[0]}.")
        if hints is not None and self.selection_ is not None:
            self._follow(X)
        else:
            plan = self.estimator_._plan(X)
            plan, cache = (plan, None) if selection is None else selection.reused(plan, X)
            self._keep(run(plan, X, cache=cache), X)
        self._settle()
        if self.selection_ is not None:
            self.timings_ = {"selection": self.selection_.seconds, **self.timings_}

    def _settle(self) -> None:
        for name in ("reg", "n_nonzero", "scaling", "assign_labels"):
            if hasattr(self.estimator_, name):  # a graph of neighbours has no penalty
                setattr(self, f"{name}_", getattr(self.estimator_, name))

    def questions(self, n: int = 10) -> list[Question]:
        """Return the pairs of samples of which to say whether they are of one group, the most useful first.

        :meth:`answer` takes what you know of them.

        Parameters
        ----------
        n : how many at most

        Returns
        -------
        list of Question
            ``i``, ``j`` and ``reason``.
        """
        check_is_fitted(self, "labels_")
        if self.selection_ is None:
            return []
        return questions(self._pool_of(self._kept_points()), self._told(), n, self.answers_)

    def answer(self, answers: Sequence[tuple[int, int, bool | None]]) -> Change:
        """Choose among the partitions of the search again by answers about pairs, with all answers before.

        Parameters
        ----------
        answers : (i, j, answer) for each pair of row numbers: True for one group, False for two, None for unknown. Of
            a pair that was answered before, the last answer counts. One in ten may be wrong

        Returns
        -------
        Change
            What it changed, and answers that contradict each other.
        """
        check_is_fitted(self, "labels_")
        return self._answered(with_answers(self.answers_, read_answers(answers, len(self.labels_))))

    def forget(self, pairs: Sequence[tuple[int, int]] | None = None) -> Change:
        """Take back what was answered, about all pairs or these; they may be asked again.

        Parameters
        ----------
        pairs : (i, j) as in ``answers_``
        """
        check_is_fitted(self, "labels_")
        gone = {frozenset(pair) for pair in ([answer[:2] for answer in self.answers_] if pairs is None else pairs)}
        if unknown := gone - {frozenset(answer[:2]) for answer in self.answers_}:
            raise ValueError(f"pairs must be of answers_; nothing was answered about {tuple(unknown.pop())}.")
        return self._answered([answer for answer in self.answers_ if frozenset(answer[:2]) not in gone])

    def _answered(self, told: list[Answer]) -> Change:
        """Follow these answers, and no others."""
        before, n_before = self.labels_, self.n_clusters_
        changed = {answer for answer in {*told} ^ {*self.answers_} if answer[2] is not None}
        if changed and self.selection_ is not None:
            points = self._kept_points()
            self.answers_ = told
            if len(self._told().rows):
                self._follow(points)
                self._settle()
            else:  # all is taken back
                self._labels_given = False
                self._fit(points, (self._chosen_by(self.selection_), self.selection_))
        self.answers_ = told
        against = [(i, j) for i, j, same in told if same is not None and (self.labels_[i] == self.labels_[j]) != same]
        return Change(n_before, self.n_clusters_, n_moved(before, self.labels_), contradictions(self._told()), against)

    def _told(self) -> Hints:
        return self._hints.and_answers(self.answers_)

    def _follow(self, X: Data) -> None:
        """Take what fits the hints best, and carry what is known along its graph."""
        pool, hints = self._pool_of(X), self._told()
        classes_suffice = self.n_clusters in (None, len(hints.names))
        labels, graph, own, is_automatic = following(pool, hints, pool.posterior(hints), classes_suffice)
        n_clusters = max(int(labels.max()) + 1, len(hints.names))
        setting = {**asdict(graph.setting), "n_clusters": n_clusters, "assign_labels": "modularity"}
        setting = {name: value for name, value in setting.items() if name not in ("graph", "graph_params")}
        self.estimator_ = self._method({**setting, **graph.setting.own_graph()})
        is_whole = bool((pool.place >= 0).all())
        if graph.setting not in pool.of_all:
            with quiet():
                plan, cache = (graph.plan, graph.cache) if is_whole else (self.estimator_._plan(X), None)
                pool.of_all[graph.setting] = run(plan, X, cache=cache, until="graph")
        found = pool.of_all[graph.setting]
        there = np.where(pool.place >= 0, labels[pool.place], -1)
        if is_automatic and not is_whole:
            there = self._unaided_labels(X)
        labels, self.class_names_ = carried(found.graph.W, there, hints, own)
        for name in MADE_AGAIN:
            self.__dict__.pop(name, None)
        self._keep(replace(found, labels=labels), X)
        self._labels_given = True
        assert self.selection_ is not None
        without = None if self.n_clusters is not None else int(self.selection_.labels.max()) + 1
        n_answers = sum(same is not None for *_, same in self.answers_)
        self._said = self.labels_, said(hints, n_answers, self.n_clusters_, without)

    def _unaided_labels(self, X: Data) -> Labels:
        """Return what a fit without hints gives all samples, where the search looked at some."""
        assert self.selection_ is not None
        plan = self._chosen_by(self.selection_)._plan(X)
        return np.asarray(self._once("_unaided", lambda: run(plan, X).labels))

    def _pool_of(self, X: Data) -> Pool:
        """Return the partitions that hints choose from; made when first needed, and not saved with the model."""

        def made() -> Pool:
            if "_kept" not in vars(self):  # fitted without hints, or saved and loaded
                self._chosen(X, self._hints.rows)
            if not len(self._told().rows):
                self._unaided = self.labels_
            return pool_of(self._kept, hash_rows(X), self.n_clusters, len(self._hints.names), self._drawn_seed())

        return self._once("_pool", made)

    def _kept_points(self) -> Data:
        if self._predictor.X is None:
            raise ValueError('questions and answers need samples; with kernel="precomputed" give must_link to fit.')
        return self._predictor.X

    def _forget(self) -> None:
        super()._forget()
        for name in self._state:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what can be made again."""
        return {name: value for name, value in super().__getstate__().items() if name not in self._not_saved}

    def choose(self, X: Any) -> Chosen:
        """Return the method that wins on these samples, unfitted, and what was tried: :meth:`fit` without the last fit.

        :meth:`fit_chosen` does that.

        Parameters
        ----------
        X : as in :meth:`fit`
        """
        self._validate_params()
        with shown(self.verbose, lines=True):
            return self._chosen(self._validated(X))

    def _agreement(self) -> Agreement | None:
        """Return what the search knows of the labels.

        Of samples it did not look at, what it knows of their clusters.
        """
        selection = self.selection_
        if selection is None or selection.consensus is None or not np.isfinite(selection.consensus).all():
            return None
        mean = np.bincount(self.labels_[selection.searched], selection.consensus, minlength=self.n_clusters_)
        count = np.bincount(self.labels_[selection.searched], minlength=self.n_clusters_)
        known = mean / np.maximum(count, 1)
        consensus = np.where(count > 0, known, selection.consensus.mean())[self.labels_]
        consensus[selection.searched] = selection.consensus
        number = self._count()
        doubt = 0.0 if number is None else number.doubt
        return Agreement(consensus, selection.winner.agreement, selection.stability, doubt)

    def _p_value_of_one(self) -> float | None:
        count = self._count()
        return None if count is None else count.p_value

    def _count(self) -> ClusterCount | None:
        """Return how the search found the number of clusters; None where it was given, or the labels are others."""
        return None if self.selection_ is None or self._labels_given else self.selection_.n_clusters

    def _verdict(self, asked: int | None, n_doubtful: int) -> str:
        told, sentence = getattr(self, "_said", (None, ""))
        if told is self.labels_:
            return f"{sentence}{doubtful(n_doubtful, len(self.labels_))}."
        count = self._count()
        if count is None:
            return super()._verdict(asked, n_doubtful)
        assert self.selection_ is not None
        return verdict(count, self.n_clusters_, len(self.labels_), n_doubtful, stability=self.selection_.stability)

    def _chosen(self, X: Data, include: Labels | None = None) -> Chosen:
        """Return the method that wins on these samples, and what was tried.

        With rows to `include` in the sample that is searched, its graphs are kept for hints.
        """
        given = {name: getattr(self, name) for name in _PLAIN}
        known = {name: _PLAIN[name] if _is_auto(value) else value for name, value in given.items()}
        default = self._method({**known, "n_clusters": self.n_clusters or 1})
        plan = default._outline(X)  # what no choice can make right is refused before the search
        if all_equal(X, plan.pairwise):
            return default, None
        n_clusters = AUTO if self.n_clusters is None else self.n_clusters
        options: dict[str, Any] = {"bandwidth": self.bandwidth, "kernel_params": self.kernel_params}
        options |= {"graph": AUTO, "neighbors": True, "effort": self.effort, "seed": self._drawn_seed()}
        selection = choose(X, n_clusters=n_clusters, include=include, **given, **options)
        if include is not None:
            self._kept = selection
            selection = replace(selection, kept=None)
        return self._chosen_by(selection), selection

    def _chosen_by(self, selection: Selection) -> KTRR | SC:
        """Return the method that won a search."""
        given = {name: getattr(self, name) for name in _PLAIN}
        return self._method({"n_clusters": self.n_clusters or AUTO, **given, **selection.parameters})

    def _method(self, chosen: dict[str, Any]) -> KTRR | SC:
        """Return the estimator with these parameters."""
        shared = {name: chosen[name] for name in ("n_clusters", "scaling", "assign_labels")}
        shared |= {"out_of_sample": self.out_of_sample, "random_state": self.random_state}
        if isinstance(chosen["kernel"], str) and chosen["kernel"] == NEIGHBORS:
            return SC(n_neighbors=chosen["n_nonzero"], bandwidth="local", **shared)
        names = ("kernel", "reg", "n_nonzero", "affine", "graph", "graph_params")
        own: dict[str, Any] = {"bandwidth": self.bandwidth, "kernel_params": self.kernel_params}
        return KTRR(**{name: chosen[name] for name in names if name in chosen}, **own, **shared)


_PLAIN: dict[str, Any] = {
    "scaling": None,
    "kernel": "rbf",
    "reg": 1.0,
    "n_nonzero": 5,
    "affine": False,
    "assign_labels": "kmeans",
}
"""What ``"auto"`` means where there is nothing to choose by: all samples are equal."""


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def _are_texts(X: Any) -> bool:
    """Return whether X is one list, array or column of texts, and not a table."""
    is_one = isinstance(X, str | list | tuple) or getattr(X, "ndim", 0) == 1
    return is_one and len(X) > 0 and all(isinstance(x, str) for x in X)
