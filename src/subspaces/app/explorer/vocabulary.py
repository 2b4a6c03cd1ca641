"""Words that make clusters: of texts, or of counts whose columns have names (genes, purchases)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from scipy import sparse

from subspaces.app.features.documents import count_words, leading_words
from subspaces.utils.types import Array, Data, Labels, Sparse


class Words(NamedTuple):
    """Counts of words in each point, made once; every other labelling of the points asks them again."""

    counts: Sparse
    names: Sequence[str] | Array

    @classmethod
    def of(cls, texts: Sequence[str] | None, X: Data, feature_names: Sequence[str] | None) -> Self | None:
        """Those of the texts, or sparse counts with the names of their columns; None where there is neither."""
        if texts is not None:
            try:
                return cls(*count_words(texts))
            except ValueError:  # not one word
                return None
        if feature_names is None or not sparse.issparse(X) or not X.nnz or X.data.min() < 0:
            return None
        return cls(X, feature_names)

    def by_cluster(self, labels: Labels, n_words: int = 8) -> list[list[str]]:
        """The words that set each cluster apart."""
        return leading_words(self.counts, self.names, labels, n_words)
