"""The one list of methods: complete, readable without NumPy, and what everything else is made of."""

from __future__ import annotations

import subprocess
import sys

import pytest

import subspaces
from subspaces import deep, registry
from subspaces.estimators.base import SubspaceClusterer


def test_names_by_kind():
    assert registry.names() == registry.names("graph") + registry.names("large") + registry.names("deep")
    assert [len(registry.names(kind)) for kind in ("graph", "large", "deep")] == [17, 10, 6]
    assert registry.names()[:2] == ("ktrr", "trr")
    assert len(set(registry.names())) == 33


def test_top_level_names_come_from_it():
    classes = [registry.entry_of(name).class_name for name in registry.names(*registry.SHALLOW)]
    assert subspaces.__all__[: len(classes)] == classes
    assert deep.__all__ == [registry.entry_of(name).class_name for name in registry.names("deep")]
    for name in registry.names(*registry.SHALLOW):
        cls = registry.load(name)
        assert issubclass(cls, SubspaceClusterer)
        assert getattr(subspaces, cls.__name__) is cls
        assert cls.__module__ == registry.entry_of(name).module
    assert set(SubspaceClusterer.__subclasses__()) > {registry.load(name) for name in ("kasp", "sec", "lsc", "uspec")}


def test_unknown_names():
    with pytest.raises(KeyError, match="'ktr' is no method; there are ktrr, trr"):
        registry.load("ktr")
    with pytest.raises(AttributeError, match="has no attribute 'KTR'"):
        subspaces.KTR  # noqa: B018


def test_our_own_classes_are_not_deep():
    for name in registry.names(*registry.SHALLOW):
        own = [cls for cls in registry.load(name).__mro__ if cls.__module__.startswith("subspaces.estimators")]
        chain = [cls for cls in own if issubclass(cls, SubspaceClusterer)]
        assert len(chain) <= 3, chain


def test_read_without_numpy():
    code = "import sys, subspaces.registry; sys.exit('numpy' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
