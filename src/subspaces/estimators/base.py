"""What all estimators share: parameters, checks, and fit, which is: plan, run, keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from html import escape
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from subspaces.engine.validation import Versioned, stored_by_content, validated
from subspaces.estimators.answers import MADE_AGAIN
from subspaces.estimators.docstrings import complete_docstring
from subspaces.kernels import KERNELS, Kernel, is_precomputed
from subspaces.utils.choices import (
    AssignLabels,
    Bandwidth,
    GraphName,
    Init,
    OutOfSample,
    Ranking,
    Scaling,
    Solver,
    Spectral,
    options,
)
from subspaces.utils.process import keep_threads, warn_caller
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted
from subspaces.utils.types import Data, Labels

MAX_SEED = 2**31 - 1
MANY = 20_000
"""Samples up to which a notebook may compute the verdict and the tree that it shows of a fit."""
POSITIVE = Interval(Real, 0, None, closed="neither")
COUNT = Interval(Integral, 1, None, closed="left")

_STATE = ("_predictor", "_coefficients", "_embedding", "_labels_given", *MADE_AGAIN)
"""Private attributes of a fit."""

CONSTRAINTS: Mapping[str, list[Any]] = {
    "n_clusters": [COUNT, None],
    "scaling": [options(Scaling), None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["boolean"],
    "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
    "bandwidth": [options(Bandwidth), POSITIVE],
    "kernel_params": [dict, None],
    "reg": [POSITIVE],
    "n_nonzero": [COUNT, None],
    "by": [options(Ranking)],
    "graph": [options(GraphName)],
    "graph_params": [dict, None],
    "connect": ["boolean"],
    "assign_labels": [options(AssignLabels)],
    "n_init": [COUNT],
    "init": [options(Init)],
    "out_of_sample": [options(OutOfSample)],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
    "epochs": [COUNT],
    "affine": ["boolean"],
    "error_weight": [POSITIVE],
    "solver": [options(Solver)],
    "spectral": [options(Spectral)],
    "n_neighbors": [COUNT],
    "n_landmarks": [COUNT],
    "checkpoints": [str, PathLike, None],
}
"""What each parameter may be, in every method that has it, unless the method says otherwise."""


@dataclass(eq=False, repr=False)
class SubspaceClusterer(ClusterMixin, Versioned, BaseEstimator):
    """Base of all estimators.

    Parameters are dataclass fields, so that a subclass lists only its own and its signature shows all; what they may be
    stands in ``CONSTRAINTS`` or, for parameters of one method alone, in its ``_constraints``. A subclass gives
    ``_fit``: validated samples → fitted attributes, and inherits the descriptions below.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of clusters L. None lets ``assign_labels="modularity"`` find it, in the methods that have this cut.
    scaling : {None, "unit", "max", "standard", "minmax", "log"}, default=None
        Scaling of the input; ``"unit"`` scales each row to length 1, as the authors' program did; ``"log"`` is for
        counts.
    random_state : int, RandomState, Generator or None, default=0
        Seed of k-means, Leiden and the network. 0 gives the same labels every time.
    verbose : bool, default=False
        Show how far a fit is, on standard error: a bar on a terminal, lines in a notebook.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Cluster of each sample, numbered from 0; −1 for noise, in methods that find any.
    n_clusters_ : int
        Number of clusters found.
    n_features_in_ : int
        Number of features seen in :meth:`fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features; only where all column names of X are strings.
    timings_ : dict
        Seconds of each stage of the fit.
    """

    n_clusters: int | None = 8
    _: KW_ONLY
    scaling: Scaling | None = None
    random_state: Any = 0
    verbose: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _constraints: ClassVar[dict[str, list[Any]]] = {}
    _accepts_sparse: ClassVar[bool] = False
    _cost: ClassVar[str]
    """What a fit costs, in a few words; listed by ``subspaces methods`` like `reference`."""
    _reference: ClassVar[str]

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Gather what the parameters may be."""
        super().__init_subclass__(**keywords)
        parts = [vars(base) for base in reversed(cls.__mro__)]
        names = {name for part in parts for name in part.get("__annotations__", ())}
        cls._parameter_constraints = {name: CONSTRAINTS[name] for name in CONSTRAINTS if name in names}
        for part in parts:
            cls._parameter_constraints |= part.get("_constraints", {})
        complete_docstring(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep NumPy scalars as Python numbers: arithmetic in float16, float32 or int8 overflows."""
        super().__setattr__(name, value.item() if isinstance(value, np.generic) else value)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dense, sparse or a data frame; (n, n) with
            ``kernel="precomputed"``
        y : ignored

        Returns
        -------
        self
        """
        with self._fitting():
            self._fit(self._validated(X))
        return self

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Forget an earlier fit; an error or Ctrl-C inside leaves an unfitted estimator, not half of one."""
        self._forget()
        try:
            with keep_threads, shown(self.verbose, lines=True):
                yield
        except BaseException:
            self._forget()
            raise

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X).labels_

    def predict(self, X: Any) -> Labels:
        """Label new samples; training samples keep their labels (landmarks may have those of their own graph).

        Parameters
        ----------
        X : array-like of shape (n_new, n_features); kernel values to the training samples with
            ``kernel="precomputed"``
        """
        points = self._validated_new(X)
        labels: Labels = self._predictor.label(points)
        return labels

    def _fit(self, X: Data) -> None:
        raise NotImplementedError

    def _validated(self, X: Any) -> Data:
        kinds = "csr" if self._accepts_sparse else False
        points = validated(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2, accept_sparse=kinds)
        keep = not self._accepts_sparse or is_precomputed(getattr(self, "kernel", None))
        return points if keep else stored_by_content(points)

    def _validated_new(self, X: Any) -> Data:
        check_is_fitted(self, "labels_")
        kinds, dtype = "csr" if self._accepts_sparse else False, self._predictor.dtype
        return validated(self, X, dtype=dtype, reset=False, ensure_min_samples=0, accept_sparse=kinds)

    def _drawn_seed(self) -> int:
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(MAX_SEED))
        return int(check_random_state(self.random_state).randint(MAX_SEED))

    def _forget(self) -> None:
        """Remove everything an earlier fit left."""
        for name in list(vars(self)):
            if name.endswith("_") or name in _STATE:
                delattr(self, name)

    def _html_repr(self) -> str:
        """Return scikit-learn's picture for a notebook; of a fit the verdict before it and the tree after it."""
        own: str = estimator_html_repr(self)
        if not hasattr(self, "labels_"):
            return own
        told, tree = counted(self.n_clusters_, "group") + ".", ""
        if len(self.labels_) <= MANY and hasattr(self, "_bare_tree"):
            told = self.verdict_
            if self.n_clusters_ > 2:
                tree = f'<pre style="font-size:12px">{escape(str(self._bare_tree()))}</pre>'
        return f"<p><b>{escape(told)}</b></p>{own}{tree}"

    def _warn_if_fewer(self, found: int, why: str) -> None:
        if self.n_clusters is not None and not isinstance(self.n_clusters, str) and found < self.n_clusters:
            warn_caller(
                f"{counted(found, 'cluster')} found instead of n_clusters={self.n_clusters}: {why}.", ConvergenceWarning
            )
