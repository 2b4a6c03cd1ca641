"""Fitted models in files, by skops: no pickle, and nothing but the parts that are listed here."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from subspaces.app.files.dataset import Dataset, told_in_one_line
from subspaces.registry import METHODS, SHALLOW
from subspaces.utils.atomic import write_atomically
from subspaces.utils.files import FileError, check_size, printable, quoted, read_header
from subspaces.utils.memory import available_bytes
from subspaces.utils.process import quiet

SUFFIX = ".skops"
KIND = "a model of subspaces"
_METHODS = ("subspaces.estimators.", "subspaces.selection.auto")

OURS = {
    "engine.predict": "ByModel ByTrainingPoints",
    "selection.auto": "SubspaceClustering",
    "estimators.sampled": "SampledClusterer",
    "app.features.documents": "Sentences Tfidf",
    "app.features.extractor": "FromFile",
    "app.features.networks": "EfficientNet",
    "app.features.pixels": "Pixels",
    "kernels.base": "Precomputed",
    "kernels.correntropy": "Correntropy CosineMap",
    "kernels.profiles": "Cosine Cubic Exponential InverseDistance InverseSquare "
    "Linear Polynomial Quadratic RBF Sigmoid",
    "landmarks.bipartite": "BipartiteModel CoarseIndex Landmarks",
    "landmarks.collaborative": "CollaborativeClassifier",
    "landmarks.kernel_graph": "CentroidModel KernelCentres KernelKMeansModel KernelRows NystromModel",
    "landmarks.sample_cluster_classify": "SampledModel",
    "landmarks.spectral_embedded": "LinearEmbedding SpectralEmbeddedModel",
    "utils.cells": "Cells",
    "representation.coefficients": "Factors PermutedFactors Trace",
    "kernels.scaling": "Scaling",
    "selection.count": "ClusterCount",
    "selection.hints": "Hints",
    "selection.result": "RunnerUp Selection Trial",
}
"""Classes of this package, by module, that fitted models are made of beside the methods themselves."""

OTHERS = (
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._label.LabelBinarizer",
)
"""Classes of scikit-learn that label new points."""

_CLASSES = {f"subspaces.{module}.{name}" for module, names in OURS.items() for name in names.split()}
_CLASSES |= {f"{method.module}.{method.class_name}" for method in METHODS if method.kind in SHALLOW}
_KEYS = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"}
_TUPLES = (".Factors", ".PermutedFactors", ".Hints")
_NUMBERS = {f"numpy.{name}" for name in ("bool", "bool_", "float32", "float64", "int32", "int64", "str_")}
_ALLOWED = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple", *(name for name in _CLASSES if name.endswith(_TUPLES))},
    "JsonNode": {"builtins.str"},
    "TypeNode": _KEYS | _NUMBERS,
    "NdArrayNode": {"numpy.ndarray", *_NUMBERS},
    "SparseMatrixNode": {"scipy.sparse._csc.csc_array", "scipy.sparse._csr.csr_array"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "ObjectNode": {*_CLASSES, *OTHERS},
}
"""Classes that each loader of skops may make."""

_EXTRACTORS = {
    "EfficientNet": "side",
    "FromFile": "path",
    "Pixels": "size",
    "Sentences": "",
    "Tfidf": "words weights directions",
}
"""Attributes of each extractor, and no others: one more would replace one of its class."""

_PLACES = {("reading", "features"), ("estimator", "features"), ("estimator", "extractor_")}
"""Places of extractors. Elsewhere a part may be called, and an extractor that is called opens files."""

_ENTRY = 60
"""Bytes that a byte of the list of parts may take while it is read: 5 in models, 25 in lists of empty lists."""


@dataclass(frozen=True)
class Reading:
    """Properties of the file that a model was fitted to, so that new samples are read alike.

    Attributes
    ----------
    n_features : number of features
    feature_names : their names, where the file had names
    image_shape : height and width (and 3 for colour) of images
    features : the extractor that made vectors of them (:class:`subspaces.app.features.Extractor`), or None
    """

    n_features: int
    feature_names: list[str] | None = None
    image_shape: list[int] | None = None
    features: Any = None

    @classmethod
    def of(cls, data: Dataset) -> Reading:
        """Describe how a dataset was read."""
        shape = list(data.image_shape) if data.is_image_folder and data.image_shape is not None else None
        return cls(int(data.X.shape[1]), data.feature_names, shape, data.features)


def check_model_library(path: Path) -> None:
    """Refuse models where skops is not installed."""
    if find_spec("skops") is None:
        raise FileError(path, 'saved models need skops: pip install "subspaces[app]"')


def check_features(path: Path, features: Any) -> None:
    """Refuse an extractor (None: there is none) that a model could not hold."""
    if hasattr(features, "function") or (callable(features) and not hasattr(type(features), "identity")):
        problem = "features is a function, and a model that holds a program is not written"
        raise FileError(path, f"{problem}; call it yourself and fit a model to what it returns")
    _content(path, {"reading": {"features": features}})


def save_model(path: str | PathLike[str], estimator: Any, reading: Reading | None = None) -> None:
    """Write a fitted model; it is there whole or not at all.

    `reading` says how a file with new samples is read; by default by the columns that the estimator was fitted to.
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
    """Return the bytes of a model; refuse what `load_model` would refuse."""
    import skops.io

    content: bytes = skops.io.dumps(document)
    if found := _strangers(content):
        problem = f"the model holds {quoted(found)}, which could not be read again"
        remedy = "use a method of this package, as classifier None or LogisticRegression()"
        raise FileError(path, f"{problem}; {remedy}")
    return content


def load_model(path: str | PathLike[str], max_bytes: int | None = None) -> tuple[Any, Reading]:
    """Read a model that `save_model` wrote: the fitted estimator, and how its samples were read.

    Nothing is unpickled. Before anything is made or imported, every part that the file lists is compared with the list
    of classes that models of this package are made of, and the file is refused with the names of all others; so is one
    that unpacks to more than `max_bytes`, which by default is the memory that is free now.
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(file, "no such file; check the name and the folder")
    check_model_library(file)
    import skops.io

    most = available_bytes() if max_bytes is None else max_bytes
    with told_in_one_line(file, "not a model"):
        check_size(file, file.stat().st_size, most, "is a file of")
        content = file.read_bytes()  # once: what was looked at is what is loaded
        _check_members(file, content, most)
        if found := _strangers(content):
            problem = f"it would make {quoted(found)}, and models of this package need nothing of the kind"
            raise FileError(file, f"{problem}; do not use it")
        _check_sparse(content)
        with quiet():
            document = skops.io.loads(content, trusted=sorted(set().union(*_ALLOWED.values())))
        is_ours = isinstance(document, dict) and document.get("kind") == KIND
        if not is_ours or not type(document.get("estimator")).__module__.startswith(_METHODS):
            raise FileError(file, "this is no model that was saved here")
        return document["estimator"], Reading(**document["reading"])


# ------------------------------------------------------------------ parts of a model, looked up before any is made


def _strangers(content: bytes) -> list[str]:
    """Return the names of parts that are on no list of this module."""
    found, first = dict[str, None](), dict[Any, int]()
    for path, part in _parts(content):
        # skops takes the first part of an id for all others of that id, whatever these say
        if first.setdefault(part.get("__id__"), part.digest) != part.digest and "__id__" in part:
            found["two parts under one id"] = None
        if trouble := _trouble(path, part):
            found[trouble] = None
    return list(found)


class _Digested(dict[str, Any]):
    """Part with a digest that is the same for equal ones.

    Ids and files do not count: they differ for random states that are written twice, and files are numbers.
    """

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(part)
        self.digest = hash(tuple((key, _digest(part[key])) for key in sorted(part) if key not in ("__id__", "file")))


def _digest(value: Any) -> int:
    if isinstance(value, list):
        return hash(tuple(map(_digest, value)))
    return value.digest if isinstance(value, _Digested) else hash(repr(value))


def _check_sparse(content: bytes) -> None:
    """Raise ValueError if a sparse matrix points outside of itself, which SciPy's programs in C would follow."""
    from scipy import sparse

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in {part["file"] for _, part in _parts(content) if part["__loader__"] == "SparseMatrixNode"}:
            sparse.load_npz(io.BytesIO(archive.read(name))).check_format(full_check=True)


def _parts(content: bytes) -> Iterator[tuple[tuple[str, ...], _Digested]]:
    """Yield every part at any depth, with the keys that lead to it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"), object_hook=_Digested)
    waiting: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [((*path, "[]"), item) for item in value]
        elif isinstance(value, _Digested) and any(key.startswith("__") for key in value):
            yield path, value
            waiting += [(path if key == "content" else (*path, f"({key})"), value[key]) for key in value]
        elif isinstance(value, dict):
            waiting += [((*path, key), item) for key, item in value.items()]


def _trouble(path: tuple[str, ...], part: dict[str, Any]) -> str:
    """Describe the problem of a part; empty if there is none."""
    loader, name = part.get("__loader__"), f"{part.get('__module__')}.{part.get('__class__')}"
    if not isinstance(loader, str) or name not in _ALLOWED.get(loader, ()):
        return name
    if loader == "DictNode" and not _are_keys(part.get("key_types")):
        return "keys that are neither texts nor numbers"
    is_extractor = name.startswith("subspaces.app.features.")
    return _trouble_of_extractor(path, part) if is_extractor else ""


def _trouble_of_extractor(path: tuple[str, ...], part: dict[str, Any]) -> str:
    name = str(part["__class__"])
    if path not in _PLACES or (name == "FromFile" and path[0] != "reading"):  # only there the file is asked for anew
        return f"{name} as {'.'.join(path) or 'a model'}"
    inner = part.get("content") or {}
    held: dict[str, Any] = inner["content"] if inner.get("__loader__") == "DictNode" else {}
    if set(held) != set(_EXTRACTORS[name].split()) or (not held and inner.get("content") != "null"):
        return f"{name} with other attributes"
    return ""


def _are_keys(part: Any) -> bool:
    """Return True for types of keys that do nothing but turn a text into a key."""
    kinds = part.get("content") if isinstance(part, dict) and part.get("__loader__") == "ListNode" else None
    return isinstance(kinds, list) and all(
        isinstance(kind, dict)
        and kind.get("__loader__") == "TypeNode"
        and f"{kind.get('__module__')}.{kind.get('__class__')}" in _KEYS | _NUMBERS
        for kind in kinds
    )


# ------------------------------------------------------------------ sizes of parts


def _check_members(path: Path, content: bytes, max_bytes: int) -> None:
    """Compare what a model unpacks to with what may be used, each array as often as it is asked for."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_size(path, sum(_packing(info).file_size for info in archive.infolist()), max_bytes, "unpacks to")
        schema = archive.getinfo("schema.json")
        needed = len(content) + _ENTRY * schema.file_size
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
    """Return the bytes that a part takes in memory, copies included; arrays must be as large as their headers say."""
    with archive.open(info) as stream:
        head = stream.read(6)
    if head == b"\x93NUMPY":
        with archive.open(info) as stream:
            shape, dtype = read_header(stream)
        needed = math.prod(shape) * dtype.itemsize
        if needed > info.file_size:
            raise ValueError(f"an array announces {printable(needed)} bytes, {info.file_size} are there")
    if not head.startswith(b"PK"):
        return 2 * info.file_size
    if is_inner:
        raise ValueError("an archive in an archive in an archive")
    with zipfile.ZipFile(io.BytesIO(archive.read(info))) as inner:  # a sparse matrix
        return info.file_size + sum(_size(inner, _packing(part), is_inner=True) for part in inner.infolist())
