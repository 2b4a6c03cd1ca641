"""Saved models: they come back whole, and a file that would make anything else is refused before it does."""

from __future__ import annotations

import collections
import datetime
import functools
import io
import json
import operator
import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import io_data
from io_data import npy, npy_header, write_zip
from subspaces import EKTRR, KTRR, SampledClusterer, SubspaceClustering, registry
from subspaces.app.features.extractor import FromFile
from subspaces.app.features.networks import EfficientNet
from subspaces.app.files import FileError
from subspaces.app.files.models import KIND, Reading, load_model, save_model
from subspaces.datasets import make_subspaces
from subspaces.kernels import KERNELS

skops_io = pytest.importorskip("skops.io")

X, _ = make_subspaces(3, dimension=2, ambient=8, n_samples=25, noise=0.01, random_state=0)
READING = Reading(8, [f"x{i}" for i in range(8)])


refusal = functools.partial(io_data.refusal, read=load_model)


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


@pytest.mark.parametrize(
    "fitted",
    [
        *(KTRR(3, kernel=name) for name in KERNELS if name != "precomputed"),
        KTRR(3, solver="two_scale"),
        KTRR(3, out_of_sample="network", random_state=np.random.RandomState(0)),
        EKTRR(3, n_landmarks=30),
        EKTRR(3, n_landmarks=30, classifier=make_pipeline(StandardScaler(), LogisticRegression())),
        SampledClusterer(3, n_landmarks=40),
    ],
    ids=lambda fitted: str(fitted).split("random_state")[0],
)
def test_every_part_comes_back(tmp_path, fitted):
    fitted.fit(X)
    save_model(tmp_path / "m.skops", fitted)
    np.testing.assert_array_equal(load_model(tmp_path / "m.skops")[0].predict(X), fitted.predict(X))


def test_a_classifier_that_could_not_be_read_again_is_refused_with_a_remedy(tmp_path):
    fitted = EKTRR(3, n_landmarks=30, classifier=KNeighborsClassifier()).fit(X)
    with pytest.raises(FileError, match=r"KNeighborsClassifier'.* as classifier None or LogisticRegression\(\)"):
        save_model(tmp_path / "m.skops", fitted)
    assert not list(tmp_path.iterdir())


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
    text = refusal(dump(tmp_path / "m.skops", estimator=model, more=thing))
    assert re.search(r"it would make '.*Stranger', .* do not use it", text)
    assert made == []


def crafted(path, change, **content):
    """A model whose list of parts was changed by hand."""
    whole = zipfile.ZipFile(io.BytesIO(dump(path, **content).read_bytes()))
    schema = json.loads(whole.read("schema.json"))
    change(schema["content"])
    members = {name: whole.read(name) for name in whole.namelist()}
    return write_zip(path, members | {"schema.json": json.dumps(schema)})


def part_of(thing):
    """How skops writes a thing, under ids of its own."""
    content = zipfile.ZipFile(io.BytesIO(skops_io.dumps(thing))).read("schema.json")
    return json.loads(content, object_hook=lambda part: {k: v for k, v in part.items() if k != "__id__"})


def test_nothing_is_called_while_a_model_is_loaded(tmp_path, model, monkeypatch):
    """skops calls the types of keys, and our extractors open files and import modules when they are called."""
    (tmp_path / "spying").mkdir()
    (tmp_path / "spying" / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    opened = []
    monkeypatch.setattr("subspaces.app.features.extractor.read_table", lambda path: opened.append(path))
    spy = EfficientNet()
    object.__setattr__(spy, "module", "spying.deep")
    for number, thing in enumerate([FromFile("/etc/passwd.npy"), spy]):

        def change(parts, thing=thing):
            parts["reading"]["key_types"]["content"] = [part_of(thing)]

        assert "keys that are neither texts nor numbers" in refusal(
            crafted(tmp_path / f"{number}.skops", change, estimator=model)
        )

        def hide(parts, thing=thing):  # the same keys as before, under the id of a list with the spy
            parts["kind"] = {**part_of([str]), "__id__": 7, "content": [part_of(thing)]}
            parts["reading"]["key_types"]["__id__"] = 7

        assert "two parts under one id" in refusal(crafted(tmp_path / f"{number}.skops", hide, estimator=model))
    assert opened == []
    assert not (tmp_path / "imported").exists()


def test_extractors_are_what_they_are_and_where_they_belong(tmp_path, model):
    def refused(features, place="reading"):
        content = {"estimator": model, "reading": {"n_features": 8}}
        path = tmp_path / "m.skops"
        path.write_bytes(skops_io.dumps({"kind": KIND, **content, place: {"n_features": 8, "features": features}}))
        return refusal(path)

    other = EfficientNet()
    object.__setattr__(other, "module", "spying.deep")
    assert "EfficientNet with other attributes" in refused(other)
    assert "EfficientNet as kernel.features" in refused(EfficientNet(), place="kernel")
    for features in (EfficientNet(), FromFile("a.npy")):
        save_model(tmp_path / "m.skops", model, Reading(8, features=features))
        assert load_model(tmp_path / "m.skops")[1].features == features


@pytest.mark.parametrize(
    "thing",
    [
        os.path.exists,
        np.exp,
        operator.methodcaller("system", "true"),
        functools.partial(print, "x"),
        KTRR(2).fit,
        KTRR,
        datetime.UTC,
        np.random.default_rng(0),
        KMeans(2),
        collections.OrderedDict(a=1),
        Path("/etc/passwd"),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_parts_that_no_model_has_are_refused(tmp_path, model, thing):
    assert "do not use it" in refusal(dump(tmp_path / "m.skops", estimator=model, more=thing))


def test_the_estimator_is_one_of_ours(tmp_path, model):
    assert "KMeans" in refusal(dump(tmp_path / "m.skops", estimator=KMeans(2).fit(X)))
    assert "this is no model that was saved here" in refusal(dump(tmp_path / "n.skops", estimator={"predict": 1}))


def test_sparse_matrices_that_point_outside_are_refused(tmp_path, model):
    matrix = sparse.csr_array(np.eye(3))
    matrix.indices[:] = 10**6
    assert "damaged" in refusal(dump(tmp_path / "m.skops", estimator=model, more=matrix))


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
    schema = json.dumps({"content": [{"file": "a.npy"}] * 100})
    path = write_zip(tmp_path / "m.skops", {"schema.json": schema, "a.npy": npy(np.zeros(10**5))})
    assert "its values need 160 MB, and only 50 MB" in refusal(path, max_bytes=5 * 10**7)


def test_archives_in_archives_are_counted(tmp_path):
    inner = write_zip(tmp_path / "inner", {"data.npy": npy(np.zeros(2 * 10**6))}).read_bytes()
    outer = write_zip(tmp_path / "outer", {"x.npz": inner}).read_bytes()
    for content, expected in ((inner, "its values need 32"), (outer, "an archive in an archive in an archive")):
        path = write_zip(tmp_path / "m.skops", {"schema.json": json.dumps({"file": "m.npz"}), "m.npz": content})
        assert expected in refusal(path, max_bytes=10**7)


def test_arrays_that_announce_more_than_they_hold(tmp_path):
    schema = json.dumps({"file": "a.npy"})
    path = write_zip(tmp_path / "m.skops", {"schema.json": schema, "a.npy": npy_header((10**12,))})
    assert "an array announces 8000000000000 bytes" in refusal(path)


# ------------------------------------------------------------------ writing


def test_models_that_could_not_be_read_are_not_written(tmp_path):
    fitted = KTRR(3, kernel=kernel_of_mine).fit(X)
    with pytest.raises(FileError, match=r"the model holds '.*kernel_of_mine', which could not be read again"):
        save_model(tmp_path / "m.skops", fitted, READING)
    assert list(tmp_path.iterdir()) == []


def kernel_of_mine(A, B=None):
    return A @ (A if B is None else B).T


def test_skops_is_named_where_it_is_missing(tmp_path, model, monkeypatch):
    (tmp_path / "m.skops").touch()
    monkeypatch.setattr("subspaces.app.files.models.find_spec", lambda name: None)
    assert 'saved models need skops: pip install "subspaces[app]"' in refusal(tmp_path / "m.skops")
    with pytest.raises(FileError, match="saved models need skops"):
        save_model(tmp_path / "n.skops", model, READING)
