"""``help`` of every estimator explains every parameter and describes every fitted attribute."""

from __future__ import annotations

import re

import numpy as np
import pytest

from subspaces import SampledClusterer, SubspaceClustering, registry

CLASSES = [registry.load(name) for name in registry.names(*registry.SHALLOW)]
X = np.random.default_rng(0).normal(size=(40, 4))


def described(doc: str, section: str) -> dict[str, str]:
    body = re.search(rf"(?ms)^{section}\n-+\n(.*?)(?=\n\n|\Z)", doc)[1]
    entries = re.findall(r"(?m)^(\S[^\n]*?)(?: : ([^\n]*))?((?:\n +[^\n]*)*)$", body)
    return {name: kind + text for names, kind, text in entries for name in names.split(", ")}


@pytest.mark.parametrize("cls", [*CLASSES, SampledClusterer, SubspaceClustering], ids=lambda cls: cls.__name__)
def test_every_parameter_is_explained_with_its_own_default(cls):
    found = described(cls.__doc__, "Parameters")
    names = set(cls().get_params(deep=False))
    assert not names - set(found)
    assert not set(found) - names
    assert all(text.strip() for text in found.values())
    for name, value in cls().get_params(deep=False).items():
        shown = re.search(r"default=([^\s,]+)", found[name])
        assert shown is None or shown[1] in (f'"{value}"', str(value)) or float(shown[1]) == value


@pytest.mark.parametrize("cls", [*CLASSES, SubspaceClustering], ids=lambda cls: cls.__name__)
def test_every_fitted_attribute_is_described(cls):
    model, told = cls(n_clusters=2).fit(X), described(cls.__doc__, "Attributes")
    assert not {name for name in dir(model) if name.endswith("_") and not name.startswith("_")} - set(told)
    assert not [name for name, text in told.items() if "\n" not in text]  # a line of its own after the type
