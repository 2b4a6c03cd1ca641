"""Clustering of data that lies on many (curved) low-dimensional subspaces, in scikit-learn's manner.

Here "subspace clustering" means unions of subspaces (SSC, LRR, TRR, KTRR), not axis-parallel clusters (CLIQUE, SUBCLU).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from subspaces import registry

__version__ = "0.1.0"

_CLASSES = {registry.entry_of(name).class_name: name for name in registry.names(*registry.SHALLOW)}
_OTHERS = {
    "SampledClusterer": "subspaces.estimators.sampled",
    "explore": "subspaces.explorer",
    "show": "subspaces.plots",
}
__all__ = [*_CLASSES, *_OTHERS, "__version__"]

if TYPE_CHECKING:
    from subspaces.estimators.akk import AKK
    from subspaces.estimators.ektrr import EKTRR, SLRR, SLSR, SSSC
    from subspaces.estimators.kasp import KASP
    from subspaces.estimators.ktrr import KTRR, TRR
    from subspaces.estimators.local import LSA, SC, SMCE, TSC
    from subspaces.estimators.lrr import KLRR, LRR1, LRR2, LatLRR
    from subspaces.estimators.lsc import LSC
    from subspaces.estimators.lsr import LSR1, LSR2
    from subspaces.estimators.nystrom import NystromSC
    from subspaces.estimators.sampled import SampledClusterer
    from subspaces.estimators.sec import SEC
    from subspaces.estimators.ssc import KSSC, SSC, SSCOMP, EnSC
    from subspaces.estimators.uspec import USPEC
    from subspaces.explorer import explore
    from subspaces.plots import show


def __getattr__(name: str) -> object:
    """Load an estimator when it is first asked for."""
    if name in _CLASSES:
        return registry.load(_CLASSES[name])
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name]), name)
    raise AttributeError(f"module 'subspaces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
