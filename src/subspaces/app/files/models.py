"""Fitted models in files, by skops: no pickle, nothing that :mod:`subspaces.app.files.model_parts` does not list."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from subspaces.app.files.dataset import Dataset
from subspaces.app.files.model_parts import NAMES, check_members, check_sparse, strangers
from subspaces.utils.atomic import write_atomically
from subspaces.utils.files import FileError, check_size, printable, quoted
from subspaces.utils.memory import available_bytes
from subspaces.utils.process import quiet

SUFFIX = ".skops"
KIND = "a model of subspaces"


@dataclass(frozen=True)
class Reading:
    """How the points of a model were read, so that new ones are read alike.

    Attributes
    ----------
    n_features : columns of the points
    feature_names : their names, where the file had names
    image_shape : height and width (and 3 for colour) of images
    features : what made vectors of them (:class:`subspaces.app.features.Extractor`); None where nothing did
    """

    n_features: int
    feature_names: list[str] | None = None
    image_shape: list[int] | None = None
    features: Any = None

    @classmethod
    def of(cls, data: Dataset) -> Reading:
        """How a dataset was read."""
        shape = list(data.image_shape) if data.is_image_folder and data.image_shape is not None else None
        return cls(int(data.X.shape[1]), data.feature_names, shape, data.features)


def check_model_library(path: Path) -> None:
    """Refuse models where skops is not installed."""
    if find_spec("skops") is None:
        raise FileError(path, 'saved models need skops: pip install "subspaces[app]"')


def check_features(path: Path, features: Any) -> None:
    """Refuse what makes vectors of things (None: nothing does) where a model could not hold it."""
    if hasattr(features, "function") or (callable(features) and not hasattr(type(features), "identity")):
        problem = "features is a function, and a model that holds a program is not written"
        raise FileError(path, f"{problem}; call it yourself and fit a model to what it returns")
    _content(path, {"reading": {"features": features}})


def save_model(path: str | PathLike[str], estimator: Any, reading: Reading | None = None) -> None:
    """Write a fitted model; it is there whole or not at all.

    `reading` says how a file with new points is read; left out, by the columns that the estimator was fitted to.
    """
    file = Path(path)
    check_model_library(file)
    if reading is None:
        names = getattr(estimator, "feature_names_in_", None)
        reading = Reading(int(estimator.n_features_in_), None if names is None else [str(name) for name in names])
    for features in (reading.features, getattr(estimator, "features", None)):
        check_features(file, features)
    content = _content(file, {"kind": KIND, "reading": vars(reading), "estimator": estimator})
    with write_atomically(file) as stream:
        stream.write(content)


def _content(path: Path, document: dict[str, Any]) -> bytes:
    """The bytes of a model; refuses what `load_model` would refuse."""
    import skops.io

    content: bytes = skops.io.dumps(document)
    found = strangers(content)
    if found:
        problem = f"the model holds {quoted(found)}, which could not be read again"
        raise FileError(path, f"{problem}; use a method of this package, and a network by its plain name")
    return content


def load_model(path: str | PathLike[str], max_bytes: int | None = None) -> tuple[Any, Reading]:
    """Read a model that `save_model` wrote: the fitted estimator, and how its points were read.

    Nothing is unpickled. Before anything is made or imported, every part that the file lists is compared with the list
    of classes that models of this package are made of, and the file is refused with the names of all others; so is one
    that unpacks to more than `max_bytes`, which by default is the memory that is free now. A network that makes vectors
    of pictures must be one that its package knows by name.
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(file, "no such file; check the name and the folder")
    check_model_library(file)
    import skops.io

    most = available_bytes() if max_bytes is None else max_bytes
    try:
        check_size(file, file.stat().st_size, most, "is a file of")
        content = file.read_bytes()  # once: what was looked at is what is loaded
        check_members(file, content, most)
        found = strangers(content)
        if found:
            problem = f"it would make {quoted(found)}, and models of this package need nothing of the kind"
            raise FileError(file, f"{problem}; do not use it")
        check_sparse(content)
        with quiet():
            document = skops.io.loads(content, trusted=NAMES)
        is_ours = isinstance(document, dict) and document.get("kind") == KIND
        if not is_ours or not type(document.get("estimator")).__module__.startswith("subspaces.estimators."):
            raise FileError(file, "this is no model that was saved here")
        return document["estimator"], Reading(**document["reading"])
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(file, "does not fit in memory") from error
    except Exception as error:  # damaged bytes meet skops, JSON and NumPy in too many ways to list
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(file, f"damaged, cut short or not a model ({reason}); save it again") from error
