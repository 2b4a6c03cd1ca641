"""Classify samples by ridge regression over all training samples and one residual per class."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from subspaces.utils.blocks import row_blocks
from subspaces.utils.decompositions import svd
from subspaces.utils.types import Array

_BLOCK_BYTES = 4 * 2**20


@dataclass(eq=False, repr=False)
class CollaborativeClassifier(ClassifierMixin, BaseEstimator):
    """Assign the class whose share of a ridge code explains a sample best (collaborative representation, CRC).

    All training samples A (rows) together represent a sample y by ridge regression, a = (AAᵀ + κI)⁻¹Ay, and the class
    with the smallest residual e_c = ‖y − A_cᵀa_c‖² over its own coefficients a_c wins. It is the out-of-sample step of
    SSSC, SLSR and SLRR and assumes linear subspaces of fewer dimensions than there are features: when the samples of
    every class span the whole space the residuals say little.

    The code is linear in y, so e_c = ‖yR_c‖² with R_c = I − P_cᵀA_c, P = (AAᵀ + κI)⁻¹A: one m × m matrix per class and
    no training sample at all. That costs L m² per new sample; with few training samples and many features the codes
    themselves (2 p m) are cheaper and used instead.

    Parameters
    ----------
    reg : float, default=1e-6
        κ, the ridge, for samples of unit length.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int

    References
    ----------
    Zhang, Yang, Feng: Sparse representation or collaborative representation, ICCV 2011.
    Peng, Zhang, Yi: Scalable sparse subspace clustering, CVPR 2013.

    Examples
    --------
    >>> from subspaces.landmarks.collaborative import CollaborativeClassifier
    >>> lines = CollaborativeClassifier().fit([[1, 0], [2, 0], [0, 1], [0, 3]], ["x", "x", "y", "y"])
    >>> lines.predict([[5, 0.1], [-0.1, -5]])
    array(['x', 'y'], dtype='<U1')
    """

    reg: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [Interval(Real, 0, None, closed="neither")],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the residual of each class from samples X and their classes y."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        # float64: κ is far below float32's resolution of ‖A‖²
        A = X.astype(np.float64, copy=False)
        members = [np.flatnonzero(codes == code) for code in range(len(self.classes_))]
        P = ridge_operator(A, self.reg)
        self._by_codes = 2 * len(A) < len(members) * A.shape[1]
        if self._by_codes:
            self._parts = [(P[rows].T, A[rows]) for rows in members]
            return self
        self._residual = np.hstack([np.eye(A.shape[1]) - P[rows].T @ A[rows] for rows in members])
        return self

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X."""
        residuals = self.residuals(X)  # first: it checks that there was a fit
        return np.asarray(self.classes_[residuals.argmin(axis=1)])

    def residuals(self, X: Any) -> Array:
        """Return e_c of each row and class, shape (n, n_classes)."""
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        n_classes, m = len(self.classes_), X.shape[1]
        out = np.empty((len(X), n_classes))
        for start, stop in row_blocks(len(X), 8 * n_classes * m, _BLOCK_BYTES):
            block = X[start:stop].astype(np.float64, copy=False)
            out[start:stop] = self._from_codes(block) if self._by_codes else self._from_matrices(block)
        return out

    def _from_codes(self, X: Array) -> Array:
        """Compute the residuals by their definition: codes, then reconstruction by each class."""
        out = np.empty((len(X), len(self._parts)))
        for c, (code, members) in enumerate(self._parts):
            rest = X - X @ code @ members
            out[:, c] = np.einsum("ij,ij->i", rest, rest)
        return out

    def _from_matrices(self, X: Array) -> Array:
        """Compute ‖yR_c‖² for all classes at once."""
        left = (X @ self._residual).reshape(len(X), len(self.classes_), -1)
        return np.asarray(np.einsum("ncm,ncm->nc", left, left))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # blobs in the plane are not subspaces
        return tags


def ridge_operator(A: Array, reg: float) -> Array:
    """Return P = (AAᵀ + κI)⁻¹A, shape (p, m): the ridge code of y over the rows of A is yPᵀ.

    Through the singular values of A: A is often rank deficient, and squaring it first would lose directions of
    size √κ in the rounding.
    """
    U, s, Vt = svd(A)
    return np.asarray((U * (s / (s**2 + reg))) @ Vt)
