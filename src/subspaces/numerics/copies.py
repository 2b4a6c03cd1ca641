"""Rows that are equal: fingerprints that find them, and one label for all copies of a point."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.numerics.types import Array, Data, Labels


def fingerprints(X: Data) -> Array:
    """A 64-bit number per row that depends on the values only: sparse and dense rows agree.

    The mixed bits of each value times a fixed odd number per feature, summed modulo 2⁶⁴; exact integer arithmetic, so
    the number does not depend on how the rows are split into blocks. A zero has the bits 0 and adds nothing.
    """
    multipliers: Array = np.random.default_rng(0).integers(0, 2**63, X.shape[1], dtype=np.uint64) * 2 + np.uint64(1)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        terms = _bits(X.data) * multipliers[X.indices]
        sums = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    out = np.empty(X.shape[0], dtype=np.uint64)
    step = max(1, 2**20 // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        terms = _bits(X[start : start + step]) * multipliers
        out[start : start + step] = terms.sum(axis=1, dtype=np.uint64)
    return out


def _bits(values: Array) -> Array:
    """Bit patterns as uint64, mixed; 0.0 and −0.0 give 0.

    Small whole numbers differ in their highest bits only, which a multiplication modulo 2⁶⁴ would push out: the mixing
    brings these down first (the finalizer of MurmurHash3).
    """
    bits: Array = (values.astype(np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits


def one_label_per_copy(labels: Labels, prints: Array) -> Labels:
    """Labels without gaps, where points with the same fingerprint all have the one most of them had."""
    return np.unique(label_of_most_copies(labels, prints), return_inverse=True)[1].astype(np.intp)


def label_of_most_copies(labels: Labels, prints: Array) -> Labels:
    """Labels, −1 for noise among them, where points with the same fingerprint all have the one most of them had.

    Of labels with equally many votes the smallest. No name changes, so that what predicts by name stays right.
    """
    groups, group = np.unique(prints, return_inverse=True)
    if len(groups) == len(labels):
        return labels
    least, span = int(labels.min()), int(np.ptp(labels)) + 1
    pairs, votes = np.unique(group * span + (labels - least), return_counts=True)
    order = np.lexsort((-votes, pairs // span))
    first = order[np.searchsorted(pairs // span, np.arange(len(groups)))]
    return (pairs[first] % span + least)[group].astype(np.intp)
