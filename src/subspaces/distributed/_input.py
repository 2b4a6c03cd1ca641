"""Points in any of Dask's forms, or a file of them → one dask array of known shape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from scipy import sparse

from subspaces.distributed._files import mapped
from subspaces.distributed._tasks import Workers
from subspaces.io import FileError
from subspaces.io.dataset import printable
from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.types import Array

_CHUNK_BYTES = 64 * 2**20
SUFFIXES = (".npy", ".zarr", ".parquet")


@dataclass(frozen=True)
class Points:
    """Points as rows of a dask array of float32 or float64.

    Attributes
    ----------
    array : chunks of whole rows, of known sizes
    names : of the columns of a data frame
    file : ``.npy`` file that holds the same array already
    """

    array: Any
    names: Array | None = None
    file: Path | None = None


def as_dask_array(X: Any, workers: Workers) -> Points:
    """Read what X is and bring it to float chunks of whole rows; only missing chunk sizes are computed."""
    if isinstance(X, str | PathLike):
        return _from_path(Path(X), workers)
    if hasattr(X, "to_dask_array"):
        return _from_frame(X, workers)
    if not isinstance(X, da.Array):
        X = da.from_array(X, chunks=getattr(X, "chunks", "auto"))  # a Zarr array has chunks of its own
    return Points(_whole_rows(X, workers))


def _from_path(path: Path, workers: Workers) -> Points:
    if path.suffix not in SUFFIXES:
        raise ValueError(f"X={str(path)!r} must end in one of {', '.join(SUFFIXES)}, or be read by you with Dask.")
    if not path.exists():
        raise FileNotFoundError(f"X={str(path)!r} does not exist; check the name and the folder.")
    if path.suffix == ".parquet":
        import dask.dataframe as dd

        with _naming(path):
            frame = dd.read_parquet(str(path))
        return _from_frame(frame, workers)
    with _naming(path):
        return _from_zarr(path, workers) if path.suffix == ".zarr" else _from_npy(path, workers)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever damaged bytes do to a parser into one error that names the file."""
    try:
        yield
    except (ImportError, FileError):
        raise
    except Exception as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise FileError(path, f"damaged or not points in rows ({reason})") from error


def _from_npy(path: Path, workers: Workers) -> Points:
    header = mapped(path)
    _check_numbers(path, header.dtype)
    _check_dimensions(header.ndim)
    if header.size == 0:
        raise FileError(path, f"holds an array of the shape {header.shape}: there is nothing to cluster")
    blocks = row_blocks(len(header), header[:1].nbytes, _CHUNK_BYTES)
    # each worker opens the file itself: a memory map sent to it would be sent with all its bytes
    parts = [
        da.from_delayed(
            delayed(_read_rows)(str(path.resolve()), start, stop), (stop - start, header.shape[1]), header.dtype
        )
        for start, stop in blocks
    ]
    points = Points(_whole_rows(da.concatenate(parts), workers))
    as_is = header.flags.c_contiguous and header.dtype in (np.float32, np.float64) and header.dtype.isnative
    return replace(points, file=path.resolve()) if as_is else points


def _from_zarr(path: Path, workers: Workers) -> Points:
    """Refuse what is not numbers before a chunk is unpacked: some codecs of object arrays unpickle."""
    import zarr

    stored = zarr.open_array(str(path), mode="r")
    _check_numbers(path, stored.dtype)
    codecs = [*(getattr(stored, "filters", None) or ()), *(getattr(stored, "compressors", None) or ())]
    if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
        raise FileError(path, "its chunks are pickles, which are never loaded; store numbers")
    return Points(_whole_rows(da.from_zarr(str(path)), workers))


def _check_numbers(path: Path, dtype: Any) -> None:
    if dtype.kind not in "biuf":
        raise FileError(path, f"holds an array of type {printable(dtype)}; store numbers")


def _from_frame(frame: Any, workers: Workers) -> Points:
    wrong = [str(name) for name, dtype in frame.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
    if wrong:
        raise ValueError(f"X has columns that are not numbers: {wrong[:10]}. Drop or encode them first.")
    found = workers.client.compute(frame.map_partitions(len, enforce_metadata=False)).result()
    lengths = tuple(map(int, np.ravel(found)))  # a number, not a list, if there is one partition
    names = list(frame.columns)
    known = np.asarray(names, dtype=object) if all(isinstance(name, str) for name in names) else None
    return Points(_whole_rows(frame.to_dask_array(lengths=lengths), workers), known)


def _whole_rows(X: Any, workers: Workers) -> Any:
    """Chunks of whole rows with known sizes, in a float type."""
    _check_dimensions(X.ndim)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X must be known: call X.compute_chunk_sizes() first.")
    if np.isnan(X.shape[0]):
        lengths = workers.compute([delayed(len)(block) for block in X.to_delayed().ravel()])
        X = da.Array(X.dask, X.name, (tuple(lengths), X.chunks[1]), dtype=X.dtype, meta=X._meta)
    if X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"X must have at least 2 points and 1 feature; got the shape {tuple(map(int, X.shape))}.")
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    dtype = dtype.newbyteorder("=")
    return X.map_blocks(_dense, kind=dtype, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))


def _check_dimensions(ndim: int) -> None:
    if ndim != 2:
        raise ValueError(f"X must have two dimensions, points as rows; got {ndim}. Reshape it.")


def _dense(block: Any, kind: Any) -> Array:
    if sparse.issparse(block):
        raise TypeError("the chunks of X must be dense arrays; got sparse ones. X.map_blocks(lambda x: x.toarray())")
    return np.ascontiguousarray(np.asarray(block), dtype=kind)


def _read_rows(path: str, start: int, stop: int) -> Array:
    return np.array(mapped(Path(path))[start:stop])
