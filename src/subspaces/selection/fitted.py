"""Weights that labelled data sets gave, written by ``benchmarks/number.py``."""

from __future__ import annotations

SPLIT = (-0.1404, -3.066, -0.1533, 0.1844, -2, 0.3376, -1.173)
"""Of a split: log cut, return, log of the smaller side, log of both, kept together, log of the features; constant."""

NARROW = (0.8352, -1.619, 1.646, 1.273, 0.7561, -1.608, -0.2582, -0.364, 2.15)
"""Of a number of clusters k, where points have few features: score over the best, agreement over more and over fewer
clusters, jump of the border to more and from fewer, log k, (log k)², log p of the weakest split made, log (1 − p) of
the strongest not made."""

WIDE = (1.5, -1.885, -0.149, 0.7122, 0.7477, -0.4642, -0.1186, 0.9808, 1.528)
"""The same where points have many: images, spectra, expression."""

MASS = 0.83
"""Probability of the range."""
