"""Two workers of Dask for all tests of this folder."""

from __future__ import annotations

import pytest

from subspaces.distributed import connect


@pytest.fixture(scope="package")
def client():
    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install subspaces[dask]")
    pytest.importorskip("distributed", reason="Dask is not installed: pip install subspaces[dask]")
    # Dask gives a worker up that is down when it looks again, 15 s after it was killed: also for the second time
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patient, connect(n_workers=2) as client:
        yield client
