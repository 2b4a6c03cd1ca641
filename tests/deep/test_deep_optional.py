"""PyTorch is optional: nothing imports it unasked, and who asks for it without having it is told what to do."""

from __future__ import annotations

import re
import sys

import pytest

from subspaces import deep, registry

CLASSES = [registry.entry_of(name).class_name for name in registry.names("deep")]


@pytest.mark.parametrize("name", CLASSES)
def test_clear_error_without_torch(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # the import system's own way to say: not there
    with pytest.raises(ImportError, match=rf"subspaces.deep.{name} needs PyTorch.*pip install subspaces\[deep\]"):
        getattr(deep, name)


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'DSCNett'"):
        deep.DSCNett  # noqa: B018
    assert set(dir(deep)) == set(CLASSES)


@pytest.mark.parametrize("name", registry.names("deep"))
def test_help_explains_every_parameter(name):
    pytest.importorskip("torch")
    cls = registry.load(name)
    body = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=\n\n)", cls.__doc__)[1]
    found = {name for names in re.findall(r"(?m)^(\S[^\n]*?)(?: : .*)?$", body) for name in names.split(", ")}
    assert set(cls().get_params(deep=False)) == found
