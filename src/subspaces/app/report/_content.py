"""What a report is made from: the fitted estimator, the points and what came with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from subspaces.app.description import describe
from subspaces.engine.confidence import Summary, summarize
from subspaces.utils.components import dense_rows
from subspaces.utils.spelling import first_line
from subspaces.utils.types import Array, Labels

if TYPE_CHECKING:
    from subspaces.app.files import Dataset


@dataclass(frozen=True)
class Content:
    """A run, ready to be shown.

    Attributes
    ----------
    estimator : fitted clusterer
    X : array or sparse array of shape (n, m), the points as they were given
    summary : Summary
    document : what was done, as ``subspaces cluster --json`` says it
    ids : names of the points
    y, classes : known classes, as indices and names
    named_by : the column that `ids` are: ``id``, ``line`` or ``row``
    image_shape : height and width (and 3) if points are images
    pixels : the images, flattened, where X holds vectors made of them
    texts : the text of each point, where X holds vectors made of them
    feature_names : names of the columns of X
    files : image file of each point
    command : shell command that repeats the run
    reading : lines of Python that read the points as X
    cluster_names : what a person called some of the clusters
    drawings : more pictures, shown first: title, explanation, size in inches, a function that draws into a figure
    """

    estimator: Any
    X: Array
    summary: Summary
    document: dict[str, Any] = field(default_factory=dict)
    ids: Sequence[Any] | None = None
    y: Labels | None = None
    classes: Sequence[str] | None = None
    named_by: str = "id"
    image_shape: tuple[int, ...] | None = None
    pixels: Array | None = None
    texts: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    files: Sequence[Path] | None = None
    command: str = ""
    reading: str = ""
    cluster_names: Mapping[int, str] = field(default_factory=dict)
    drawings: Sequence[tuple[str, str, tuple[float, float], Callable[[Any], Any]]] = ()

    @classmethod
    def from_dataset(
        cls,
        estimator: Any,
        data: Dataset,
        summary: Summary,
        document: dict[str, Any],
        command: str = "",
        reading: str = "",
    ) -> Self:
        """From what `subspaces.app.files.read_table` returned."""
        return cls(
            estimator,
            data.X,
            summary,
            document,
            ids=data.names,
            y=data.y,
            classes=data.classes,
            named_by=next(iter(data.places), "row"),
            image_shape=data.image_shape,
            pixels=data.pixels,
            texts=data.texts,
            feature_names=data.feature_names,
            files=[data.source / str(name) for name in data.ids or ()] if data.is_image_folder else None,
            command=command,
            reading=reading,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        title: str = "X",
        ids: Sequence[Any] | None = None,
        y: Any = None,
        image_shape: tuple[int, ...] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """From a fitted estimator and its points.

        Examples
        --------
        >>> import numpy as np
        >>> from subspaces import TRR
        >>> from subspaces.app.report import Content, write_report
        >>> X = np.random.default_rng(0).normal(size=(40, 5))
        >>> content = Content.from_estimator(TRR(2).fit(X), X, title="noise")
        >>> write_report("noise.html", content)  # doctest: +SKIP
        """
        points = X if sparse.issparse(X) else np.asarray(X)
        classes, codes = (None, None) if y is None else np.unique(np.asarray(y), return_inverse=True)
        summary = summarize(estimator, points)
        if feature_names is None and hasattr(X, "columns"):
            feature_names = [str(name) for name in X.columns]
        return cls(
            estimator,
            points,
            summary,
            describe(estimator, source=title, shape=points.shape, y=codes, summary=summary, names=ids),
            ids=ids,
            y=codes,
            classes=None if classes is None else [str(name) for name in classes],
            named_by="row" if ids is None else "id",
            image_shape=image_shape,
            feature_names=feature_names,
        )

    @property
    def title(self) -> str:
        """Name of the data, without its folder."""
        source = str(self.document.get("source", "X"))
        return Path(source).name or source

    def cluster_title(self, cluster: int) -> str:
        """Number of a cluster, with the name that a person gave it."""
        name = self.cluster_names.get(cluster)
        return f"{cluster}: {name}" if name else str(cluster)

    @property
    def is_represented(self) -> bool:
        """Whether points, or the landmarks among them, were written as combinations of others."""
        return self._has("coefficients_")

    @property
    def has_graph(self) -> bool:
        """Whether a graph between points, or the landmarks among them, was cut."""
        return self._has("affinity_matrix_")

    def _has(self, name: str) -> bool:
        return hasattr(self.estimator, name) or hasattr(getattr(self.estimator, "clusterer_", None), name)

    @property
    def noun(self) -> str:
        """What a point is called."""
        if self.texts is not None:
            return "texts"
        return "images" if self.image_shape is not None else "points"

    def counted(self, n: int) -> str:
        """So many of them, in words."""
        return f"{n:,} {self.noun if n != 1 else self.noun[:-1]}"

    def name_of(self, i: int) -> str:
        """Name of a point; of a text its name and first line."""
        name = str(i if self.ids is None else self.ids[i])
        name = f"row {name}" if self.named_by == "row" else name
        return name if self.texts is None else f"{name}: {first_line(self.texts[i])}"

    def place_of(self, i: int) -> str:
        """What stands of a point in the column `named_by`."""
        return self.name_of(i).removeprefix(f"{self.named_by} " if self.named_by != "id" else "")

    def row(self, i: int) -> Array:
        """The numbers of a point."""
        return np.asarray(dense_rows(self.X[[i]])[0])
