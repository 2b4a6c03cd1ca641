"""Every method by the name the command line and the documentation know it by, listed once."""

from __future__ import annotations

from typing import Any

from subspaces.estimators import ESTIMATORS
from subspaces.estimators.akk import AKK
from subspaces.estimators.ektrr import EKTRR, SLRR, SLSR, SSSC
from subspaces.estimators.kasp import KASP
from subspaces.estimators.lsc import LSC
from subspaces.estimators.nystrom import NystromSC
from subspaces.estimators.sec import SEC
from subspaces.estimators.uspec import USPEC

SCALABLE: dict[str, type[Any]] = {
    "ektrr": EKTRR,
    "sssc": SSSC,
    "slsr": SLSR,
    "slrr": SLRR,
    "kasp": KASP,
    "nystrom": NystromSC,
    "sec": SEC,
    "akk": AKK,
    "lsc": LSC,
    "uspec": USPEC,
}
"""Methods whose cost is linear in the number of points."""

METHODS: dict[str, type[Any]] = {**ESTIMATORS, **SCALABLE}
