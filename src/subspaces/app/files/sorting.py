"""Sort the images of a folder into one folder per cluster (``--sort-into``), with an index."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from subspaces.app.files.image_files import MARKER
from subspaces.app.files.writing import check_folder_of, write_rows
from subspaces.utils.atomic import unfinished
from subspaces.utils.files import FileError, argument, readable_bytes
from subspaces.utils.progress import phase

if TYPE_CHECKING:
    from subspaces.engine.confidence import Summary


def check_target(path: str | PathLike[str], *, source: Path) -> None:
    """Refuse a target that could not be made, before anything is computed; nothing that is there is ever replaced."""
    target = Path(path)
    check_folder_of(target)
    if target.is_symlink():
        raise FileError(target, "this is a link; name the folder itself")
    if not target.exists():
        return
    if not target.is_dir():
        raise FileError(target, "this is a file; name a folder")
    if source.resolve().is_relative_to(target.resolve()):
        raise FileError(target, "the images themselves are in this folder; choose another")
    if any(target.iterdir()):
        raise FileError(target, "the folder is not empty; choose another, or remove it first")


def sort_into(
    path: str | PathLike[str], folder: Path, names: Sequence[str], summary: Summary, *, link: bool = False
) -> list[str]:
    """Copy (or link) the files to ``cluster_00``, ``cluster_01``, ...; all of it is there or nothing.

    Everything is built in a hidden folder beside the target `path`, which `check_target` must have accepted, and then
    takes its place. `names` are the paths of the files below `folder`, in the order of `summary`. Returns the new path
    of each file below the target.
    """
    target = Path(path).absolute()
    if not link:
        _check_space(target, folder, names)
    try:
        with unfinished(target) as building:
            building.mkdir()
            places = _places(names, summary)
            for cluster in sorted({PurePosixPath(place).parts[0] for place in places}):
                (building / cluster).mkdir()
            with phase("Linking the images" if link else "Copying the images", len(names)) as step:
                for name, place in zip(names, places, strict=True):
                    if link:
                        (building / place).symlink_to((folder / name).resolve())
                    else:
                        shutil.copy2(folder / name, building / place)
                    step()
            _write_index(building / "index.csv", names, places, summary)
            (building / MARKER).touch()
            if target.exists():
                target.rmdir()  # which only an empty folder allows
            building.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
            raise OSError(error.errno, error.strerror, str(target)) from None  # else it names the source, or nothing
        raise
    return places


def _cluster_name(label: int, summary: Summary) -> str:
    """Name the folder of a cluster; label −1 is noise."""
    width = max(2, len(str(summary.clusters.max())))
    return "noise" if label < 0 else f"cluster_{label:0{width}d}"


def _places(names: Sequence[str], summary: Summary) -> list[str]:
    """Return folder and name of each file: its own name, or its whole path with ``__`` where two would be the same.

    Names are compared without case, as some file systems do.
    """
    folders = [_cluster_name(label, summary) for label in summary.labels.tolist()]
    short = [PurePosixPath(name).name for name in names]
    keys = [(folder, name.casefold()) for folder, name in zip(folders, short, strict=True)]
    count = Counter(keys)
    taken = {key for key in keys if count[key] == 1}
    places = []
    for folder, name, simple, key in zip(folders, names, short, keys, strict=True):
        chosen = simple
        if count[key] > 1:
            path = PurePosixPath("__".join(PurePosixPath(name).parts)[-200:])
            chosen, number = path.name, 1
            while (folder, chosen.casefold()) in taken:
                number += 1
                chosen = f"{path.stem}_{number}{path.suffix}"
            taken.add((folder, chosen.casefold()))
        places.append(f"{folder}/{chosen}")
    return places


def _write_index(path: Path, names: Sequence[str], places: Sequence[str], summary: Summary) -> None:
    header = ["id", "cluster", "confidence", "second_cluster", "margin", "fits_nowhere", "file"]
    rows: list[list[Any]] = [header]
    for i, (name, place) in enumerate(zip(names, places, strict=True)):
        second = int(summary.second_cluster[i])
        confidence, margin = f"{summary.confidence[i]:.6g}", f"{summary.margin[i]:.6g}"
        label, fits_nowhere = int(summary.labels[i]), int(summary.fits_nowhere[i])
        rows.append([name, label, confidence, "" if second < 0 else second, margin, fits_nowhere, place])
    with path.open("w", encoding="utf-8", newline="") as stream:
        write_rows(stream, rows)


def _check_space(target: Path, folder: Path, names: Sequence[str]) -> None:
    needed = sum((folder / name).stat().st_size for name in names)
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        problem = f"the copies need {readable_bytes(needed)} and {readable_bytes(free)} are free"
        raise FileError(target, f"{problem}; use {argument('link', True)} or another disk")
