"""Tracks of points through the frames of a film: the ``.mat`` files of Hopkins155, or a table with gaps.

A file of Hopkins155 holds x, 3 × P × F, the homogeneous coordinates of P points in F frames, normalised; y, the same in
pixels; s, the motion of each point (0: none); and in the sequences with missing data m, P × F, 1 where a point is
visible. Every reader gives one row per point: x and y of the first frame, of the second, and so on; NaN: not seen.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from subspaces.app.files.arrays import MAT_COPIES
from subspaces.app.files.dataset import Dataset, Request, check_there, encode
from subspaces.app.files.reading import read_file, suffix_of
from subspaces.utils.files import FileError, check_size
from subspaces.utils.mat_files import list_matrices, read_matrix
from subspaces.utils.memory import available_bytes
from subspaces.utils.spelling import counted


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
    arrays = list_matrices(path)
    film = next((name for name in ("x", "y") if name in arrays and len(arrays[name].info.shape) == 3), None)
    if film is None:
        return read_file(path, request)
    _, n_tracks, n_frames = arrays[film].info.shape
    check_size(path, MAT_COPIES * sum(found.info.n_bytes for found in arrays.values()), request.max_bytes)
    numbers = {name: read_matrix(path, found) for name, found in arrays.items() if found.info.kind == "number"}
    for name, wanted in (("m", (n_tracks, n_frames)), ("s", (n_tracks, 1))):
        if name in numbers and sorted(numbers[name].shape) != sorted(wanted):
            problem = f"'{name}' is {arrays[name].info}, but the tracks need {wanted[0]} x {wanted[1]}"
            raise FileError(path, f"{problem}; leave it out of the file or repair it")
    tracks = numbers[film][:2].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        tracks /= numbers[film][2:3] if len(numbers[film]) == 3 else 1
    hidden = ~np.isfinite(tracks).all(axis=0)
    if "m" in numbers:
        hidden |= numbers["m"].reshape(n_tracks, n_frames) == 0
    tracks[:, hidden] = np.nan
    X = tracks.transpose(1, 2, 0).reshape(n_tracks, 2 * n_frames)
    notes = ("coordinates are in pixels: the file has no normalised ones",) if film == "y" else ()
    y, classes = encode(path, numbers["s"], "s") if "s" in numbers else (None, None)
    return Dataset(np.ascontiguousarray(X), path, y=y, classes=classes, notes=notes)


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
    for axis, what in ((1, "track"), (0, "column")):
        dark = np.flatnonzero(np.isnan(data.X).all(axis=axis))
        if len(dark):
            raise FileError(data.source, f"{what} {int(dark[0])} holds nothing; leave out such tracks and frames")
    return data
