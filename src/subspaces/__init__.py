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
    **dict.fromkeys(("EKTRR", "SSSC", "SLSR", "SLRR"), "subspaces.scale.presets"),
    "SampledClusterer": "subspaces.scale.sampled",
    "KASP": "subspaces.scale.kasp",
    "NystromSC": "subspaces.scale.nystrom",
    "SEC": "subspaces.scale.embedded",
    "AKK": "subspaces.scale.kernel_kmeans",
    "LSC": "subspaces.scale.landmark",
    "USPEC": "subspaces.scale.uspec",
    "explore": "subspaces.explorer",
    "show": "subspaces.plots",
}

if TYPE_CHECKING:
    from subspaces.estimators.ktrr import KTRR, TRR
    from subspaces.estimators.local import LSA, SC, SMCE, TSC
    from subspaces.estimators.low_rank import KLRR, LRR1, LRR2, LatLRR
    from subspaces.estimators.lsr import LSR1, LSR2
    from subspaces.estimators.ssc import KSSC, SSC, SSCOMP, EnSC
    from subspaces.explorer import explore
    from subspaces.plots import show
    from subspaces.scale.embedded import SEC
    from subspaces.scale.kasp import KASP
    from subspaces.scale.kernel_kmeans import AKK
    from subspaces.scale.landmark import LSC
    from subspaces.scale.nystrom import NystromSC
    from subspaces.scale.presets import EKTRR, SLRR, SLSR, SSSC
    from subspaces.scale.sampled import SampledClusterer
    from subspaces.scale.uspec import USPEC


def __getattr__(name: str) -> object:
    """Load the estimators when first asked for: ``subspaces --help`` must not wait for NumPy."""
    if name in __all__:
        return getattr(importlib.import_module(_HOME.get(name, "subspaces.estimators")), name)
    raise AttributeError(f"module 'subspaces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
