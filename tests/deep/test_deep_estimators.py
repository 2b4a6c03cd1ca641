"""The deep estimators: equal to their shallow methods without layers, repeatable, resumable, clear about errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")

from subspaces import KTRR, LSR2, SSC, TRR  # noqa: E402
from subspaces.deep import AEKTRR, AESSC, DASC, DSCNet, KTRRNet, StructAE  # noqa: E402
from subspaces.deep.dasc import labels_of  # noqa: E402
from subspaces.metrics import accuracy  # noqa: E402
from subspaces.representation.coefficients import from_dense  # noqa: E402
from subspaces.utils.progress import progress_to  # noqa: E402

QUICK = {
    DSCNet: {"epochs": 12, "pretrain_epochs": 8, "graph_params": {"subspace_dim": 2}},
    DASC: {
        "epochs": 6,
        "pretrain_epochs": 4,
        "adversarial_epochs": 8,
        "interval": 3,
        "rank": 2,
        "graph_params": {"subspace_dim": 2},
    },
    StructAE: {"hidden": (12, 6), "epochs": 8, "pretrain_epochs": 6, "update_every": 3},
    AESSC: {"pretrain_epochs": 8},
    KTRRNet: {"epochs": 6, "pretrain_epochs": 6},
    AEKTRR: {"pretrain_epochs": 8},
}
every_method = pytest.mark.parametrize("cls", QUICK, ids=lambda cls: cls.__name__)


def quick(cls, **changes):
    common = {"n_clusters": 3, "batch_size": 20, "save_every": 2}
    return cls(**{**common, **QUICK[cls], **changes})


@pytest.fixture
def images(rng):
    """Three objects, each a blend of two pictures in columns of its own: 45 images of 8 × 6 pixels, and the objects."""
    pictures = rng.uniform(0.2, 1, size=(3, 2, 8, 6)) * (np.arange(6) // 2 == np.arange(3)[:, None])[:, None, None]
    weights = rng.uniform(0.2, 1, size=(3, 15, 2))
    X = np.einsum("kip,kphw->kihw", weights, pictures).reshape(45, 8, 6)
    return X.astype(np.float32), np.repeat(np.arange(3), 15)


@every_method
def test_clusters_easy_images(cls, images):
    X, y = images
    model = quick(cls).fit(X)
    assert accuracy(y, model.labels_) == 1
    assert model.image_shape_ == (8, 6, 1)
    assert model.coefficients_.shape == (45, 45)
    assert model.embedding_.shape == (45, 3)
    assert model.losses_
    assert all(np.isfinite(losses).all() for losses in model.losses_.values())
    assert all(losses[-1] < losses[0] for losses in list(model.losses_.values())[:2])
    np.testing.assert_array_equal(model.predict(X[:5]), model.labels_[:5])
    # a network is trained in single precision, what is computed of its codes in double
    assert model.affinity_matrix_.dtype == (np.float32 if cls in (DSCNet, DASC, KTRRNet) else np.float64)


@every_method
def test_same_seed_same_labels_and_nothing_global_changes(cls, images):
    X, _ = images
    torch.manual_seed(7)
    torch.set_num_threads(2)
    state = torch.random.get_rng_state()
    try:
        first = quick(cls).fit(X)
        torch.rand(3)
        assert torch.get_num_threads() == 2
        second = quick(cls).fit(X)
        third = quick(cls, random_state=1).fit(X)
    finally:
        torch.set_num_threads(1)
    torch.manual_seed(7)
    assert torch.equal(state, torch.random.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.losses_ == second.losses_
    assert first.losses_ != third.losses_


@every_method
def test_resumed_run_equals_uninterrupted_one(cls, images, tmp_path):
    X, _ = images
    whole = quick(cls).fit(X)
    for stage, losses in whole.losses_.items():
        for stop in {3, len(losses) - 1}:

            def interrupt(name, epoch, epochs, stage=stage, stop=stop):
                if (name, epoch) == (f"Training the network ({stage})", stop):
                    raise KeyboardInterrupt

            folder = tmp_path / f"{stage}{stop}"
            folder.mkdir()
            with pytest.raises(KeyboardInterrupt), progress_to(interrupt):
                quick(cls, checkpoints=folder).fit(X)
            resumed = quick(cls, checkpoints=folder).fit(X)
            assert resumed.losses_ == whole.losses_, (stage, stop)
            np.testing.assert_array_equal(resumed.labels_, whole.labels_)
            # the same C; the eigensolver of the graph rounds by where its memory lies
            np.testing.assert_allclose(resumed.coefficients_.toarray(), whole.coefficients_.toarray(), atol=1e-4)
    assert not list(tmp_path.rglob("*.part"))


@every_method
def test_a_finished_checkpoint_serves_other_graphs(cls, images, tmp_path):
    X, _ = images
    other = {"graph": "symmetric", "graph_params": None, "assign_labels": "kmeans", "n_nonzero": 4}
    quick(cls, checkpoints=tmp_path).fit(X)

    def refuse(name, *_):
        assert cls is DASC or "Training" not in name, "trained again"  # there the graph takes part in the training
        assert "pretrain" not in name

    with progress_to(refuse):
        again = quick(cls, checkpoints=str(tmp_path), **other).fit(X)
    fresh = quick(cls, **other).fit(X)
    assert again.losses_ == fresh.losses_
    np.testing.assert_array_equal(again.labels_, fresh.labels_)


def test_methods_share_the_autoencoder(images, tmp_path):
    X, _ = images
    first = quick(AEKTRR, checkpoints=tmp_path).fit(X)
    seen = []
    with progress_to(lambda *report: seen.append(report)):
        second = quick(DSCNet, checkpoints=tmp_path).fit(X)
    trained = [report for report in seen if "Training" in report[0] and report[1]]
    assert trained == [("Training the network (self-expression)", epoch, 12) for epoch in range(1, 13)]
    assert second.losses_["pretrain"] == first.losses_["pretrain"]
    assert second.losses_ == quick(DSCNet).fit(X).losses_


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks():
    check_estimator(DSCNet(3, channels=(), epochs=5, graph="symmetric", assign_labels="kmeans"), on_skip=None)


def test_dasc_cuts_by_modularity_on_the_way():
    C = np.kron(np.eye(2), np.ones((5, 5))) + 0.01
    np.fill_diagonal(C, 0)
    plan = DASC(2, assign_labels="modularity")._outline(np.zeros((10, 3)))
    labels = labels_of(from_dense(C), plan)
    np.testing.assert_array_equal(labels == labels[0], np.arange(10) < 5)


# -------------------------------------------------------------------- without layers: the shallow methods


def test_aessc_without_layers_is_ssc(rng):
    X = np.kron(np.eye(3), rng.normal(size=(12, 3))) + 0.01 * rng.normal(size=(36, 9))
    deep, shallow = AESSC(3, channels=(), scaling=None).fit(X), SSC(3).fit(X)
    np.testing.assert_allclose(deep.coefficients_.toarray(), shallow.coefficients_.toarray(), atol=1e-12)
    np.testing.assert_array_equal(deep.labels_, shallow.labels_)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("cls", [AEKTRR, KTRRNet])
def test_ktrr_without_layers(rng, cls, kernel):
    X = rng.normal(size=(40, 5))
    deep = cls(3, channels=(), kernel=kernel, reg=0.3).fit(X)
    shallow = KTRR(3, kernel=kernel, reg=0.3, scaling="unit", solver="dense").fit(X)
    np.testing.assert_allclose(deep.coefficients_.toarray(), shallow.coefficients_.toarray(), atol=1e-8)
    np.testing.assert_array_equal(deep.labels_, shallow.labels_)


def test_structae_without_layers_is_trr(rng):
    X = rng.normal(size=(40, 5))
    deep, shallow = StructAE(3, hidden=()).fit(X), TRR(3, scaling="unit", solver="dense").fit(X)
    np.testing.assert_allclose(deep.coefficients_.toarray(), shallow.coefficients_.toarray(), atol=1e-8)
    np.testing.assert_array_equal(deep.labels_, shallow.labels_)


def test_dscnet_without_layers_reaches_ridge(rng):
    """Adam's end is the ridge solution with λ = 2λ₁/(1 + λ₂)."""
    X = rng.uniform(size=(30, 4))
    plain = {"scaling": None, "graph": "column", "n_nonzero": None}
    deep = DSCNet(2, channels=(), norm_weight=0.5, error_weight=3.0, epochs=1500, learning_rate=0.01, tol=None, **plain)
    lam = 2 * 0.5 / (1 + 3.0)
    shallow = LSR2(2, reg=lam / np.mean(np.sum(X**2, axis=1)), solver="dense", **plain)
    C, expected = (model.fit(X).coefficients_.toarray() for model in (deep, shallow))
    np.testing.assert_allclose(C, expected, atol=1e-5)


# -------------------------------------------------------------------- images


def test_layouts_of_images_are_equal(images, rng):
    grey, _ = images
    colour = np.stack([grey, grey**2, 1 - grey], axis=3)
    expected = AEKTRR(3, pretrain_epochs=3).fit(colour)
    for X, shape in (
        (colour.transpose(0, 3, 1, 2), None),
        (colour.reshape(45, -1), (8, 6, 3)),
        (colour.tolist(), None),
    ):
        other = AEKTRR(3, pretrain_epochs=3, image_shape=shape).fit(np.asarray(X, np.float32))
        assert other.losses_ == expected.losses_
        assert other.image_shape_ == (8, 6, 3)
    np.testing.assert_array_equal(expected.predict(colour.transpose(0, 3, 1, 2)), expected.labels_)


@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((10, 48), None, "image_shape=\\(height, width\\)"),
        ((10, 48), (6, 7), "has 42 values"),
        ((10, 48), (48,), "image_shape must be"),
        ((10, 8, 6), (6, 8), "contradicts"),
        ((10, 8, 6, 5), None, "no axis of"),
        ((10, 8, 6, 1, 1), None, "must hold images"),
    ],
)
def test_errors_about_images(shape, image_shape, message):
    with pytest.raises(ValueError, match=message):
        AEKTRR(2, image_shape=image_shape).fit(np.ones(shape) * np.arange(10).reshape(-1, *[1] * (len(shape) - 1)))


def test_errors_about_parameters(images, tmp_path):
    with pytest.raises(ValueError, match="device='nowhere'"):
        quick(AEKTRR, device="nowhere").fit(images[0])
    with pytest.raises(ValueError, match=r"checkpoints=.* must be a folder that exists"):
        quick(AEKTRR, checkpoints=tmp_path / "none").fit(images[0])
    with pytest.raises(ValueError, match="odd numbers"):
        AEKTRR(3, channels=(4,), kernel_sizes=(2,)).fit(images[0])
    with pytest.raises(ValueError, match="one for each of channels"):
        AEKTRR(3, channels=(4, 4), kernel_sizes=(3,)).fit(images[0])
    with pytest.raises(ValueError, match='norm="l2"'):
        DASC(3, norm="l1").fit(images[0])


# -------------------------------------------------------------------- training


def test_stops_early_on_the_loss(images):
    X, _ = images
    model = AEKTRR(3, pretrain_epochs=2000, tol=0.2, patience=3).fit(X)
    losses = model.losses_["pretrain"]
    assert 3 < len(losses) < 2000
    assert min(losses[:-3]) - min(losses[-3:]) < 0.2 * min(losses[:-3])


def test_a_loss_that_explodes_is_an_error(images):
    X, _ = images
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        DSCNet(3, learning_rate=1e20, epochs=50, tol=None).fit(X)


def test_other_runs_have_other_checkpoints(images, tmp_path):
    X, _ = images
    quick(AEKTRR, checkpoints=tmp_path).fit(X)
    assert len(list(tmp_path.iterdir())) == 1
    for changes, rows in (
        ({"learning_rate": 0.01}, X),
        ({}, X[::-1]),
        ({"random_state": 3}, X),
        ({"channels": (4,)}, X),
    ):
        n_files = len(list(tmp_path.iterdir()))
        quick(AEKTRR, checkpoints=tmp_path, **changes).fit(rows)
        assert len(list(tmp_path.iterdir())) == n_files + 1


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('code ran')",)


@pytest.mark.parametrize("content", ["bytes", {"format": 2, "identity": Evil()}, {"format": 0, "identity": {}}])
def test_checkpoints_that_are_none_are_refused(images, tmp_path, content):
    X, _ = images
    quick(AEKTRR, checkpoints=tmp_path).fit(X)
    (path,) = tmp_path.iterdir()
    if content == "bytes":
        path.write_bytes(b"something else")
    else:
        torch.save(content, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"{path.name} .* delete it"):
        quick(AEKTRR, checkpoints=tmp_path).fit(X)
    assert path.read_bytes() == before
