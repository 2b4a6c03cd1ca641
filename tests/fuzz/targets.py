"""One fuzz target per reader: bytes → nothing, or a `Finding`.

The first byte chooses options, the rest is the file. Packed formats have two targets: one packs the fuzzer's bytes
with right checksums, so that mutations reach the reader behind them; one (``_raw``) mutates the container itself.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.harness import ALLOWED, Watch, bounded, check_dataset, check_error, outcome, sound, watched
from fuzz.packing import exactly, parts_of, png_of, workbook, zipped
from fuzz.targets_of_runs import TARGETS_OF_RUNS
from subspaces import datasets
from subspaces.app.files import FileError, read_table

Target = Callable[[Watch, bytes], None]
MISSING = ("error", "drop", "mean", "median")


def _table(watch: Watch, name: str, content: bytes, **options: Any) -> None:
    path = watch.put(name, content)
    with watched(watch, len(content)):
        data, _ = outcome(path, lambda: read_table(path, max_bytes=ALLOWED, **options))
        if data is not None:
            check_dataset(data)


# ------------------------------------------------------------------ subspaces.app.files


def _text_options(flags: int) -> dict[str, Any]:
    return {
        "header": (None, True, False, None)[flags >> 1 & 3],
        "label": (None, None, "label", "1")[flags >> 3 & 3],
        "missing": MISSING[flags >> 5 & 3],
        "id": "id" if flags >> 7 else None,
    }


def csv(watch: Watch, data: bytes) -> None:
    """CSV and TSV."""
    flags = data[0] if data else 0
    _table(watch, "x.tsv" if flags & 1 else "x.csv", data[1:], **_text_options(flags))


def csv_gz(watch: Watch, data: bytes) -> None:
    """CSV behind gzip."""
    flags = data[0] if data else 0
    name = "x.tsv.gz" if flags & 1 else "x.csv.gz"
    _table(watch, name, gzip.compress(data[1:], 1, mtime=0), **_text_options(flags))


def csv_gz_raw(watch: Watch, data: bytes) -> None:
    """The gzip container of a CSV."""
    _table(watch, "x.csv.gz", data[1:], **_text_options(data[0] if data else 0))


def npy(watch: Watch, data: bytes) -> None:
    """A NumPy array."""
    _table(watch, "x.npy", data[1:], missing=MISSING[data[0] & 3] if data else "error")


def _array_options(flags: int) -> dict[str, Any]:
    return {
        "label": "y" if flags & 1 else None,
        "id": "id" if flags & 2 else None,
        "array": "A" if flags & 4 else None,
        "missing": MISSING[flags >> 3 & 3],
    }


def npz(watch: Watch, data: bytes) -> None:
    """Arrays in a sound archive: ``X``, ``y``, ``scale``, ``id``."""
    flags = data[0] if data else 0
    names = ("A.npy" if flags & 4 else "X.npy", "y.npy", "scale.npy", "id.npy")
    content = zipped(names, parts_of(data[1:]), zipfile.ZIP_DEFLATED if flags & 32 else zipfile.ZIP_STORED)
    _table(watch, "x.npz", content, **_array_options(flags))


def npz_raw(watch: Watch, data: bytes) -> None:
    """The archive itself."""
    _table(watch, "x.npz", data[1:], **_array_options(data[0] if data else 0))


MAT_HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)


def mat5(watch: Watch, data: bytes) -> None:
    """MATLAB 5 to 7, plain elements or whatever the bytes are."""
    flags = data[0] if data else 0
    content = data[1:] if flags & 64 else MAT_HEADER + data[1:]
    _table(watch, "x.mat", content, **_array_options(flags))


def mat5_packed(watch: Watch, data: bytes) -> None:
    """MATLAB 7: each part becomes a soundly packed element."""
    flags = data[0] if data else 0
    content = MAT_HEADER
    for part in parts_of(data[1:]):
        packed = zlib.compress(part, 1)
        content += struct.pack("<II", 15, len(packed)) + packed
    _table(watch, "x.mat", content, **_array_options(flags))


def mat73(watch: Watch, data: bytes) -> None:
    """MATLAB 7.3, which is HDF5."""
    _table(watch, "x.mat", data[1:], **_array_options(data[0] if data else 0))


def parquet(watch: Watch, data: bytes) -> None:
    """A Parquet table."""
    flags = data[0] if data else 0
    options = {"label": "label" if flags & 1 else None, "id": "id" if flags & 2 else None}
    _table(watch, "x.parquet", data[1:], missing=MISSING[flags >> 3 & 3], **options)


def xlsx(watch: Watch, data: bytes) -> None:
    """A workbook: the sheet, the texts and the styles are the bytes, the rest is sound."""
    flags = data[0] if data else 0
    sheet, texts, styles = exactly(3, data[1:])
    parts = workbook() | {"xl/worksheets/sheet1.xml": sheet}
    parts |= {"xl/sharedStrings.xml": texts} if texts else {}
    parts |= {"xl/styles.xml": styles} if styles else {}
    content = zipped(list(parts), list(parts.values()), zipfile.ZIP_DEFLATED)
    _table(watch, "x.xlsx", content, **_text_options(flags & 0xFE))


def xlsx_raw(watch: Watch, data: bytes) -> None:
    """The archive of a workbook."""
    _table(watch, "x.xlsx", data[1:], **_text_options(data[0] & 0xFE if data else 0))


def model(watch: Watch, data: bytes) -> None:
    """A saved model: the list of its parts is the bytes, beside two sound arrays."""
    array = io.BytesIO()
    np.save(array, np.arange(6.0))
    content = zipped(("schema.json", "1.npy", "2.npy"), (data[1:], array.getvalue(), array.getvalue()), 8)
    _model(watch, content)


def model_raw(watch: Watch, data: bytes) -> None:
    """The archive of a saved model."""
    _model(watch, data[1:])


def _model(watch: Watch, content: bytes) -> None:
    from subspaces.app.files.models import load_model

    path = watch.put("x.skops", content)
    with watched(watch, len(content)):
        outcome(path, lambda: load_model(path, max_bytes=ALLOWED))


def labels_json(watch: Watch, data: bytes) -> None:
    """Labels in JSON, and in a table."""
    from subspaces.app.files.label_files import read_labels

    path = watch.put("x.csv" if data[:1] == b"1" else "x.json", data[1:])
    with watched(watch, len(data)):
        outcome(path, lambda: read_labels(path, "t", max_bytes=ALLOWED))


SUFFIXES = ("png", "jpg", "tif", "bmp", "gif", "webp")


def _folder(watch: Watch, suffix: str, content: bytes, flags: int) -> None:
    folder = watch.fresh() / "photos"
    folder.mkdir()
    for name in ("0.png", "2.png"):
        (folder / name).write_bytes(_SMALL_PNG)
    (folder / f"1.{suffix}").write_bytes(content)
    with watched(watch, len(content)):
        size = (8, 8) if flags & 128 else None
        data, error = outcome(
            folder, lambda: read_table(folder, color=bool(flags & 64), image_size=size, max_bytes=ALLOWED)
        )
        sound(data is not None, f"one odd file of three spoils a folder: {error}")
        check_dataset(data)
        sound(data.X.min() >= 0 and data.X.max() <= 1, "grey values outside [0, 1]")


def images(watch: Watch, data: bytes) -> None:
    """A folder with an image of any format."""
    flags = data[0] if data else 0
    _folder(watch, SUFFIXES[flags % 8 % 6], data[1:], flags)


_SMALL_PNG = png_of(
    (b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(72))), (b"IEND", b"")
)


def png(watch: Watch, data: bytes) -> None:
    """A PNG of sound chunks: header, name and body of one more chunk, pixels before packing."""
    header, extra, pixels = exactly(3, data[1:])
    middle = [(extra[:4].ljust(4, b"x"), extra[4:])] if extra else []
    pixels = zlib.compress(pixels, 1)
    content = png_of((b"IHDR", header), *middle, (b"IDAT", pixels), (b"IEND", b""))
    _folder(watch, "png", content, data[0] if data else 0)


# ------------------------------------------------------------------ subspaces.datasets


def _loaded(watch: Watch, loader: Callable[..., Any], files: dict[str, bytes], n_features: int) -> None:
    home = watch.fresh() / "home"
    home.mkdir()
    for name, content in files.items():
        (home / name).write_bytes(content)
    with bounded(), watched(watch, sum(map(len, files.values()))):
        try:
            bunch = loader(data_home=home, download_if_missing=False)
        except FileError as error:
            where = [home / name for name in files if name in str(error)]
            check_error(where[0] if where else home / next(iter(files)), error)
            return
        X, y = bunch.data, bunch.target
        sound(X.ndim == 2 and X.shape[1] == n_features and len(X) == len(y), f"shapes {X.shape} {y.shape}")
        sound(X.dtype.kind == "f" and bool(np.isfinite(X).all()), "points that are not finite")
        sound(len(y) > 0 and y.min() >= 0 and y.max() < len(bunch.target_names), "labels out of range")


COIL_NAMES = ("coil-20-proc/obj1__0.png", "../../obj2__0.png", "/obj10__3.png", "C:\\obj1__5.png")


def coil(watch: Watch, data: bytes) -> None:
    """A sound archive of images."""
    method = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED, zipfile.ZIP_LZMA)[data[0] & 3 if data else 0]
    content = zipped(COIL_NAMES, parts_of(data[1:]), method)
    _loaded(watch, datasets.load_coil20, {"coil-20-proc.zip": content}, 1024)


def coil_raw(watch: Watch, data: bytes) -> None:
    """The archive itself."""
    _loaded(watch, datasets.load_coil100, {"coil-100.zip": data[1:]}, 1024)


def _two_files(data: bytes, packed: bool) -> list[bytes]:
    return [gzip.compress(part, 1, mtime=0) if packed else part for part in exactly(2, data[1:])]


def idx(watch: Watch, data: bytes) -> None:
    """MNIST's files, plain or packed."""
    flags = data[0] if data else 0
    pictures, labels = _two_files(data, packed=bool(flags & 1))
    ending = ".gz" if flags & 3 else ""
    files = {f"train-images-idx3-ubyte{ending}": pictures, f"train-labels-idx1-ubyte{ending}": labels}
    _loaded(watch, datasets.load_mnist, files, 784)


def arrays(watch: Watch, data: bytes) -> None:
    """Data sets in ``.mat`` and ``.npz`` files."""
    flags = data[0] if data else 0
    if flags & 1:
        _loaded(watch, datasets.load_orl, {"orl_32x32.npz": data[1:]}, 1024)
    elif flags & 2:
        _loaded(watch, datasets.load_usps, {"USPS.mat": data[1:]}, 256)
    else:
        _loaded(watch, datasets.load_yaleb, {"YaleB_32x32.mat": data[1:]}, 1024)


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        *(csv, csv_gz, csv_gz_raw, npy, npz, npz_raw, mat5, mat5_packed, mat73, parquet, images, png),
        *(xlsx, xlsx_raw, model, model_raw, labels_json),
        *(coil, coil_raw, idx, arrays),
        *TARGETS_OF_RUNS,
    )
}
