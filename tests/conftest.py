"""Fixtures shared by all tests: one seed, threads that do not fight, and real data where there is any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (threadpoolctl limits only what is already loaded)
import sklearn.cluster  # noqa: F401
from hypothesis import settings
from threadpoolctl import threadpool_limits

from sampled_cases import mark_full

# the same examples on every run: a failure in CI must be a failure at home
settings.register_profile("subspaces", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile(
    "long", deadline=None, max_examples=1000
)  # --hypothesis-profile=long: new examples every time
settings.load_profile("subspaces")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="every case of every test, also those marked `full`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what products can spare as `full`; leave it out unless ``--full``, ``-m`` or the name of a case is given."""
    mark_full(items)
    named = any("[" in argument for argument in config.args)
    if not (config.option.full or config.option.markexpr or named):
        spared = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=spared)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_configure(config: pytest.Config) -> None:
    """One BLAS and OpenMP thread per xdist worker, as in scikit-learn's own tests."""
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT") is not None:
        threadpool_limits(1)


@pytest.fixture
def seed() -> int:
    """Seed of the whole run (environment variable SUBSPACES_TEST_SEED); tests must hold for any."""
    return int(os.environ.get("SUBSPACES_TEST_SEED", "42"))


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def no_figure_is_left() -> Iterator[None]:
    """Pictures that open no window, and are closed after the test."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets: SUBSPACES_DATA, or ../shared/data beside the checkout."""
    named = os.environ.get("SUBSPACES_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: the folder {folder} does not exist; set SUBSPACES_DATA to the one that holds it")
    return folder


@pytest.fixture(scope="package")
def client():
    """Two workers of Dask for all tests of a folder."""
    from subspaces.distributed import connect

    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install subspaces[dask]")
    pytest.importorskip("distributed", reason="Dask is not installed: pip install subspaces[dask]")
    # Dask gives a worker up that is down when it looks again, 15 s after it was killed: also for the second time
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patient, connect(n_workers=2) as client:
        yield client
