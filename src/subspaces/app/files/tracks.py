"""Tracks of points through the frames of a film: the ``.mat`` files of Hopkins155, or a table with gaps.

A file of Hopkins155 holds x, 3 × P × F, the homogeneous coordinates of P points in F frames, normalised; y, the same in
pixels; s, the motion of each point (0: none); and in the sequences with missing data m, P × F, 1 where a point is
visible. Every reader gives one row per point: x and y of the first frame, of the second, and so on; NaN: not seen.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from subspaces.app.files.arrays import MAT_COPIES
from subspaces.app.files.dataset import Dataset, Request, check_there, encode
from subspaces.app.files.reading import read_file, suffix_of
from subspaces.utils.files import FileError, check_size, printable, quoted
from subspaces.utils.mat_files import Matrix, list_matrices, read_matrix
from subspaces.utils.memory import available_bytes
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

_COORDINATES = ("x", "y")
"""Arrays of coordinates, the better one first: normalised before pixels."""


def read_tracks(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    id: str | None = None,
    array: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    ignore: tuple[str, ...] = (),
    max_bytes: int | None = None,
) -> Dataset:
    """Read tracks, one row each, NaN in frames in which the point was not seen.

    The parameters are those of :func:`subspaces.app.files.read_table`; a ``.mat`` file of Hopkins155 needs none.

    Raises
    ------
    FileError
        If the file cannot be used. The text is one line that names the file, the place and the remedy.
    """
    file = Path(path)
    check_there(file)
    most = available_bytes() if max_bytes is None else max_bytes
    request = Request(
        label=label, id=id, ignore=ignore, array=array, header=header, decimal=decimal, max_bytes=most, missing="keep"
    )
    is_film = suffix_of(file) == ".mat" and array is None and not file.is_dir()
    return _checked(read_file(file, request, _read_mat if is_film else None))


def _read_mat(path: Path, request: Request) -> Dataset:
    """Read the arrays of Hopkins155; a file that has none of them is a table like others."""
    matrices = list_matrices(path)
    name = next((name for name in _COORDINATES if name in matrices and _is_film(matrices[name])), None)
    if name is None and "X" not in matrices:
        wanted = "neither x nor y of 3 x points x frames (Hopkins155), nor X of tracks x coordinates"
        raise FileError(path, f"holds {wanted}, but {quoted(list(matrices)) or 'nothing'}; name the array of tracks")
    if name is None:
        return read_file(path, request)
    _, n_tracks, n_frames = matrices[name].info.shape
    check_size(path, MAT_COPIES * matrices[name].info.n_bytes, request.max_bytes)
    tracks = _plane(read_matrix(path, matrices[name])).astype(np.float64, copy=False)
    notes = ["coordinates are in pixels: the file has no normalised ones"] if name == "y" else []
    hidden = ~np.isfinite(tracks).all(axis=0)
    if "m" in matrices:
        seen = _companion(path, matrices["m"], "m", (n_tracks, n_frames))
        hidden |= seen == 0
    tracks[:, hidden] = np.nan
    X = tracks.transpose(1, 2, 0).reshape(n_tracks, 2 * n_frames)
    data = Dataset(np.ascontiguousarray(X), path, notes=tuple(notes))
    if "s" not in matrices:
        return data
    y, classes = encode(path, _companion(path, matrices["s"], "s", (n_tracks, 1)).ravel(), "s")
    return replace(data, y=y, classes=classes)


def _is_film(matrix: Matrix) -> bool:
    shape = matrix.info.shape
    return matrix.info.kind == "number" and len(shape) == 3 and shape[0] in (2, 3)


def _plane(film: Array) -> Array:
    """Return coordinates in the picture, of shape (2, P, F), from homogeneous ones."""
    if len(film) == 2:
        return film
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(film[:2] / film[2])


def _companion(path: Path, matrix: Matrix, name: str, shape: tuple[int, int]) -> Array:
    """Read an array with one value for each point, or for each point in each frame."""
    found = matrix.info.shape
    if matrix.info.kind != "number" or tuple(sorted(found)) != tuple(sorted(shape)):
        wanted = " x ".join(map(str, shape))
        problem = f"'{name}' is {printable(matrix.info)}, but the tracks need {wanted}"
        raise FileError(path, f"{problem}; leave it out of the file or repair it")
    values = read_matrix(path, matrix)
    return values if found == shape else values.T


def _checked(data: Dataset) -> Dataset:
    """Refuse an odd number of coordinates, a single frame, and tracks or frames in which nothing is seen."""
    n, m = data.X.shape
    if n == 0:
        raise FileError(data.source, "there are no tracks in it; it needs one row for each point that was followed")
    if m % 2 or m < 4:
        wanted = "tracks have two coordinates per frame, x1, y1, x2, y2, in two frames or more"
        remedy = "leave out other columns or name them as label or id"
        raise FileError(data.source, f"{counted(m, 'column')}; {wanted}: {remedy}")
    half = np.isnan(data.X[:, ::2]) != np.isnan(data.X[:, 1::2])
    if half.any():
        i, frame = (int(index) for index in np.argwhere(half)[0])
        problem = f"track {i} has one of two coordinates in frame {frame + 1}"
        raise FileError(data.source, f"{problem}; leave both cells empty where a point was not seen")
    never = np.flatnonzero(np.isnan(data.X).all(axis=1))
    if len(never):
        first = int(never[0])
        who = f"track {first} is" if len(never) == 1 else f"{len(never)} tracks, the first number {first}, are"
        raise FileError(data.source, f"{who} seen in no frame; leave out such tracks")
    dark = np.flatnonzero(np.isnan(data.X).all(axis=0))
    if len(dark):
        raise FileError(data.source, f"frame {int(dark[0]) // 2 + 1} shows no point; leave out such frames")
    return data
