"""Saved models: they come back whole, and a file that would make anything else is refused before it does."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from subspaces import KTRR, SubspaceClustering, registry
from subspaces.datasets import make_subspaces
from subspaces.io import FileError
from subspaces.io.models import KIND, Reading, load_model, save_model

skops_io = pytest.importorskip("skops.io")

X, _ = make_subspaces(3, dimension=2, ambient=8, n_points=25, noise=0.01, random_state=0)
READING = Reading(8, [f"x{i}" for i in range(8)])


def refusal(path, **options):
    with pytest.raises(FileError) as caught:
        load_model(path, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    return text


def dump(path, **content):
    path.write_bytes(skops_io.dumps({"kind": KIND, "reading": {"n_features": 8}, **content}))
    return path


@pytest.fixture(scope="module")
def model():
    return KTRR(3).fit(X)


@pytest.mark.parametrize("name", [*registry.names(*registry.SHALLOW), "auto"])
def test_every_method_comes_back(tmp_path, name):
    cls = SubspaceClustering if name == "auto" else registry.load(name)
    fitted = cls(n_clusters=3).fit(X)
    save_model(tmp_path / "m.skops", fitted, READING)
    again, reading = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert reading == READING


def test_a_frame_is_read_by_its_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    save_model(tmp_path / "m.skops", KTRR(3).fit(frame))
    again, reading = load_model(tmp_path / "m.skops")
    assert reading == Reading(X.shape[1], list(frame.columns))
    assert len(again.predict(frame)) == len(X)
    save_model(tmp_path / "n.skops", KTRR(3).fit(X))
    assert load_model(tmp_path / "n.skops")[1] == Reading(X.shape[1])


# ------------------------------------------------------------------ strangers


class Stranger:
    """A class that is nobody's model."""


def test_strangers_are_named_and_not_made(tmp_path, model):
    made = []
    Stranger.__setstate__ = lambda self, state: made.append(state)
    thing = Stranger()
    thing.x = 1
    path = dump(tmp_path / "m.skops", estimator=model, more=thing)
    text = refusal(path)
    assert "it would make '" in text
    assert "Stranger'" in text
    assert "do not use it" in text
    assert made == []


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "subspaces.io.writing.write_text",
        "subspaces.cli.main.app",
        "subspaces.engine.run.os",
        "subspaces.numerics.process.quiet",
        "subspaces.kernels.profiles.nothing",
        "subspaces.estimators.nothing.Here",
        "subspaces..estimators.ktrr.KTRR",
        "subspaces.estimators.ktrr.Any",
    ],
)
def test_only_classes_of_models_are_ours(name):
    from subspaces.io.models import _is_ours

    assert not _is_ours(name)
    assert _is_ours("subspaces.estimators.ktrr.KTRR")


def test_functions_are_refused(tmp_path, model):
    from subspaces.io.writing import write_text

    assert "write_text" in refusal(dump(tmp_path / "m.skops", estimator=model, hook=write_text))
    assert load_model(dump(tmp_path / "n.skops", estimator=model))[1] == Reading(8)


def test_pickles_are_no_models(tmp_path):
    import pickle

    from io_data import Bomb

    path = tmp_path / "m.skops"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "trace")))
    assert "not a model" in refusal(path)
    assert not (tmp_path / "trace").exists()


def test_what_is_no_model_is_said(tmp_path, model):
    assert "no such file" in refusal(tmp_path / "nothing.skops")
    (tmp_path / "a.skops").write_bytes(skops_io.dumps(model))
    assert "this is no model that was saved here" in refusal(tmp_path / "a.skops")
    whole = dump(tmp_path / "m.skops", estimator=model).read_bytes()
    rng = np.random.default_rng(0)
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 5):
        (tmp_path / "m.skops").write_bytes(whole[:length])
        refusal(tmp_path / "m.skops")
    for _ in range(15):
        scrambled = bytearray(whole)
        for i in rng.integers(len(whole), size=20):
            scrambled[i] = rng.integers(256)
        (tmp_path / "m.skops").write_bytes(bytes(scrambled))
        with suppress(FileError):
            load_model(tmp_path / "m.skops", max_bytes=10**8)


# ------------------------------------------------------------------ bombs


def test_sizes_are_checked_first(tmp_path, model):
    path = dump(tmp_path / "m.skops", estimator=model, more=np.zeros((1000, 1000)))
    assert "only 1 MB of memory may be used" in refusal(path, max_bytes=10**6)
    assert load_model(path, max_bytes=10**9)


def test_arrays_asked_for_many_times_are_counted_each_time(tmp_path):
    path = tmp_path / "m.skops"
    content = io.BytesIO()
    np.save(content, np.zeros(10**5))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", json.dumps({"content": [{"file": "a.npy"}] * 100}))
        archive.writestr("a.npy", content.getvalue())
    assert "its values need 160 MB, and only 50 MB" in refusal(path, max_bytes=5 * 10**7)


def test_archives_in_archives_are_counted(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        array = io.BytesIO()
        np.save(array, np.zeros(2 * 10**6))
        archive.writestr("data.npy", array.getvalue())
    for deep in (False, True):
        path = tmp_path / "m.skops"
        content = inner.getvalue()
        if deep:
            outer = io.BytesIO()
            with zipfile.ZipFile(outer, "w") as archive:
                archive.writestr("x.npz", content)
            content = outer.getvalue()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("schema.json", json.dumps({"file": "m.npz"}))
            archive.writestr("m.npz", content)
        expected = "an archive in an archive in an archive" if deep else "its values need 32"
        assert expected in refusal(path, max_bytes=10**7)


def test_arrays_that_announce_more_than_they_hold(tmp_path):
    path = tmp_path / "m.skops"
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps({"file": "a.npy"}))
        archive.writestr("a.npy", stream.getvalue())
    assert "an array announces 8000000000000 bytes" in refusal(path)


# ------------------------------------------------------------------ writing


def test_nothing_is_left_of_a_model_that_could_not_be_written(tmp_path, model, monkeypatch):
    def replace(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("os.replace", replace)
    with pytest.raises(OSError, match="No space left"):
        save_model(tmp_path / "m.skops", model, READING)
    assert list(tmp_path.iterdir()) == []


def test_models_that_could_not_be_read_are_not_written(tmp_path):
    fitted = KTRR(3, kernel=kernel_of_mine).fit(X)
    with pytest.raises(FileError, match=r"the model holds '.*kernel_of_mine', which could not be read again"):
        save_model(tmp_path / "m.skops", fitted, READING)
    assert list(tmp_path.iterdir()) == []


def kernel_of_mine(A, B=None):
    return A @ (A if B is None else B).T


def test_skops_is_named_where_it_is_missing(tmp_path, model, monkeypatch):
    (tmp_path / "m.skops").touch()
    monkeypatch.setattr("subspaces.io.models.find_spec", lambda name: None)
    assert 'saved models need skops: pip install "subspaces[models]"' in refusal(tmp_path / "m.skops")
    with pytest.raises(FileError, match="saved models need skops"):
        save_model(tmp_path / "n.skops", model, READING)
