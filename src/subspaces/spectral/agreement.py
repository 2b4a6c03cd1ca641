"""Agreement of several partitions of the same samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from subspaces.utils.types import Array, Labels


def pairwise_agreement(partitions: Sequence[Labels]) -> Array:
    """Return the adjusted Rand index between every two partitions of the same samples, shape (p, p).

    All contingency tables of one partition with the others come from one sparse product.
    """
    n, sizes = len(partitions[0]), [int(labels.max()) + 1 for labels in partitions]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([labels + offset for labels, offset in zip(partitions, offsets[:-1], strict=True)])
    rows = np.tile(np.arange(n), len(partitions))
    indicator = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, int(offsets[-1])))
    transposed = indicator.T.tocsr()
    counts = np.bincount(columns, minlength=int(offsets[-1])).astype(np.float64)
    pairs = np.add.reduceat(counts * (counts - 1) / 2, offsets[:-1])  # within each partition
    all_pairs = max(n * (n - 1) / 2, 1.0)
    agreement = np.eye(len(partitions))
    for i in range(len(partitions)):
        table = (transposed[offsets[i] : offsets[i + 1]] @ indicator).toarray().astype(np.float64)
        together = np.add.reduceat((table * (table - 1) / 2).sum(axis=0), offsets[:-1])
        expected = pairs[i] * pairs / all_pairs
        possible = (pairs[i] + pairs) / 2 - expected
        # two partitions that both put everything together (or everything apart) agree
        agreement[i] = np.divide(together - expected, possible, out=np.ones_like(possible), where=possible > 0)
    return agreement
