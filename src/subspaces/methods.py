"""Every method by the name the command line and the documentation know it by, listed once."""

from __future__ import annotations

from typing import Any

from subspaces.estimators import ESTIMATORS
from subspaces.scale.embedded import SEC
from subspaces.scale.kasp import KASP
from subspaces.scale.kernel_kmeans import AKK
from subspaces.scale.landmark import LSC
from subspaces.scale.nystrom import NystromSC
from subspaces.scale.presets import EKTRR, SLRR, SLSR, SSSC
from subspaces.scale.uspec import USPEC

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
