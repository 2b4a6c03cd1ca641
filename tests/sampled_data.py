"""The named methods that sample, and points for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from subspaces import EKTRR, KTRR, LRR2, LSR1, SLRR, SLSR, SSC, SSSC
from subspaces.datasets import make_subspaces

PRESETS = {EKTRR: KTRR, SSSC: SSC, SLSR: LSR1, SLRR: LRR2}
on_presets = pytest.mark.parametrize("cls", PRESETS)


def three_subspaces(seed):
    return make_subspaces(3, dimension=3, ambient=15, n_samples=400, noise=0.01, random_state=seed)


def four_blobs(seed):
    centers = 20 * np.eye(4)
    return make_blobs(1200, centers=centers, random_state=seed)
