"""What a saved model may hold, looked up in the file's own list of parts before anything of it is made or imported."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import sparse

from subspaces.registry import METHODS, SHALLOW
from subspaces.utils.files import check_size, printable, read_header

OURS = {
    "engine.predict": "ByModel ByTrainingPoints",
    "estimators.auto": "SubspaceClustering",
    "estimators.sampled": "SampledClusterer",
    "app.features.documents": "Sentences Tfidf",
    "app.features.extractor": "FromFile",
    "app.features.networks": "EfficientNet OpenClip Timm",
    "app.features.pixels": "Pixels",
    "kernels.base": "Precomputed",
    "kernels.correntropy": "Correntropy CosineMap",
    "kernels.profiles": "Cosine Cubic Exponential InverseDistance InverseSquare Linear Polynomial Quadratic RBF",
    "landmarks.bipartite": "BipartiteModel CoarseIndex Landmarks",
    "landmarks.centroid_graph": "CentroidModel",
    "landmarks.collaborative": "CollaborativeClassifier",
    "landmarks.kernel_kmeans": "KernelCentres KernelKMeansModel",
    "landmarks.nystrom_features": "KernelRows NystromModel",
    "landmarks.sample_cluster_classify": "AlignedVote SampledModel",
    "landmarks.spectral_embedded": "LinearEmbedding SpectralEmbeddedModel",
    "utils.cells": "Cells",
    "representation.coefficients": "Factors PermutedFactors Trace",
    "representation.nystrom": "GlobalPart",
    "representation.two_scale": "TwoScale",
    "kernels.scaling": "Scaling",
    "selection.result": "ClusterCount RunnerUp Selection Trial",
}
"""Modules of this package and those of their classes that fitted models are made of, beside the methods themselves."""

OTHERS = (
    "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._label.LabelBinarizer",
)
"""Classes of scikit-learn that the network for new points is made of."""

_CLASSES = {f"subspaces.{module}.{name}" for module, names in OURS.items() for name in names.split()}
_CLASSES |= {f"{method.module}.{method.class_name}" for method in METHODS if method.kind in SHALLOW}
_KEYS = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"}
_NUMBERS = {f"numpy.{name}" for name in ("bool", "bool_", "float32", "float64", "int32", "int64", "str_")}
_ALLOWED = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple", *(name for name in _CLASSES if name.endswith((".Factors", ".PermutedFactors")))},
    "JsonNode": {"builtins.str"},
    "TypeNode": _KEYS | _NUMBERS,
    "NdArrayNode": {"numpy.ndarray", *_NUMBERS},
    "SparseMatrixNode": {"scipy.sparse._csc.csc_array", "scipy.sparse._csr.csr_array"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "ObjectNode": {*_CLASSES, *OTHERS},
}
"""For each way in which skops makes a part, what it may make."""

NAMES = sorted(set().union(*_ALLOWED.values()))
"""All that a model may make."""

_EXTRACTORS = {
    "EfficientNet": "side",
    "FromFile": "path",
    "OpenClip": "model options",
    "Pixels": "size",
    "Sentences": "",
    "Tfidf": "words weights directions",
    "Timm": "model options",
}
"""What each extractor holds and no more: another attribute would take the place of one of its class."""

_PLACES = {("reading", "features"), ("estimator", "features"), ("estimator", "extractor_")}
"""Where extractors stand. Elsewhere a part may be called, and an extractor that is called opens files."""

_NETWORKS = {"Timm": r"[\w.-]+", "OpenClip": r"[\w-]+(/[\w-]+)?"}
"""How networks that their package knows are named; never an address (``hf-hub:``) or a file."""

_ENTRY = 60
"""Bytes that a byte of the list of parts may take while it is read: 5 in models, 25 in lists of empty lists."""


def strangers(content: bytes) -> list[str]:
    """Names of what a model would make or look at that is on no list of this file."""
    found, first = dict[str, None](), dict[Any, int]()
    for path, part in _parts(content):
        # skops takes the first part of an id for all others of that id, whatever these say
        if first.setdefault(part.get("__id__"), part.digest) != part.digest and "__id__" in part:
            found["two parts under one id"] = None
        trouble = _trouble(path, part)
        if trouble:
            found[trouble] = None
    return list(found)


class _Digested(dict[str, Any]):
    """A part with a number that is the same for equal ones.

    Ids and files do not count: they differ for random states that are written twice, and files are numbers.
    """

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(part)
        self.digest = hash(tuple((key, _digest(part[key])) for key in sorted(part) if key not in ("__id__", "file")))


def _digest(value: Any) -> int:
    if isinstance(value, list):
        return hash(tuple(map(_digest, value)))
    return value.digest if isinstance(value, _Digested) else hash(repr(value))


def check_sparse(content: bytes) -> None:
    """Raise ValueError if a sparse matrix points outside of itself, which SciPy's programs in C would follow."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in {part["file"] for _, part in _parts(content) if part["__loader__"] == "SparseMatrixNode"}:
            sparse.load_npz(io.BytesIO(archive.read(name))).check_format(full_check=True)


def _parts(content: bytes) -> Iterator[tuple[tuple[str, ...], _Digested]]:
    """Every part at any depth, with the keys that lead to it."""
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
    """What is wrong with a part; empty if nothing is."""
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
    if name not in _NETWORKS:
        return ""
    model, options = held["model"], held["options"]
    text = json.loads(model["content"]) if model["__loader__"] == "JsonNode" else None
    is_plain = isinstance(text, str) and re.fullmatch(_NETWORKS[name], text, re.ASCII)
    is_alone = (options["__loader__"], options["content"]) == ("TupleNode", [])
    return "" if is_plain and is_alone else f"the network {printable(text)}" + ("" if is_alone else " with options")


def _are_keys(part: Any) -> bool:
    """Whether these are types of keys that do nothing but turn a text into a key."""
    kinds = part.get("content") if isinstance(part, dict) and part.get("__loader__") == "ListNode" else None
    return isinstance(kinds, list) and all(
        isinstance(kind, dict)
        and kind.get("__loader__") == "TypeNode"
        and f"{kind.get('__module__')}.{kind.get('__class__')}" in _KEYS | _NUMBERS
        for kind in kinds
    )


# ------------------------------------------------------------------ sizes


def check_members(path: Path, content: bytes, max_bytes: int) -> None:
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
