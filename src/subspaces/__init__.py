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
    "Coefficients": "subspaces.representation.coefficients",
    "Comparison": "subspaces.inspection.comparison",
    "GraphClusterer": "subspaces.estimators.graph",
    "SampledClusterer": "subspaces.estimators.sampled",
    "SubspaceClusterer": "subspaces.estimators.base",
    "SubspaceClustering": "subspaces.selection.auto",
    "cite": "subspaces.inspection.citations",
    "cluster_image": "subspaces.applications.hyperspectral",
    "compare": "subspaces.inspection.comparison",
    "explore": "subspaces.app.explorer",
    "from_dense": "subspaces.representation.coefficients",
    "from_sparse": "subspaces.representation.coefficients",
    "show": "subspaces.inspection.plots",
}
__all__ = [*_CLASSES, *_OTHERS, "__version__"]

if TYPE_CHECKING:
    from subspaces.app.explorer import explore as explore
    from subspaces.applications.hyperspectral import cluster_image as cluster_image
    from subspaces.estimators.base import SubspaceClusterer as SubspaceClusterer
    from subspaces.estimators.bdr import BDR as BDR
    from subspaces.estimators.graph import GraphClusterer as GraphClusterer
    from subspaces.estimators.ktrr import KTRR as KTRR
    from subspaces.estimators.ktrr import LSR1 as LSR1
    from subspaces.estimators.ktrr import LSR2 as LSR2
    from subspaces.estimators.ktrr import TRR as TRR
    from subspaces.estimators.large import AKK as AKK
    from subspaces.estimators.large import KASP as KASP
    from subspaces.estimators.large import LSC as LSC
    from subspaces.estimators.large import SEC as SEC
    from subspaces.estimators.large import USPEC as USPEC
    from subspaces.estimators.large import NystromSC as NystromSC
    from subspaces.estimators.local import LSA as LSA
    from subspaces.estimators.local import SC as SC
    from subspaces.estimators.local import SMCE as SMCE
    from subspaces.estimators.local import TSC as TSC
    from subspaces.estimators.lrr import KLRR as KLRR
    from subspaces.estimators.lrr import LRR1 as LRR1
    from subspaces.estimators.lrr import LRR2 as LRR2
    from subspaces.estimators.lrr import LatLRR as LatLRR
    from subspaces.estimators.sampled import EKTRR as EKTRR
    from subspaces.estimators.sampled import SLRR as SLRR
    from subspaces.estimators.sampled import SLSR as SLSR
    from subspaces.estimators.sampled import SSSC as SSSC
    from subspaces.estimators.sampled import SampledClusterer as SampledClusterer
    from subspaces.estimators.ssc import KSSC as KSSC
    from subspaces.estimators.ssc import SSC as SSC
    from subspaces.estimators.ssc import SSCOMP as SSCOMP
    from subspaces.estimators.ssc import EnSC as EnSC
    from subspaces.inspection.citations import cite as cite
    from subspaces.inspection.comparison import Comparison as Comparison
    from subspaces.inspection.comparison import compare as compare
    from subspaces.inspection.plots import show as show
    from subspaces.representation.coefficients import Coefficients as Coefficients
    from subspaces.representation.coefficients import from_dense as from_dense
    from subspaces.representation.coefficients import from_sparse as from_sparse
    from subspaces.selection.auto import SubspaceClustering as SubspaceClustering


def __getattr__(name: str) -> object:
    """Load an estimator when it is first asked for."""
    if name in _CLASSES:
        return registry.load(_CLASSES[name])
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name]), name)
    raise AttributeError(f"module 'subspaces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
