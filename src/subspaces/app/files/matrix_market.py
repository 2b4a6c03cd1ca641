"""Matrix Market (``.mtx``, ``.mtx.gz``), and the folders that 10x Genomics' programs write around one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from subspaces.app.files.arrays import check_points
from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.safe_files import open_unpacked
from subspaces.app.files.sparse_files import check_sparse, checked_shape, from_triplets
from subspaces.utils.files import FileError, check_beside, check_size, printable

MATRIX = ("matrix.mtx.gz", "matrix.mtx")
BARCODES = ("barcodes.tsv.gz", "barcodes.tsv")
FEATURES = ("features.tsv.gz", "features.tsv", "genes.tsv")

_PER_ENTRY = 48  # bytes of a triplet while it is sorted into rows, measured
_LONG_LINE = 2**20


def matrix_of_folder(folder: Path) -> Path | None:
    """The matrix in a folder of 10x Genomics, None in any other."""
    if _first(folder, BARCODES) is None:
        return None
    return _first(folder, MATRIX)


def read_mtx(path: Path, request: Request) -> Dataset:
    """Read points from the rows of a matrix; of cells, whose barcodes lie beside it, from its columns."""
    from scipy.io import mminfo, mmread

    with _opened(path, request.max_bytes) as stream:
        rows, columns, n_entries, layout, field, symmetry = mminfo(stream)
    if field == "complex":
        raise FileError(path, "its values are complex; save real numbers")
    shape = checked_shape(path, (rows, columns), request)
    n_entries = n_entries if layout == "coordinate" else rows * columns
    check_size(path, _PER_ENTRY * n_entries * (1 if symmetry == "general" else 2), request.max_bytes)
    with _opened(path, request.max_bytes) as stream:
        found = mmread(stream, spmatrix=False)
    if layout != "coordinate":
        return check_points(Dataset(found, path), request.missing)
    X = from_triplets(path, found.data, *found.coords, shape=shape)
    data = Dataset(X, path)
    barcodes = _first(path.parent, BARCODES) if path.name in MATRIX else None
    return check_sparse(data if barcodes is None else _cells(data, barcodes, request))


def read_10x(path: Path, request: Request) -> Dataset:
    """Read a folder of 10x Genomics: cells are points, genes their features."""
    matrix = matrix_of_folder(path)
    assert matrix is not None
    return replace(read_mtx(check_beside(matrix), request), source=path)


def _cells(data: Dataset, barcodes: Path, request: Request) -> Dataset:
    """Cells are columns in these matrices; their names and those of the genes are in files of their own."""
    n_genes, n_cells = data.X.shape
    ids = _lines(barcodes, n_cells, request)
    table = _first(barcodes.parent, FEATURES)
    names = None
    if table is not None:
        parts = [line.split("\t") for line in _lines(table, n_genes, request)]
        names = [part[1] if len(part) > 1 else part[0] for part in parts]
    note = f"cells are the columns of this matrix, by the {printable(barcodes.name)} beside it"
    X = data.X.T.tocsr()
    return replace(data, X=X, ids=ids, feature_names=names, notes=(*data.notes, note))


def _lines(path: Path, count: int, request: Request) -> list[str]:
    """The lines of a small text file; refuses another number than `count`."""
    check_size(path, 100 * count, request.max_bytes)
    with _opened(check_beside(path), request.max_bytes) as stream:
        found = stream.read().decode("utf-8", errors="replace").splitlines()
    if len(found) != count:
        raise FileError(path, f"it has {len(found)} lines and the matrix beside it {count}; they belong to two runs")
    return found


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


@contextmanager
def _opened(path: Path, max_bytes: int) -> Iterator[BinaryIO]:
    with open_unpacked(path, 4 * max_bytes) as stream:
        yield _Bounded(path, stream, max_bytes)  # type: ignore[misc]


class _Bounded:
    """What a parser may read: no line without an end, and no more than memory holds."""

    def __init__(self, path: Path, stream: BinaryIO, max_bytes: int) -> None:
        self.path, self.stream, self.max_bytes = path, stream, max_bytes
        self.n_read = self.since_line = 0

    def read(self, size: int = -1) -> bytes:
        """Like that of a file."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_LONG_LINE), b""))
        chunk = self.stream.read(min(size, _LONG_LINE))
        self.n_read += len(chunk)
        check_size(self.path, self.n_read, 4 * self.max_bytes, "it unpacks to more than")
        end = chunk.rfind(b"\n")
        self.since_line = self.since_line + len(chunk) if end < 0 else len(chunk) - end
        if self.since_line > _LONG_LINE:
            raise FileError(self.path, "a line of more than a million letters is no entry of a matrix; fetch it again")
        return chunk
