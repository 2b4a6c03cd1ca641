"""Fitted models in files, by skops: no pickle; of what a file may make, only numbers, texts and classes of models."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from subspaces.io.dataset import Dataset, FileError, check_size, printable, quoted
from subspaces.io.numpy_files import read_header
from subspaces.io.writing import write_atomically
from subspaces.numerics.memory import available_bytes
from subspaces.numerics.process import quiet

SUFFIX = ".skops"
KIND = "a model of subspaces"

PARTS = (
    "engine",
    "estimators",
    "features",
    "kernels",
    "landmarks",
    "new_points",
    "representation",
    "scaling",
    "selection",
)
"""Parts of the package whose classes a fitted model is made of."""

OTHERS = ("scipy.sparse._csc.csc_array", "scipy.sparse._csr.csr_array", "subspaces.numerics.cells.Cells")
"""Classes of other parts and packages that models hold and that skops does not know."""

_ENTRY = 60
"""Bytes that a byte of the list of parts may take while it is read: 5 in models, 25 in lists of empty lists."""


@dataclass(frozen=True)
class Reading:
    """How the points of a model were read, so that new ones are read alike.

    Attributes
    ----------
    n_features : columns of the points
    feature_names : their names, where the file had names
    image_shape : height and width (and 3 for colour) of images
    features : what made vectors of them (:class:`subspaces.features.Extractor`); None where nothing did
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
        raise FileError(path, 'saved models need skops: pip install "subspaces[models]"')


def save_model(path: str | PathLike[str], estimator: Any, reading: Reading | None = None) -> None:
    """Write a fitted model; it is there whole or not at all.

    `reading` says how a file with new points is read; left out, by the columns that the estimator was fitted to.
    """
    check_model_library(Path(path))
    if reading is None:
        names = getattr(estimator, "feature_names_in_", None)
        reading = Reading(int(estimator.n_features_in_), None if names is None else [str(name) for name in names])
    for features in (reading.features, getattr(estimator, "features", None)):
        if hasattr(features, "function") or (callable(features) and not hasattr(features, "identity")):
            problem = "features is a function, and a model that holds a program is not written"
            raise FileError(Path(path), f"{problem}; call it yourself and fit a model to what it returns")
    import skops.io

    content = skops.io.dumps({"kind": KIND, "reading": vars(reading), "estimator": estimator})
    strangers = _strangers(skops.io.get_untrusted_types(data=content))
    if strangers:
        problem = f"the model holds {quoted(strangers)}, which could not be read again"
        raise FileError(Path(path), f"{problem}; use a method and parameters of this package")
    with write_atomically(path) as stream:
        stream.write(content)


def load_model(path: str | PathLike[str], max_bytes: int | None = None) -> tuple[Any, Reading]:
    """Read a model that `save_model` wrote: the fitted estimator, and how its points were read.

    Nothing is unpickled. A file that would make anything but numbers, texts and this package's own classes is refused
    with the names of what it would make, before it does; so is one that unpacks to more than `max_bytes`, which by
    default is the memory that is free now.
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(file, "no such file; check the name and the folder")
    check_model_library(file)
    import skops.io

    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(file, archive, available_bytes() if max_bytes is None else max_bytes)
        with quiet():
            found = skops.io.get_untrusted_types(file=file)
            strangers = _strangers(found)
            if strangers:
                problem = f"it would make {quoted(strangers)}, and models of this package need nothing of the kind"
                raise FileError(file, f"{problem}; do not use it")
            document = skops.io.load(file, trusted=found)
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise FileError(file, "this is no model that was saved here")
        return document["estimator"], Reading(**document["reading"])
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(file, "does not fit in memory") from error
    except Exception as error:  # damaged bytes meet skops, JSON and NumPy in too many ways to list
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(file, f"damaged, cut short or not a model ({reason}); save it again") from error


def _strangers(names: list[str]) -> list[str]:
    return [name for name in names if name not in OTHERS and not _is_ours(name)]


def _is_ours(name: str) -> bool:
    """Whether a name is that of a class of models, defined where the name says."""
    module, _, attribute = name.rpartition(".")
    parts = module.split(".")
    if len(parts) < 2 or parts[0] != "subspaces" or parts[1] not in PARTS:
        return False
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module


def _check_members(path: Path, archive: zipfile.ZipFile, max_bytes: int) -> None:
    """Compare what a model unpacks to with what may be used, each array as often as it is asked for."""
    check_size(path, sum(_packing(info).file_size for info in archive.infolist()), max_bytes, "unpacks to")
    schema = archive.getinfo("schema.json")
    needed = _ENTRY * schema.file_size
    check_size(path, needed, max_bytes, "its list of parts needs")
    sizes = {info.filename: _size(archive, info) for info in archive.infolist() if info is not schema}
    waiting = [json.loads(archive.read(schema))]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict) and isinstance(entry.get("file"), str):
            needed += sizes.get(entry["file"], 0)
        waiting += entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
    check_size(path, needed, max_bytes, "its values need")


def _packing(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("packed in a way that models are not")
    return info


def _size(archive: zipfile.ZipFile, info: zipfile.ZipInfo, is_inner: bool = False) -> int:
    """Bytes that a part takes in memory, copies included; arrays must be as large as their headers say."""
    with archive.open(info) as stream:
        head = stream.read(6)
    if head == b"\x93NUMPY":
        with archive.open(info) as stream:
            shape, dtype = read_header(stream)
        needed = dtype.itemsize
        for length in shape:
            needed *= length
        if needed > info.file_size:
            raise ValueError(f"an array announces {printable(needed)} bytes, {info.file_size} are there")
    if not head.startswith(b"PK"):
        return 2 * info.file_size
    with zipfile.ZipFile(io.BytesIO(archive.read(info))) as inner:  # a sparse matrix
        return info.file_size + sum(
            _size(inner, _packing(part)) for part in inner.infolist() if not _nested(inner, part)
        )


def _nested(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    with archive.open(info) as stream:
        if stream.read(2) == b"PK":
            raise ValueError("an archive in an archive in an archive")
    return False
