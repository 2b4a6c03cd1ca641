"""The estimators, listed once: tests, the command line and the documentation read this table."""

from __future__ import annotations

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.ktrr import KTRR, TRR

ESTIMATORS: dict[str, type[SubspaceClusterer]] = {
    "ktrr": KTRR,
    "trr": TRR,
}
"""Every estimator by the name the command line knows it by."""
