"""Coefficients and affinity as pictures: points ordered by cluster, so that a good graph is block diagonal."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from subspaces.inspection.plots import parts, style
from subspaces.utils.types import Array, Labels, Sparse

N_CELLS = 360
"""Rows and columns of a picture: about as many as it has pixels."""


def cells_of(matrix: Sparse, labels: Labels, n_cells: int = N_CELLS, how: str = "sum") -> Array:
    """An (n, n) matrix ordered by cluster, in at most `n_cells` × `n_cells` cells; no entry is left out.

    Point number p in the order by cluster falls into row ⌊p · cells / n⌋. A cell holds the sum of its entries, or with
    ``how="strongest"`` the one of largest magnitude, sign kept. Entries are read from a sparse matrix one by one; no
    n × n array is made.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> W = csr_array([[0.0, 1, 9, 0], [1, 0, 0, 9], [9, 0, 0, 2], [0, 9, 2, 0]])
    >>> cells_of(W, np.array([0, 1, 0, 1]), n_cells=2)  # points 0, 2 and points 1, 3
    array([[18.,  3.],
           [ 3., 18.]])
    """
    n = matrix.shape[0]
    size = min(n, n_cells)
    place = np.empty(n, dtype=np.intp)
    place[np.argsort(labels, kind="stable")] = np.arange(n)
    cell = place * size // n
    entries = sparse.coo_array(matrix)
    flat = cell[entries.row] * size + cell[entries.col]
    if how == "sum":
        return np.bincount(flat, weights=entries.data, minlength=size * size).reshape(size, size)
    out = np.zeros(size * size)
    order = np.argsort(np.abs(entries.data), kind="stable")  # of several the last is written: the strongest
    out[flat[order]] = entries.data[order]
    return out.reshape(size, size)


class _MatrixDisplay:
    """What the two displays share: the cells, the clusters along the axes, the drawing."""

    _attribute: ClassVar[str]
    _how: ClassVar[str]
    _title: ClassVar[str]
    _entry: ClassVar[str]

    def __init__(self, cells: Array, sizes: Labels, names: list[str], of_whom: str = "") -> None:
        self.cells, self.sizes, self.names, self.of_whom = cells, sizes, names, of_whom
        self.n_samples = int(sizes.sum())
        self.ends: Labels = np.cumsum(sizes)

    @classmethod
    def _from_matrix(
        cls, matrix: Any, labels: ArrayLike, n_cells: int, ax: Any, of_whom: str = "", **keywords: Any
    ) -> Self:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the matrix must be square, one row and column for each point; got {matrix.shape}.")
        codes, names = parts.checked_labels(labels, matrix.shape[0])
        display = cls(cells_of(matrix, codes, n_cells, cls._how), np.bincount(codes), names, of_whom)
        return display.plot(ax, **keywords)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, n_cells: int = N_CELLS, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search; X is not needed."""
        matrix, labels, of_whom = parts.part_of(estimator, cls._attribute)
        return cls._from_matrix(matrix, labels, n_cells, ax, of_whom, **keywords)

    @property
    def note(self) -> str:
        """What one cell shows."""
        whose = f" ({self.of_whom})" if self.of_whom else ""
        size = len(self.cells)
        if size == self.n_samples:
            return f"{self.n_samples:,} points{whose}; {self._entry}"
        per_cell = (self.n_samples / size) ** 2
        many = "the sum" if self._how == "sum" else "the strongest"
        return f"{self.n_samples:,} points{whose} in {size} × {size} cells; a cell shows {many} of about {per_cell:.0f}"

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``imshow``."""
        ax = style.axes_of(ax, (5.6, 5.4))
        n = self.n_samples
        image = ax.imshow(np.ma.masked_equal(self.cells, 0), extent=(0, n, n, 0), **{**self._colors(ax), **keywords})
        self._mark_clusters(ax)
        ax.set_title(self._title)
        style.caption(ax, self.note)
        self.colorbar_ = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
        self.colorbar_.outline.set_visible(False)
        self.im_, self.ax_, self.figure_ = image, ax, ax.figure
        return self

    def _colors(self, ax: Any) -> dict[str, Any]:
        """Background at zero; weights on a root scale, because the weak edges between clusters are what matters."""
        from matplotlib.colors import PowerNorm

        largest = float(np.abs(self.cells).max(initial=0)) or 1.0
        if self._how == "sum":
            return {"cmap": style.sequential(ax), "norm": PowerNorm(0.5, vmin=0, vmax=largest)}
        signed = self.cells.min(initial=0) < 0
        colors = style.diverging(ax) if signed else style.sequential(ax)
        return {"cmap": colors, "vmin": -largest if signed else 0, "vmax": largest}

    def _mark_clusters(self, ax: Any) -> None:
        """Thin lines around each cluster's block, and numbers as far as they fit."""
        n, starts = self.n_samples, self.ends - self.sizes
        line = {"color": style.foreground(ax), "alpha": 0.35, "linewidth": 0.5}
        for start, end in zip(starts, self.ends, strict=True):
            ax.plot([start, end, end, start, start], [start, start, end, end, start], **line)
        middles = (starts + self.ends) / 2
        ax.set_xticks(*style.thinned(middles, self.names, n * 0.022 * max(map(len, self.names))), fontsize=7)
        ax.set_yticks(*style.thinned(middles, self.names, n * 0.032), fontsize=7)
        ax.tick_params(length=0, pad=1)
        ax.set(xlim=(0, n), ylim=(n, 0), xlabel="cluster", ylabel="cluster")
        ax.spines[:].set_alpha(0.35)


class CoefficientsDisplay(_MatrixDisplay):
    """Truncated coefficients C, points ordered by cluster: column i shows the points that represent point i.

    With more points than cells each cell shows its strongest coefficient, sign kept, so that none is hidden.

    Parameters
    ----------
    cells : array
        What is drawn (:func:`cells_of`).
    sizes : points in each cluster
    names : name of each cluster
    of_whom : whose points these are, where not all

    Attributes
    ----------
    ax_, figure_, im_, colorbar_ : of Matplotlib
    """

    _attribute, _how = "coefficients_", "strongest"
    _title, _entry = "Coefficients, ordered by cluster", "column i represents point i"

    @classmethod
    def from_predictions(
        cls, coefficients: Any, labels: ArrayLike, *, n_cells: int = N_CELLS, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw any (n, n) coefficients, sparse or dense."""
        return cls._from_matrix(coefficients, labels, n_cells, ax, **keywords)


class AffinityDisplay(_MatrixDisplay):
    """Affinity matrix W, points ordered by cluster: what lies off the diagonal blocks is what the cut went through.

    With more points than cells each cell shows the sum of its weights. Colours are on a root scale.

    Parameters
    ----------
    cells, sizes, names, of_whom : as in :class:`CoefficientsDisplay`

    Attributes
    ----------
    ax_, figure_, im_, colorbar_ : of Matplotlib
    """

    _attribute, _how = "affinity_matrix_", "sum"
    _title, _entry = "Affinity, ordered by cluster", "colours on a root scale"

    @classmethod
    def from_predictions(
        cls, affinity: Any, labels: ArrayLike, *, n_cells: int = N_CELLS, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw any (n, n) affinity matrix, sparse or dense."""
        return cls._from_matrix(affinity, labels, n_cells, ax, **keywords)
