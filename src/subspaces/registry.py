"""Every method, listed once: the package's names, the command line, tests and documentation read this table.

Nothing is imported here before a method is asked for: ``subspaces --help`` must not wait for NumPy, nor anything else
for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A method: its name on the command line, and where its class is."""

    name: str
    class_name: str
    module: str
    kind: str  #: "graph" cuts a graph between all samples, "large" costs O(n), "deep" learns codes
    needs: str | None = None  #: the extra of the package it needs (``pip install subspaces[needs]``)


METHODS = (
    Entry("ktrr", "KTRR", "subspaces.estimators.ktrr", "graph"),
    Entry("trr", "TRR", "subspaces.estimators.ktrr", "graph"),
    Entry("lsr1", "LSR1", "subspaces.estimators.ktrr", "graph"),
    Entry("lsr2", "LSR2", "subspaces.estimators.ktrr", "graph"),
    Entry("ssc", "SSC", "subspaces.estimators.ssc", "graph"),
    Entry("kssc", "KSSC", "subspaces.estimators.ssc", "graph"),
    Entry("ensc", "EnSC", "subspaces.estimators.ssc", "graph"),
    Entry("sscomp", "SSCOMP", "subspaces.estimators.ssc", "graph"),
    Entry("lrr1", "LRR1", "subspaces.estimators.lrr", "graph"),
    Entry("lrr2", "LRR2", "subspaces.estimators.lrr", "graph"),
    Entry("latlrr", "LatLRR", "subspaces.estimators.lrr", "graph"),
    Entry("klrr", "KLRR", "subspaces.estimators.lrr", "graph"),
    Entry("bdr", "BDR", "subspaces.estimators.bdr", "graph"),
    Entry("smce", "SMCE", "subspaces.estimators.local", "graph"),
    Entry("lsa", "LSA", "subspaces.estimators.local", "graph"),
    Entry("tsc", "TSC", "subspaces.estimators.local", "graph"),
    Entry("sc", "SC", "subspaces.estimators.local", "graph"),
    Entry("ektrr", "EKTRR", "subspaces.estimators.sampled", "large"),
    Entry("sssc", "SSSC", "subspaces.estimators.sampled", "large"),
    Entry("slsr", "SLSR", "subspaces.estimators.sampled", "large"),
    Entry("slrr", "SLRR", "subspaces.estimators.sampled", "large"),
    Entry("kasp", "KASP", "subspaces.estimators.large", "large"),
    Entry("nystrom", "NystromSC", "subspaces.estimators.large", "large"),
    Entry("sec", "SEC", "subspaces.estimators.large", "large"),
    Entry("akk", "AKK", "subspaces.estimators.large", "large"),
    Entry("lsc", "LSC", "subspaces.estimators.large", "large"),
    Entry("uspec", "USPEC", "subspaces.estimators.large", "large"),
    Entry("dscnet", "DSCNet", "subspaces.deep.self_expressive", "deep", "deep"),
    Entry("dasc", "DASC", "subspaces.deep.dasc", "deep", "deep"),
    Entry("structae", "StructAE", "subspaces.deep.encoded", "deep", "deep"),
    Entry("aessc", "AESSC", "subspaces.deep.encoded", "deep", "deep"),
    Entry("ktrrnet", "KTRRNet", "subspaces.deep.self_expressive", "deep", "deep"),
    Entry("aektrr", "AEKTRR", "subspaces.deep.encoded", "deep", "deep"),
)
"""The methods, in the order of the paper."""

SHALLOW = ("graph", "large")
"""Kinds that need nothing but the package itself: what its top level and the command line offer."""

_BY_NAME = {entry.name: entry for entry in METHODS}
_LIBRARIES = {"deep": ("PyTorch", "torch")}


def names(*kinds: str) -> tuple[str, ...]:
    """Return names of the methods of these kinds, or of all."""
    return tuple(entry.name for entry in METHODS if not kinds or entry.kind in kinds)


def entry_of(name: str) -> Entry:
    """Return what is known of a method without importing it."""
    if name not in _BY_NAME:
        raise KeyError(f"{name!r} is no method; there are {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]


def load(name: str) -> Any:
    """Return the class of a method, with the way out where what it needs is missing."""
    entry = entry_of(name)
    if entry.needs is not None:
        title, library = _LIBRARIES[entry.needs]
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise ImportError(
                f"{entry.module.rpartition('.')[0]}.{entry.class_name} needs {title}, which cannot be imported here "
                f"({error}). Install it with: pip install subspaces[{entry.needs}]"
            ) from error
    return getattr(importlib.import_module(entry.module), entry.class_name)
