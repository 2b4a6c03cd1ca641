"""Clustering of data that lies on many (curved) low-dimensional subspaces, in scikit-learn's manner.

Here "subspace clustering" means unions of subspaces (SSC, LRR, TRR, KTRR), not axis-parallel clusters (CLIQUE, SUBCLU).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "KTRR",
    "TRR",
    "LSR1",
    "LSR2",
    "SSC",
    "KSSC",
    "EnSC",
    "SSCOMP",
    "LRR1",
    "LRR2",
    "LatLRR",
    "KLRR",
    "SMCE",
    "LSA",
    "TSC",
    "SC",
    "EKTRR",
    "SSSC",
    "SLSR",
    "SLRR",
    "SampledClusterer",
    "KASP",
    "NystromSC",
    "SEC",
    "AKK",
    "LSC",
    "USPEC",
    "explore",
    "show",
    "__version__",
]

_HOME = {
    **dict.fromkeys(("EKTRR", "SSSC", "SLSR", "SLRR"), "subspaces.estimators.ektrr"),
    "SampledClusterer": "subspaces.estimators.sampled",
    "KASP": "subspaces.estimators.kasp",
    "NystromSC": "subspaces.estimators.nystrom",
    "SEC": "subspaces.estimators.sec",
    "AKK": "subspaces.estimators.akk",
    "LSC": "subspaces.estimators.lsc",
    "USPEC": "subspaces.estimators.uspec",
    "explore": "subspaces.explorer",
    "show": "subspaces.plots",
}

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
    """Load the estimators when first asked for: ``subspaces --help`` must not wait for NumPy."""
    if name in __all__:
        return getattr(importlib.import_module(_HOME.get(name, "subspaces.estimators")), name)
    raise AttributeError(f"module 'subspaces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
