"""The words that make a cluster of texts: class-based TF-IDF, as BERTopic has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from subspaces.app.features.documents import count_words
from subspaces.utils.types import Array, Labels, Sparse

N_WORDS = 10


def class_tfidf(counts: Sparse, labels: Labels) -> Array:
    """Weight of each word for each cluster, shape (k, m): tf(t, c) · log(1 + A / f(t)).

    tf is the share of word t among the words of cluster c, f its count in all, A the mean number of words of a cluster
    (Grootendorst 2022). Clusters are those of ``np.unique(labels)``.
    """
    codes = np.unique(labels, return_inverse=True)[1]
    n, k = len(codes), int(codes.max()) + 1
    indicator = sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(k, n))
    of_cluster = (indicator @ sparse.csr_array(counts)).toarray()
    totals, frequency = of_cluster.sum(axis=1), of_cluster.sum(axis=0)
    share = of_cluster / np.maximum(totals, 1)[:, None]
    found: Array = share * np.log1p(totals.mean() / np.maximum(frequency, 1))
    return found


def cluster_words(texts: Sequence[str], labels: Labels, n_words: int = N_WORDS) -> list[list[str]]:
    """The words that set each cluster apart, strongest first, in the order of ``np.unique(labels)``.

    Examples
    --------
    >>> texts = ["red apples", "green apples", "old trains", "fast trains"]
    >>> [words[0] for words in cluster_words(texts, np.array([0, 0, 1, 1]))]
    ['apples', 'trains']
    """
    return leading_words(*count_words(texts), labels, n_words)


def leading_words(
    counts: Sparse, words: Sequence[str] | Array, labels: Labels, n_words: int = N_WORDS
) -> list[list[str]]:
    """The same from counts, shape (n, m), and the m words (or genes) that they are of."""
    weights = class_tfidf(counts, labels)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :n_words]
    return [[str(words[j]) for j in row if weights[c, j] > 0] for c, row in enumerate(order)]
