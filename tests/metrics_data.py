"""Labellings and tables for the tests of the scores."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from subspaces.metrics.tables import Contingency

KEYS = ["accuracy", "nmi", "ari", "f_score", "precision", "recall", "purity"]
AVERAGES = ["max", "arithmetic", "geometric", "min"]

# Reproducible and independent of the speed of the machine; the tests hold for any seed
properties = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TRUE = [0, 0, 0, 1, 1, 1]
PRED = [0, 0, 1, 1, 2, 2]


@st.composite
def labellings(draw, max_size=25, max_labels=5):
    n = draw(st.integers(1, max_size))
    labels = st.lists(st.integers(0, max_labels - 1), min_size=n, max_size=n)
    return draw(labels), draw(labels)


def random_labels(n, n_classes, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n), rng.integers(0, n_clusters, n)


def as_table(counts):
    counts = np.asarray(counts)
    return Contingency(counts, np.arange(counts.shape[0]), np.arange(counts.shape[1]))
