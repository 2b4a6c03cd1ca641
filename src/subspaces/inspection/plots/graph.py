"""Displays of the graph: coefficients, affinity, spectrum of the Laplacian, spectral embedding in two dimensions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from subspaces.inspection.plots import parts, style
from subspaces.inspection.plots.layout import plane
from subspaces.spectral.embedding import spectral_embedding
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels, Sparse

N_CELLS = 360
"""Rows and columns of a picture of a matrix: about as many as it has pixels."""


def cells_of(matrix: Sparse, labels: Labels, n_cells: int = N_CELLS, how: Literal["sum", "strongest"] = "sum") -> Array:
    """Return an (n, n) matrix ordered by cluster, in at most `n_cells` × `n_cells` cells; no entry is left out.

    Sample number p in the order by cluster falls into row ⌊p · cells / n⌋. A cell holds the sum of its entries, or with
    ``how="strongest"`` the one of largest magnitude, sign kept. No n × n array is made.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> W = csr_array([[0.0, 1, 9, 0], [1, 0, 0, 9], [9, 0, 0, 2], [0, 9, 2, 0]])
    >>> cells_of(W, np.array([0, 1, 0, 1]), n_cells=2)  # samples 0, 2 and samples 1, 3
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


class _MatrixDisplay(style.Display):
    """Cells of a square matrix, with the clusters marked along the axes."""

    _attribute: ClassVar[str]
    _how: ClassVar[Literal["sum", "strongest"]]
    _title: ClassVar[str]
    _entry: ClassVar[str]
    _figsize = (5.6, 5.4)

    def __init__(self, cells: Array, sizes: Labels, names: list[str], of_whom: str = "") -> None:
        self.cells, self.sizes, self.names, self.of_whom = cells, sizes, names, of_whom
        self.n_samples = int(sizes.sum())
        self.ends: Labels = np.cumsum(sizes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, n_cells: int = N_CELLS, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search; X is not needed."""
        return cls._from_part(parts.part_of(estimator, cls._attribute), n_cells).plot(ax, **keywords)

    @classmethod
    def from_predictions(
        cls, matrix: Any, labels: ArrayLike, *, n_cells: int = N_CELLS, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw any (n, n) matrix, sparse or dense, with the labels of its rows."""
        return cls._from_part(parts.Part(matrix, np.asarray(labels), ""), n_cells).plot(ax, **keywords)

    @classmethod
    def _from_part(cls, part: parts.Part, n_cells: int) -> Self:
        shape = part.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"the matrix must be square, one row and column for each sample; got {shape}.")
        codes, names = parts.checked_labels(part.labels, shape[0])
        return cls(cells_of(part.matrix, codes, n_cells, cls._how), np.bincount(codes), names, part.of_whom)

    @property
    def note(self) -> str:
        """Sentence on what one cell shows."""
        whose = f" ({self.of_whom})" if self.of_whom else ""
        size = len(self.cells)
        if size == self.n_samples:
            return f"{self.n_samples:,} samples{whose}; {self._entry}"
        per_cell = (self.n_samples / size) ** 2
        many = "the sum" if self._how == "sum" else "the strongest"
        return (
            f"{self.n_samples:,} samples{whose} in {size} × {size} cells; a cell shows {many} of about {per_cell:.0f}"
        )

    def _draw(self, ax: Any, **keywords: Any) -> None:
        n = self.n_samples
        self.im_ = ax.imshow(np.ma.masked_equal(self.cells, 0), extent=(0, n, n, 0), **self._colors(ax) | keywords)
        self._mark_clusters(ax)
        ax.set_title(self._title)
        style.caption(ax, self.note)
        self.colorbar_ = ax.figure.colorbar(self.im_, ax=ax, fraction=0.046, pad=0.03)

    def _colors(self, ax: Any) -> dict[str, Any]:
        """Return a root scale for weights, because the weak edges between clusters are what matters."""
        from matplotlib.colors import PowerNorm

        largest = float(np.abs(self.cells).max(initial=0)) or 1.0
        if self._how == "sum":
            return {"cmap": style.sequential(ax), "norm": PowerNorm(0.5, vmin=0, vmax=largest)}
        signed = self.cells.min(initial=0) < 0
        colors = style.diverging(ax) if signed else style.sequential(ax)
        return {"cmap": colors, "vmin": -largest if signed else 0, "vmax": largest}

    def _mark_clusters(self, ax: Any) -> None:
        """Draw thin lines around each cluster's block, and numbers as far as they fit."""
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
    """Truncated coefficients C, samples ordered by cluster: column i shows the samples that represent sample i.

    With more samples than cells each cell shows its strongest coefficient, sign kept, so that none is hidden.

    Attributes
    ----------
    cells : matrix that is drawn (:func:`cells_of`)
    sizes, names : samples in each cluster, its name
    """

    _attribute, _how = "coefficients_", "strongest"
    _title, _entry = "Coefficients, ordered by cluster", "column i represents sample i"


class AffinityDisplay(_MatrixDisplay):
    """Affinity matrix W, samples ordered by cluster: what lies off the diagonal blocks is what the cut went through.

    With more samples than cells each cell shows the sum of its weights. Colours are on a root scale. Attributes as in
    :class:`CoefficientsDisplay`.
    """

    _attribute, _how = "affinity_matrix_", "sum"
    _title, _entry = "Affinity, ordered by cluster", "colours on a root scale"


class SpectrumDisplay(style.Display):
    """Smallest eigenvalues of L = I − D^(−1/2) W D^(−1/2) (eq. 3.14); the gap after the last cluster is marked.

    As many zeros as the graph has components; a wide gap after the k-th value says that k clusters stand apart.

    Attributes
    ----------
    eigenvalues : ascending
    gap_ : step from the k-th to the next eigenvalue, nan where that was not computed
    widest_ : the number of clusters after which the step is widest
    """

    _figsize = (5.6, 3.8)

    def __init__(self, eigenvalues: Array, n_clusters: int, of_whom: str = "") -> None:
        self.eigenvalues: Array = np.asarray(eigenvalues)
        self.n_clusters, self.of_whom = int(n_clusters), of_whom
        steps = np.diff(self.eigenvalues)
        known = 0 < self.n_clusters <= len(steps)
        self.gap_ = float(steps[self.n_clusters - 1]) if known else float("nan")
        self.widest_ = int(steps.argmax()) + 1 if len(steps) else self.n_clusters

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, n_eigenvalues: int | None = None, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        The fit computed one eigenvalue for each cluster; to show the gap, half as many more are computed here, for up
        to 20,000 samples or where `n_eigenvalues` asks for them.
        """
        W, labels, of_whom = parts.part_of(estimator, "affinity_matrix_")
        n_clusters, fitted = len(np.unique(labels)), getattr(parts.clusterer_of(estimator), "eigenvalues_", None)
        if n_eigenvalues is None and W.shape[0] > parts.MANY_POINTS and fitted is not None and not of_whom:
            return cls(fitted, n_clusters).plot(ax, **keywords)
        return cls(_eigenvalues(W, n_clusters, n_eigenvalues), n_clusters, of_whom).plot(ax, **keywords)

    @classmethod
    def from_predictions(
        cls, affinity: Any, n_clusters: int, *, n_eigenvalues: int | None = None, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw the spectrum of any affinity matrix, sparse or dense."""
        W = sparse.csr_array(affinity)
        return cls(_eigenvalues(W, n_clusters, n_eigenvalues), n_clusters).plot(ax, **keywords)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        values, k = self.eigenvalues, self.n_clusters
        look = {"marker": ".", "linestyle": "", "color": style.main_color(ax), "markersize": 7, **keywords}
        ax.plot(np.arange(1, len(values) + 1), values, **look)
        text = f"k = {k}"
        if np.isfinite(self.gap_):
            ax.axvspan(k, k + 1, color=style.ACCENT, alpha=0.3, linewidth=0)
            ax.plot([k, k, k + 1], [values[k - 1], values[k], values[k]], color=style.ACCENT, linewidth=2)
            text = f"gap {self.gap_:.2g} after {counted(k, 'cluster')}"
        else:
            ax.axvline(k, color=style.ACCENT, linewidth=1)
        ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", title=f"Spectrum: {text}")
        ax.set_ylim(-0.03 * max(float(values.max(initial=0)), 1e-12), None)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if self.of_whom:
            style.caption(ax, f"graph of {self.of_whom}")


def _eigenvalues(W: Any, n_clusters: int, wanted: int | None) -> Array:
    wanted = n_clusters + max(5, n_clusters // 2) if wanted is None else wanted
    if W.nnz == 0:
        raise ValueError("the affinity matrix has no entry, so it has no spectrum to show.")
    return spectral_embedding(W, min(wanted, W.shape[0] - 1)).eigenvalues


class EmbeddingDisplay(style.Display):
    """Samples in two dimensions (:mod:`subspaces.inspection.plots.layout`), coloured and numbered by cluster.

    Up to eight clusters have colours of their own; with more, colours and markers only tell neighbours apart and the
    number names the cluster.

    Attributes
    ----------
    points, centres : places of the samples (n, 2) and of the clusters (k, 2)
    labels, names : codes 0 ... k − 1 of the samples, name of each code
    method : ``"pca"`` or ``"map"``
    colors_ : colour of each cluster
    """

    _figsize = (6.4, 5.8)
    _explained: ClassVar = {
        "pca": "principal plane of the spectral embedding",
        "map": "map of the spectral embedding: typical samples in the middle of a disc,\ndoubtful ones between discs",
    }

    def __init__(
        self,
        points: Array,
        centres: Array,
        labels: Labels,
        names: list[str],
        method: str,
        of_whom: str = "",
        noun: str = "cluster",
    ) -> None:
        self.points, self.centres, self.labels, self.names = points, centres, labels, names
        self.method, self.of_whom, self.noun = method, of_whom, noun

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        method: Literal["auto", "pca", "map"] = "auto",
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        `method`: ``"auto"`` takes the principal plane for up to three clusters and the map for more. X is not needed.
        With `y`, the known classes, samples are coloured and numbered by them and not by cluster.
        """
        embedding, labels, of_whom = parts.part_of(estimator, "embedding_")
        noun = "cluster" if y is None else "class"
        return cls._from_rows(embedding, labels if y is None else y, method, of_whom, noun).plot(ax, **keywords)

    @classmethod
    def from_predictions(
        cls,
        embedding: ArrayLike,
        labels: ArrayLike,
        *,
        method: Literal["auto", "pca", "map"] = "auto",
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Draw any embedding (n, m) with labels."""
        return cls._from_rows(np.asarray(embedding), labels, method).plot(ax, **keywords)

    @classmethod
    def _from_rows(cls, embedding: Array, labels: ArrayLike, method: str, *described: str) -> Self:
        if embedding.ndim != 2:
            raise ValueError(f"embedding must have two dimensions, one row for each sample; got {embedding.shape}.")
        codes, names = parts.checked_labels(labels, len(embedding))
        points, centres, used = plane(embedding, codes, method)
        return cls(points, centres, codes, names, used, *described)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        from matplotlib.patheffects import withStroke

        n, k = len(self.points), len(self.names)
        palette = style.map_colors(self.centres)
        self.colors_ = [style.OKABE_ITO[color] for color in palette]
        look: dict[str, Any] = {"s": float(np.clip(9000 / n, 3, 18)), "linewidths": 0.3, "alpha": 0.85}
        for cluster in range(k):
            marker = style.MARKERS[palette[cluster] % len(style.MARKERS)]
            own = {"color": self.colors_[cluster], "marker": marker, "rasterized": n > 5000, **look, **keywords}
            ax.scatter(*self.points[self.labels == cluster].T, **own)
        rim = withStroke(linewidth=2.5, foreground=ax.get_facecolor())  # readable on samples
        look = {"path_effects": [rim], "zorder": 3, "fontweight": "bold", "fontsize": 8}
        for (x, y), name in zip(self.centres, self.names, strict=True):
            ax.text(x, y, name, ha="center", va="center", **look)
        groups = counted(k, self.noun, {"class": "classes"}.get(self.noun))
        ax.set(title=f"Embedding of {n:,} samples, {groups}", aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_alpha(0.25)
        style.caption(ax, self._explained[self.method] + (f" of {self.of_whom}" if self.of_whom else ""))
