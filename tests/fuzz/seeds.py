"""Small valid files of every format, as the targets expect them: options in the first byte, then the file."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.packing import joined, workbook, zipped
from fuzz.targets import SUFFIXES

X = np.arange(12, dtype=np.float64).reshape(4, 3) / 8
Y = np.array([0, 1, 1, 0])


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _with(*flags: int) -> Callable[..., list[bytes]]:
    """Give a file each of the option bytes."""
    return lambda *contents: [bytes([flag]) + content for content in contents for flag in flags]


def _text() -> list[bytes]:
    names = b"id,a,b,label\np,1,2.5,cat\nq,3,-4e3,dog\nr,5,6,cat\n"
    gaps = b"a,b\n1,2\nNA,3\n5,\n\n7,8\n"
    odd = b'\xef\xbb\xbf"a";"b"\r\n"1";2\r\n 3 ;inf\r\n'
    lines = ["1,2,3\n4,5,6\n", "0,1,2\n", "a,1_0\n", '"x\n', "1e308,1e308\n1e308,\n", "é,ü\n1,2\n"]
    tabs = b"a\tb\n1\t2\n3\t4\n"
    return [
        *_with(0, 2, 4, 0x90)(names),
        *_with(0, 0x20, 0x40, 0x60)(gaps, odd),
        *_with(1)(tabs),
        *_with(0, 0x40, 0x60)(*(line.encode() for line in lines)),
    ]


def _npy_files() -> list[bytes]:
    nan = X.copy()
    nan[0, 1] = np.nan
    arrays = [X, X.astype("f4"), X.astype(">f8"), X.astype("f2"), np.asfortranarray(X), (X * 8).astype("u1"), X > 0.5]
    arrays += [np.zeros((2, 4, 4)), nan, X[:0], np.array(["a", "b"]), X * 1j, np.zeros((3, 0)), X.astype("g")]
    structured = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    objects = np.array([[1, "a"]], dtype=object)
    return _with(0, 1, 2, 3)(*map(_npy, [*arrays, structured, objects]))


def _members() -> list[bytes]:
    whole = [_npy(X), _npy(Y), _npy(0.5), _npy(np.arange(4))]
    texts = [_npy(X), _npy(np.array(["a", "b", "c", "a"])), _npy(np.float32(2)), _npy(np.array(["p", "q", "r", "s"]))]
    reals = [_npy(X.astype("f4")), _npy(Y * 1e300), _npy(1e300), _npy(np.arange(4) / 2)]
    return _with(0, 3, 7, 35, 0x13)(joined(*whole), joined(*texts), joined(*reals), joined(*whole[:2]))


def _mat(folder: Path, packed: bool, **more: Any) -> bytes:
    import scipy.io
    import scipy.sparse

    odd = {"s": scipy.sparse.csc_array(np.eye(2)), "c": np.array([1, "a"], dtype=object), "t": {"a": 1}, "w": "word"}
    arrays = {"X": X, "y": Y[:, None], "id": np.arange(4.0)[:, None], **(more or odd)}
    scipy.io.savemat(folder / "x.mat", arrays, do_compression=packed)
    return (folder / "x.mat").read_bytes()


def _matrices(folder: Path) -> list[bytes]:
    """The elements of a MATLAB file, without their tags, for packing."""
    content, found, position = _mat(folder, packed=True), [], 128
    while position < len(content):
        _, length = struct.unpack_from("<II", content, position)
        found.append(zlib.decompress(content[position + 8 : position + 8 + length]))
        position += 8 + length
    return found


def _mat73(folder: Path, **options: Any) -> bytes:
    import h5py

    with h5py.File(folder / "x.h5", "w", libver="earliest") as file:
        file.create_dataset("X", data=X.T, **options).attrs["MATLAB_class"] = np.bytes_("double")
        file["y"] = Y[None]
        file["id"] = np.arange(4.0)[None]
    return (folder / "x.h5").read_bytes()


def _parquet(compression: str) -> bytes:
    import pyarrow
    import pyarrow.parquet

    columns = {"id": ["p", "q", "r", "s"], "a": X[:, 0], "b": [1, None, 3, 4], "label": ["x", "y", "x", "y"]}
    plain = {"a": X[:, 0].astype("f4"), "b": X[:, 1].astype("f4")}
    stream = io.BytesIO()
    table = pyarrow.table(columns if compression != "none" else plain)
    pyarrow.parquet.write_table(table, stream, compression=compression, row_group_size=3)
    return stream.getvalue()


def _image(format: str, pixels: Any, **options: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.asarray(pixels)).save(stream, format, **options)
    return stream.getvalue()


def _images() -> list[bytes]:
    from PIL import Image

    grey, colour = (np.arange(64).reshape(8, 8) * 4).astype("u1"), np.zeros((8, 8, 3), "u1")
    formats = dict(zip(SUFFIXES, ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP"), strict=True))
    turned = Image.Exif()
    turned[0x0112] = 6
    found = []
    for i, format in enumerate(formats.values()):
        found += _with(i, i | 64, i | 128)(_image(format, grey), _image(format, colour))
        if format in ("PNG", "JPEG", "TIFF", "WEBP"):
            found += _with(i)(_image(format, grey[:, :6], exif=turned))
    deep = [X.astype("f4"), X.astype("f4") * -3e37, (X * 1e4).astype("i4"), (X * 1e4).astype("u2")]
    found += _with(2, 2 | 64, 2 | 128)(*(_image("TIFF", values) for values in deep))
    found += _with(2)(*(_image("TIFF", colour, compression=c) for c in ("tiff_lzw", "tiff_adobe_deflate", "packbits")))
    found += _with(0)(_image("PNG", (X * 1e4).astype("u2")), _image("PNG", np.zeros((8, 8, 4), "u1")))
    return found


def _pngs() -> list[bytes]:
    found = []
    for depth, kind, row in ((8, 0, 9), (8, 2, 25), (16, 0, 17), (1, 3, 2), (8, 6, 33), (8, 4, 17)):
        header = struct.pack(">IIBBBBB", 8, 8, depth, kind, 0, 0, 0)
        for extra in (b"", b"PLTE" + bytes(6), b"tRNS\0\0", b"zTXta\0\0" + zlib.compress(b"b"), b"gAMA\0\0\xb1\x8f"):
            found += _with(0)(joined(header, extra, bytes(row * 8)))
    return found


def _idx(array: Any) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype("u1").tobytes()


def _archives() -> tuple[list[bytes], list[bytes]]:
    big = _image("PNG", np.zeros((128, 128), "u1"))
    found = _with(0, 1, 2, 3)(joined(big, big, big), joined(big), joined(_image("PNG", X.astype("u1"))))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("coil-100/obj1__0.png", "coil-100/obj2__0.png", "readme.txt"):
            archive.writestr(name, big)
    return found, _with(0)(stream.getvalue())


def _arrays(folder: Path) -> list[bytes]:
    faces, digits = np.zeros((3, 1024), "u1"), np.zeros((3, 256))
    found = _with(1)(_npz(X=faces, y=np.arange(3)), _npz(X=faces, gnd=np.arange(3), scale=0.1))
    import scipy.io

    for flag, points in ((2, digits), (0, faces)):
        for packed in (True, False):
            scipy.io.savemat(folder / "x.mat", {"fea": points, "gnd": np.arange(3)[:, None]}, do_compression=packed)
            found += _with(flag)((folder / "x.mat").read_bytes())
    return found


def _zarrs(folder: Path) -> list[bytes]:
    import zarr

    found = []
    for version in (2, 3):
        for options in ({}, {"compressors": None}):
            shutil.rmtree(folder / "z", ignore_errors=True)
            zarr.create_array(folder / "z", shape=X.shape, chunks=X.shape, dtype="f8", zarr_format=version, **options)[
                :
            ] = X
            meta, chunk = ("zarr.json", "c/0/0") if version == 3 else (".zarray", "0.0")
            found += _with(version - 2)(joined((folder / "z" / meta).read_bytes(), (folder / "z" / chunk).read_bytes()))
    return found


def _markers() -> list[bytes]:
    marker = {"made_by": "subspaces", "files": ["a.png", "index.csv"]}
    return _with(0)(json.dumps(marker).encode(), b"[]", b"null", b"[" * 50)


def _torch(folder: Path) -> list[bytes]:
    import torch

    found = []
    for state in ({"format": 1, "identity": {"a": "1"}, "model": {"w": torch.zeros(2, 2)}, "epoch": 3}, {"a": 1}, [1]):
        for new in (True, False):
            torch.save(state, folder / "x.pt", _use_new_zipfile_serialization=new)
            found += _with(0)((folder / "x.pt").read_bytes())
    return found


def _model() -> bytes:
    import skops.io

    from subspaces import TRR
    from subspaces.app.files.models import KIND

    fitted = TRR(2, n_nonzero=2).fit(np.vstack([X, X[::-1] + 1]))
    return skops.io.dumps({"kind": KIND, "reading": {"n_features": 3}, "estimator": fitted})


def seeds_of(target: str) -> list[bytes]:
    """The seeds of one target."""
    folder = Path(tempfile.mkdtemp(prefix="subspaces-seeds-"))
    try:
        return _seeds(target, folder)
    finally:
        shutil.rmtree(folder)


def _seeds(target: str, folder: Path) -> list[bytes]:
    match target:
        case "csv" | "csv_gz":
            return _text()
        case "csv_gz_raw":
            return [seed[:1] + gzip.compress(seed[1:], mtime=0) for seed in _text()[:6]]
        case "npy" | "dask_npy":
            return _npy_files()
        case "npz":
            return _members()
        case "npz_raw":
            return _with(0, 3)(_npz(X=X, y=Y, id=Y), _npz(fea=X, scale=0.5), _npz(a=X, b=X))
        case "mat5":
            return _with(64, 64 | 3)(_mat(folder, packed=False), _mat(folder, packed=False, z=np.zeros((2, 3, 4))))
        case "mat5_packed":
            matrices = _matrices(folder)
            return _with(0, 3)(joined(*matrices[:3]), joined(*matrices[3:6]), joined(matrices[0], *matrices[5:]))
        case "mat73":
            return _with(0, 3)(_mat73(folder), _mat73(folder, compression="gzip"), _mat73(folder, chunks=(2, 2)))
        case "parquet":
            return _with(0, 3, 0x13)(*(_parquet(c) for c in ("none", "snappy", "zstd", "gzip")))
        case "xlsx":
            parts = workbook()
            sheet, texts, styles = (
                parts[f"xl/{name}.xml"] for name in ("worksheets/sheet1", "sharedStrings", "styles")
            )
            return _with(0, 2, 0x60)(joined(sheet), joined(sheet, texts), joined(sheet, texts, styles))
        case "xlsx_raw":
            parts = workbook()
            return _with(0)(zipped(list(parts), list(parts.values()), zipfile.ZIP_DEFLATED))
        case "model":
            with zipfile.ZipFile(io.BytesIO(_model())) as archive:
                return _with(0)(archive.read("schema.json"))
        case "model_raw":
            return _with(0)(_model())
        case "labels_json":
            return [b'0{"labels": [0, 1, 1], "ids": ["a", "b", "c"], "t": [1, 2, 3]}', b"1id,cluster,t\np,0,x\nq,1,y\n"]
        case "images":
            return _images()
        case "png":
            return _pngs()
        case "coil":
            return _archives()[0]
        case "coil_raw":
            return _archives()[1]
        case "idx":
            return _with(0, 1)(joined(_idx(np.zeros((3, 28, 28))), _idx(np.arange(3))))
        case "arrays":
            return _arrays(folder)
        case "checkpoint":
            return [*_with(0, 2)(*(seed[1:] for seed in _npy_files()[::4])), *_with(1)(_npz(X=X, y=Y), _npz(n=1))]
        case "zarr":
            return _zarrs(folder)
        case "marker":
            return _markers()
        case "torch_checkpoint":
            return _torch(folder)
    raise ValueError(f"no seeds for '{target}'")
