"""A task of ``subspaces cluster``, checked before a file is read; the estimator for it; its result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subspaces import registry
from subspaces.app.cli._common import refuse
from subspaces.app.cli._features import Features
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._options import AUTO, Reading
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files import Dataset
    from subspaces.app.groups import Groups
    from subspaces.applications.hyperspectral import ImageClusters
    from subspaces.engine.confidence import Summary

CHOSEN = ("kernel", "reg", "n_nonzero", "scaling", "assign_labels")
"""Parameters of KTRR that are chosen from the points when no method was named and others of them are given."""

POINT_BYTES = 1000
"""Bytes that describing and writing the result takes for each point, measured."""


@dataclass(frozen=True)
class Task:
    """Files, how they are read, and the method with its parameters."""

    inputs: Inputs
    reading: Reading
    features: Features
    method: str
    n_clusters: int | None
    parameters: dict[str, Any]
    is_image: bool = False
    is_motion: bool = False
    mask: Path | None = None
    known: Path | None = None

    def estimator(self, n_samples: int | None) -> Any:
        """Return the estimator, unfitted; check that its parameters go together. `n_samples` is None for streams.

        Parameters that are not given are the defaults of the class, as in Python; without a number of clusters, an
        image or trajectories have theirs found by the front door.
        """
        method, k, given = self.method, self.n_clusters, dict(self.parameters)
        if k is not None and not 1 <= k <= (n_samples or k):
            found = f"{counted(k, 'cluster')} of {counted(n_samples or 0, 'point')}"
            raise refuse("-k", f"{found}; ask for {'fewer' if k > 0 else 'more'}")
        from subspaces import KTRR, SubspaceClustering

        cls = SubspaceClustering if method == AUTO else registry.load(method)
        if (self.is_image or self.is_motion) and cls is KTRR and k is None:
            cls = SubspaceClustering
            given = {name: value for name, value in given.items() if name in cls().get_params()}
        known = cls().get_params()
        for name in given:
            if name in ("effort", "scaling") and name not in known:
                raise refuse(name, f"has no meaning for the method {method}")
            if name not in known:
                names = ", ".join(key for key in known if key != "n_clusters")
                raise refuse("--set", f"'{name}' is no parameter of the method {method}, which has {names}")
        if given.get("scaling") == "none":
            given["scaling"] = None
        if cls is SubspaceClustering:
            return cls(n_clusters=k, **given)
        if AUTO in (given.get(name) for name in CHOSEN):
            raise refuse("--method", f"auto has no meaning for the method {method} here")
        if k is None and "assign_labels" not in known:
            raise refuse("-k", f"the method {method} needs the number of clusters")
        if k is None and given.setdefault("assign_labels", "modularity") != "modularity":
            raise refuse("-k", f"assign_labels={given['assign_labels']} needs the number of clusters; add -k")
        return cls(n_clusters=k, **given)


def check_room(n_samples: int) -> None:
    """Refuse more samples than there is room to describe, before they are clustered."""
    from subspaces.utils.memory import require

    what = f"the confidence and the table of {n_samples} points"
    require(POINT_BYTES * n_samples, what, "Allow more with --memory, or cluster a sample.")


def fit(estimator: Any, X: Any, *known: Any) -> None:
    """Fit; a parameter out of its range is the fault of the command."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        estimator.fit(X, *known)
    except InvalidParameterError as error:
        raise typer.BadParameter(str(error)) from error
    except ValueError as error:
        if known:  # labels that contradict each other, or name too few classes
            raise refuse("--known", str(error).removeprefix("y must ")) from error
        raise


@dataclass(frozen=True)
class Run:
    """A finished run; files that are read piece by piece have neither `data` nor `summary`."""

    document: dict[str, Any]
    estimator: Any
    data: Dataset | None = None
    summary: Summary | None = None
    reading: str = ""  # lines of Python that read the samples
    image: ImageClusters | None = None
    tracks: Any = None  # with their gaps

    def columns(self) -> dict[str, Any]:
        """Return what is known of every sample beside its label; a column `name` where a person named classes."""
        if self.summary is None:
            return {}
        found = self.summary.columns()
        if "told" not in self.document:
            return found
        names = self.document["told"]["names"]
        told = {"name": [names.get(str(label), "") for label in self.summary.labels.tolist()]}
        return {**told, **found, "known": self.estimator.known_.tolist()}

    @cached_property
    def groups(self) -> Groups | None:
        """What sets the groups apart, in the units of the file; None where it has no columns."""
        if self.data is None or self.summary is None:
            return None
        from subspaces.app.groups import groups_of

        names = self.document.get("told", {}).get("names", {})
        return groups_of(self.data, self.summary.labels, {int(cluster): name for cluster, name in names.items()})
