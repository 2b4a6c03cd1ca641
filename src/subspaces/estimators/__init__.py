"""The estimators, listed once: tests, the command line and the documentation read this table."""

from __future__ import annotations

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.ktrr import KTRR, TRR
from subspaces.estimators.local import LSA, SC, SMCE, TSC
from subspaces.estimators.lrr import KLRR, LRR1, LRR2, LatLRR
from subspaces.estimators.lsr import LSR1, LSR2
from subspaces.estimators.ssc import KSSC, SSC, SSCOMP, EnSC

_ALL: tuple[type[SubspaceClusterer], ...] = (
    *(KTRR, TRR, LSR1, LSR2),
    *(SSC, KSSC, EnSC, SSCOMP),
    *(LRR1, LRR2, LatLRR, KLRR),
    *(SMCE, LSA, TSC, SC),
)

ESTIMATORS: dict[str, type[SubspaceClusterer]] = {cls.__name__.lower(): cls for cls in _ALL}
"""Every estimator by the name the command line knows it by."""
