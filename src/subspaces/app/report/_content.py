"""Content of a report: the fitted estimator, the samples and what came with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from scipy import sparse

from subspaces.app.description import describe
from subspaces.app.groups import Groups
from subspaces.app.pictures import files_of
from subspaces.engine.confidence import Summary, summarize
from subspaces.utils.components import dense_rows
from subspaces.utils.process import warn_caller
from subspaces.utils.spelling import first_line
from subspaces.utils.types import Array, Labels

if TYPE_CHECKING:
    from subspaces.app.files import Dataset

Made = TypeVar("Made")


def attempted(what: str, make: Callable[[], Made]) -> Made | None:
    """Return a part of the report, or None with a warning where it fails: the page is worth more than it."""
    try:
        return make()
    except (ValueError, ImportError, np.linalg.LinAlgError, MemoryError) as error:
        warn_caller(f"{what} was left out of the report: {error}")
        return None


@dataclass(frozen=True)
class Content:
    """A run, ready to be shown.

    Attributes
    ----------
    estimator : fitted clusterer
    X : array or sparse array of shape (n_samples, n_features), as given
    summary : Summary
    document : what was done, as ``subspaces cluster --json`` says it
    ids : names of the samples
    y, classes : known classes, as indices and names
    named_by : the column that `ids` are: ``id``, ``line`` or ``row``
    image_shape : height and width (and 3) if samples are images
    pixels : the images, flattened, where X holds vectors made of them
    texts : the text of each sample, where X holds vectors made of them
    feature_names : names of the columns of X
    files : image file of each sample
    command : shell command that repeats the run
    reading : lines of Python that read the samples as X
    cluster_names : names that a person gave to some of the clusters
    groups : mean and spread of every column in each cluster, in the units of the file
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
    groups: Groups | None = None
    drawings: Sequence[tuple[str, str, tuple[float, float], Callable[[Any], Any]]] = ()

    @classmethod
    def from_dataset(
        cls, estimator: Any, data: Dataset, summary: Summary, document: dict[str, Any], **more: Any
    ) -> Self:
        """Take the samples from what `subspaces.app.files.read_table` returned; `more` are other attributes."""
        same = ("y", "classes", "image_shape", "pixels", "texts", "feature_names")
        more |= {name: getattr(data, name) for name in same}
        named_by = next(iter(data.places), "row")
        more |= {"files": files_of(data), "ids": data.names, "named_by": named_by}
        named = document.get("told", {}).get("names", {})
        more.setdefault("cluster_names", {int(cluster): name for cluster, name in named.items()})
        return cls(estimator, data.X, summary, document, **more)

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
        """Describe a fitted estimator and the samples it was fitted on.

        Examples
        --------
        >>> import numpy as np
        >>> from subspaces import TRR
        >>> from subspaces.app.report import Content, write_report
        >>> X = np.random.default_rng(0).normal(size=(40, 5))
        >>> content = Content.from_estimator(TRR(2).fit(X), X, title="noise")
        >>> write_report("noise.html", content)  # doctest: +SKIP
        """
        samples = X if sparse.issparse(X) else np.asarray(X)
        classes, codes = (None, None) if y is None else np.unique(np.asarray(y), return_inverse=True)
        summary = summarize(estimator, samples)
        if feature_names is None and hasattr(X, "columns"):
            feature_names = [str(name) for name in X.columns]
        groups = None
        if feature_names is not None and isinstance(samples, np.ndarray):
            import pandas as pd

            groups = Groups.of(summary.labels, pd.DataFrame(samples, columns=list(feature_names)))
        return cls(
            estimator,
            samples,
            summary,
            describe(estimator, source=title, shape=samples.shape, y=codes, summary=summary, names=ids),
            ids=ids,
            y=codes,
            classes=None if classes is None else [str(name) for name in classes],
            named_by="row" if ids is None else "id",
            image_shape=image_shape,
            feature_names=feature_names,
            groups=groups,
        )

    @property
    def title(self) -> str:
        """Name of the data, without its folder."""
        source = str(self.document.get("source", "X"))
        return Path(source).name or source

    def has(self, name: str) -> bool:
        """Whether the fit gave this attribute, for the samples or the landmarks among them."""
        return hasattr(self.estimator, name) or hasattr(getattr(self.estimator, "clusterer_", None), name)

    @property
    def noun(self) -> str:
        """Word for several samples."""
        if self.texts is not None:
            return "texts"
        return "images" if self.image_shape is not None else "points"

    def counted(self, n: int) -> str:
        """Return a number of samples in words."""
        return f"{n:,} {self.noun if n != 1 else self.noun[:-1]}"

    def cluster_title(self, cluster: int) -> str:
        """Return the number of a cluster, with the name that a person gave it."""
        name = self.cluster_names.get(cluster)
        return f"{cluster}: {name}" if name else str(cluster)

    def name_of(self, i: int) -> str:
        """Return the name of a sample; of a text its name and first line."""
        name = str(i if self.ids is None else self.ids[i])
        name = f"row {name}" if self.named_by == "row" else name
        return name if self.texts is None else f"{name}: {first_line(self.texts[i])}"

    def place_of(self, i: int) -> str:
        """Return the entry of a sample in the column `named_by`."""
        return self.name_of(i).removeprefix(f"{self.named_by} " if self.named_by != "id" else "")

    def row(self, i: int) -> Array:
        """Return the features of a sample as a dense array."""
        return np.asarray(dense_rows(self.X[[i]])[0])

    @property
    def codes(self) -> Labels:
        """Labels as positions in ``summary.clusters``."""
        return np.searchsorted(self.summary.clusters, self.summary.labels)

    @cached_property
    def is_drawn_away(self) -> Array:
        """Whether each sample is nearer to another cluster than to its own: where the margin is negative."""
        return np.asarray((self.summary.margin < 0) & (self.summary.second_cluster >= 0))

    def remark_on(self, i: int) -> str:
        """Return what a person should know of a label beside its confidence."""
        remarks = ["another cluster suits better"] * bool(self.is_drawn_away[i])
        return "; ".join(remarks + ["fits nowhere"] * bool(self.summary.fits_nowhere[i]))
