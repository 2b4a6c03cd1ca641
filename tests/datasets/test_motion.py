"""Trajectories of moving objects: made, read from the files people have, and refused with a reason."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

from subspaces import LSR2
from subspaces.app.files import FileError
from subspaces.datasets import load_motion, make_motions
from subspaces.metrics import accuracy


def hopkins(X: np.ndarray) -> np.ndarray:
    """Homogeneous coordinates as Hopkins155 has them, 3 × points × frames."""
    tracks = X.reshape(len(X), -1, 2).transpose(2, 0, 1)
    return np.concatenate([tracks, np.ones((1, *tracks.shape[1:]))])


@pytest.fixture
def motions():
    return make_motions(2, 20, 8, random_state=0)


def test_distant_objects_give_affine_subspaces_of_dimension_3():
    X, y = make_motions(4, [10, 20, 30, 40], 20, noise=0, perspective=0, random_state=3)
    assert X.shape == (100, 40)
    assert_array_equal(np.bincount(y), [10, 20, 30, 40])
    for label in range(4):
        part = X[y == label]
        values = np.linalg.svd(part - part.mean(axis=0), compute_uv=False)
        assert values[3] < 1e-12 * values[0] < 0.05 * values[2]


def test_perspective_and_noise_leave_the_subspace():
    flat, near, noisy = (
        make_motions(1, 50, 20, random_state=0, **how)[0]
        for how in ({"noise": 0, "perspective": 0}, {"noise": 0, "perspective": 0.3}, {"perspective": 0})
    )
    fourth = [np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[3] for X in (flat, near, noisy)]
    assert fourth[0] < 1e-12
    assert min(fourth[1:]) > 0.01
    assert_allclose(noisy, flat, atol=0.02)
    # rigid in three dimensions, of which two are seen: nothing grows beyond the diagonal of the unit cube
    frames = flat.reshape(50, 20, 2)
    assert np.ptp(frames - frames.mean(axis=0), axis=0).max() < np.sqrt(3)


def test_hidden_stretches():
    X, _ = make_motions(3, 200, 40, missing=0.2, random_state=0)
    hidden = np.isnan(X[:, ::2])
    assert_array_equal(hidden, np.isnan(X[:, 1::2]))
    assert abs(hidden.mean() - 0.2) < 0.02
    assert (np.abs(np.diff(hidden.astype(int), axis=1)).sum(axis=1) <= 2).all()  # one stretch each
    assert not hidden.all(axis=1).any()


def test_hopkins_files(tmp_path, motions):
    X, y = motions
    visible = np.ones((40, 8))
    visible[3, 2:5] = 0
    savemat(tmp_path / "a_truth.mat", {"x": hopkins(X), "y": hopkins(100 * X), "s": y + 1.0, "m": visible})
    found = load_motion(tmp_path / "a_truth.mat", complete_tracks=False)
    assert_array_equal(found.visible, visible)
    seen = np.repeat(visible, 2, axis=1) > 0
    assert_array_equal(found.data[seen], X[seen])
    assert np.isnan(found.data[~seen]).all()
    assert_array_equal(found.target, y)
    assert found.target_names == ["1", "2"]
    whole = load_motion(tmp_path / "a_truth.mat")
    assert_allclose(whole.data, X, atol=0.03)
    assert whole.rank > 0
    assert whole.error < 0.03
    assert_array_equal(load_motion(tmp_path / "a_truth.mat", return_X_y=True)[0], whole.data)
    savemat(tmp_path / "pixels.mat", {"y": 2 * hopkins(X)})  # weights other than 1, and no classes
    data, target = load_motion(tmp_path / "pixels.mat", return_X_y=True)
    assert_allclose(data, X)
    assert target is None


def test_tables_of_tracks(tmp_path, motions):
    X, y = motions
    X[5, 4:8] = np.nan
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["" if np.isnan(v) else repr(float(v)) for v in row] for row in X])
    np.save(tmp_path / "t.npy", X)
    np.savez(tmp_path / "t.npz", one_X=X, one_y=y, two_X=X[:9], two_y=y[:9])
    savemat(tmp_path / "t.mat", {"X": X})
    for name in ("t.csv", "t.npy", "t.mat"):
        assert_array_equal(load_motion(tmp_path / name, complete_tracks=False).data, X)
    found = load_motion(tmp_path / "t.npz", sequence="two", complete_tracks=False)
    assert_array_equal(found.data, X[:9])
    assert_array_equal(found.target, y[:9])
    with pytest.raises(FileError, match="three_X"):
        load_motion(tmp_path / "t.npz", sequence="three")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2,3,4,5\n1,2,3,4,5\n", "5 columns; tracks have two coordinates per frame"),
        ("1,2,3,4\n,,,\n", "track 1 holds nothing; leave out such tracks"),
        ("1,2,,\n3,4,,\n", "column 2 holds nothing; leave out such tracks and frames"),
        ("1,2,3,\n1,2,3,4\n", "track 0 has one of two coordinates in frame 2"),
        ({"a": np.eye(3)}, "3 columns; tracks have two coordinates per frame"),
        ({"x": np.ones((3, 5, 6)), "s": np.ones(4)}, "'s' is 1 x 4, but the tracks need 5 x 1"),
        ({"x": np.ones((3, 5, 6)), "m": np.ones((5, 5))}, "'m' is 5 x 5, but the tracks need 5 x 6"),
        ({"x": np.ones((3, 5, 6)), "m": np.zeros((5, 6))}, "track 0 holds nothing"),
        ({"x": np.ones((3, 0, 6))}, "there are no tracks in it"),
        ({"x": np.ones((3, 5, 1))}, "2 columns; tracks have two coordinates per frame"),
    ],
)
def test_files_without_tracks_are_refused(content, message, tmp_path):
    path = tmp_path / ("t.csv" if isinstance(content, str) else "t.mat")
    path.write_text(content) if isinstance(content, str) else savemat(path, content)
    with pytest.raises(FileError, match=message):
        load_motion(path)


def test_objects_are_separated_with_a_fifth_of_the_frames_hidden(tmp_path):
    X, y = make_motions(3, 60, 30, missing=0.2, random_state=1)
    np.save(tmp_path / "t.npy", X)
    model = LSR2(3, affine=True, scaling=None, reg=0.002, graph="row_space")
    assert accuracy(y, model.fit_predict(load_motion(tmp_path / "t.npy").data)) > 0.98


def test_hopkins155_where_it_is(data_home):
    path = data_home / "hopkins155_part.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    X, y = load_motion(path, sequence="1R2RC", return_X_y=True)
    assert X.shape == (459, 58)
    assert accuracy(y, LSR2(3, affine=True, scaling=None, reg=0.001, graph="row_space").fit_predict(X)) > 0.97
