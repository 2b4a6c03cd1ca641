"""No test may read or write the cache of whoever runs them."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
