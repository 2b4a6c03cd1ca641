"""``help`` of the deep methods explains every parameter."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from subspaces import registry


@pytest.mark.parametrize("name", registry.names("deep"))
def test_every_parameter_is_explained(name):
    cls = registry.load(name)
    body = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=\n\n)", cls.__doc__)[1]
    found = {name for names in re.findall(r"(?m)^(\S[^\n]*?)(?: : .*)?$", body) for name in names.split(", ")}
    assert set(cls().get_params(deep=False)) == found
