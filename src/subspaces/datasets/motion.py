"""Trajectories of points on moving objects: read from files, or made of known motions."""

from __future__ import annotations

from os import PathLike

import numpy as np
from sklearn.utils import Bunch, check_random_state

from subspaces.datasets.completion import complete
from subspaces.datasets.synthetic import Counts, Seed, nonnegative, per_cluster, positive
from subspaces.utils.optional import from_app
from subspaces.utils.types import Array, Labels


def load_motion(
    path: str | PathLike[str], *, sequence: str | None = None, complete_tracks: bool = True, return_X_y: bool = False
) -> Bunch | tuple[Array, Labels | None]:
    """Read tracks of points through the frames of a film, one row per track.

    Parameters
    ----------
    path : file
        ``.mat`` of Hopkins155 (``x``, 3 × points × frames, or ``y`` in pixels; ``s``, the motion of each point; ``m``,
        which points are visible); or a table with the columns x1, y1, x2, y2 and so on, where an empty cell is a frame
        in which the point was not seen: ``.csv``, ``.tsv``, ``.parquet``, ``.npy``, ``.npz``.
    sequence : str or None, default=None
        In an ``.npz`` of several films the name of one: its arrays are ``NAME_X`` and ``NAME_y``.
    complete_tracks : bool, default=True
        Estimate coordinates of frames in which a point was not seen, by
        ``subspaces.datasets.completion.complete``. Otherwise they are NaN.
    return_X_y : bool, default=False
        Return only the tracks and their motions.

    Returns
    -------
    Bunch, or (data, target) with `return_X_y`
        ``data`` (n_tracks, 2 n_frames), x and y of the first frame, then of the second; ``target`` (codes 0, 1, ...;
        None where the file does not say), ``target_names``, ``visible`` (n_tracks, n_frames), ``rank`` of what was put
        in and its ``error`` on coordinates held out (0 and NaN where nothing was), ``filename``.

    Raises
    ------
    FileError
        If the file cannot be used; the text says why.

    References
    ----------
    Tron, Vidal: A benchmark for the comparison of 3-D motion segmentation algorithms, CVPR 2007.
    """
    array, label = (None, None) if sequence is None else (f"{sequence}_X", f"{sequence}_y")
    tracks = from_app("files.tracks", "read_tracks")(path, array=array, label=label)
    visible = ~np.isnan(tracks.X[:, ::2])
    found = complete(tracks.X, group=2) if complete_tracks else None
    X = tracks.X if found is None else found.X
    if return_X_y:
        return X, tracks.y
    return Bunch(
        data=X,
        target=tracks.y,
        target_names=tracks.classes,
        visible=visible,
        rank=0 if found is None else found.rank,
        error=np.nan if found is None else found.error,
        filename=str(tracks.source),
    )


def make_motions(
    n_motions: int = 3,
    n_tracks: Counts = 60,
    n_frames: int = 30,
    *,
    noise: float = 0.002,
    perspective: float = 0.1,
    missing: float = 0.0,
    random_state: Seed = None,
) -> tuple[Array, Labels]:
    """Make trajectories of points on rigid objects that turn and travel.

    Each object is a cloud of points in a cube of side 1. It turns about a fixed axis and travels along a slightly
    curved way, at a speed that changes slowly. Seen from far away (`perspective` 0, an affine camera) its tracks lie on
    an affine subspace of dimension 3 or less.

    Parameters
    ----------
    n_motions : number of objects
    n_tracks : points on each object, one number or one for each
    n_frames : frames of the film, 2 or more
    noise : standard deviation of the tracker's error; the picture is about 2 wide
    perspective : float, default=0.1
        Size of an object over its distance from the camera, from 0 to below 0.5: near parts look larger, and tracks
        leave their subspace.
    missing : float, default=0
        Share of the frames, on average over the tracks, in which a point is hidden: NaN, in one stretch of each track.
    random_state : seed

    Returns
    -------
    X, y : tracks of shape (n_samples, 2 n_frames), x and y of the first frame, then of the second; object of each

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import make_motions
    >>> X, y = make_motions(2, n_tracks=20, n_frames=12, noise=0, perspective=0, random_state=0)
    >>> [int(np.linalg.matrix_rank(X[y == k] - X[y == k].mean(axis=0))) for k in (0, 1)]
    [3, 3]
    """
    rng = check_random_state(random_state)
    sizes = per_cluster("n_tracks", n_tracks, positive("n_motions", n_motions))
    if positive("n_frames", n_frames) < 2:
        raise ValueError(f"n_frames must be 2 or more: one picture shows no motion; got {n_frames}.")
    for name, value, limit in (("noise", noise, np.inf), ("perspective", perspective, 0.5), ("missing", missing, 0.5)):
        nonnegative(name, value, limit)
    X = np.concatenate([_trajectories(size, n_frames, perspective, rng) for size in sizes])
    X += noise * rng.standard_normal(X.shape)
    if missing:
        X[np.repeat(_hidden(len(X), n_frames, missing, rng), 2, axis=1)] = np.nan
    return X, np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)


def _trajectories(n_samples: int, n_frames: int, perspective: float, rng: np.random.RandomState) -> Array:
    """Return the tracks of one object, shape (n_samples, 2 n_frames)."""
    shape = rng.uniform(-0.5, 0.5, (n_samples, 3))
    time = np.linspace(0, 1, n_frames)
    pace = time + 0.1 * rng.standard_normal() * np.sin(np.pi * time)
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    angles = rng.uniform(0.4, 1.0) * rng.choice([-1, 1]) * pace
    way, bend = rng.uniform(-0.6, 0.6, 3), 0.2 * rng.standard_normal(3)
    place = rng.uniform(-0.5, 0.5, 3) + np.outer(pace, way) + np.outer(time * (1 - time), bend)
    cross = np.cross(np.eye(3), axis)
    turned = [shape @ (np.eye(3) + np.sin(a) * cross + (1 - np.cos(a)) * cross @ cross) for a in angles]  # Rodrigues
    film = np.stack([points + offset for points, offset in zip(turned, place, strict=True)], axis=1)
    nearness = 1 / (1 + perspective * film[:, :, 2:])
    return np.asarray((film[:, :, :2] * nearness).reshape(n_samples, 2 * n_frames))


def _hidden(n_tracks: int, n_frames: int, share: float, rng: np.random.RandomState) -> Array:
    """Return where points are hidden, (n_tracks, n_frames): one stretch each, of twice the mean length at most."""
    lengths = np.rint(rng.uniform(0, 2 * share, n_tracks) * n_frames).astype(int)
    starts = rng.randint(0, n_frames - lengths + 1)
    frames = np.arange(n_frames)
    return np.asarray((frames >= starts[:, None]) & (frames < (starts + lengths)[:, None]))
