"""Vectors of texts: leading components of TF-IDF, or the mean of trained word vectors; words that make a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from subspaces.app.features.extractor import Extractor, Shape, known_bytes
from subspaces.utils.components import N_COMPONENTS, leading_directions
from subspaces.utils.progress import Step
from subspaces.utils.types import Array, Labels, Sparse

INSTALL = 'pip install "subspaces[text]"'
PACKAGE = "wordllama==0.4.0"
FILES = {
    "weights/l2_supercat_256.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    "tokenizers/l2_supercat_tokenizer_config.json": "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
"""Files of this package with SHA-256: no other bytes are loaded, and nothing is ever downloaded."""

SHORT = 40
"""Words of the median text below which word vectors are the better choice (docs/texts.md)."""

_MANY, _FEW = 100_000, 50
_MOST_WORDS = 50_000
_COMMON = 0.5  # share of the texts from which on a word says nothing
N_WORDS = 10


def is_installed() -> bool:
    """Return True if ``features="sentences"`` can be computed here."""
    return not Sentences().missing()


def usual(texts: Sequence[str]) -> Extractor:
    """Return the extractor for texts: word vectors for short ones, where they are installed, TF-IDF for the others."""
    lengths = [len(text.split()) for text in texts]
    return Sentences() if is_installed() and float(np.median(lengths)) < SHORT else Tfidf()


@dataclass(frozen=True)
class Texts(Extractor):
    """An extractor whose items are texts."""

    kind: ClassVar[str] = "numbers of its words"

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[str]:
        """Return the texts; refuse anything else."""
        if isinstance(X, str):
            raise ValueError("X must be a list of texts; got one text.")
        found = list(X)
        for i, text in enumerate(found):
            if not isinstance(text, str):
                raise ValueError(f"X must be a list of texts; item {i} is {type(text).__name__}.")
        return found


@dataclass(frozen=True)
class Tfidf(Texts):
    """The 100 leading components of TF-IDF with 1 + log(count), as unit rows (latent semantic analysis).

    Words of two letters and more; English stop words, words of one text alone and of more than half of all texts are
    left out. What the texts decide (words, their weights, the components) is kept for new texts.
    """

    words: Array | None = field(default=None, repr=False, compare=False)
    weights: Array | None = field(default=None, repr=False, compare=False)
    directions: Array | None = field(default=None, repr=False, compare=False)

    name = "tfidf"

    def fit(self, items: Sequence[str]) -> Self:
        """Settle words, weights and components."""
        counts, words = count_words(items)
        n, frequency = counts.shape[0], np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.log((1 + n) / (1 + frequency)) + 1
        found = replace(self, words=words, weights=weights)
        return replace(found, directions=leading_directions(found._weighted(counts), N_COMPONENTS))

    def compute(self, items: Sequence[str], step: Step) -> Array:
        """Return unit rows; a text without any known word is a row of zeros."""
        if self.words is None or self.directions is None:
            raise ValueError('features="tfidf" must be fitted to texts before it can be applied to others.')
        counts = CountVectorizer(vocabulary=self.words.tolist()).fit_transform(items)
        return np.asarray(normalize(self._weighted(counts) @ self.directions))

    def _weighted(self, counts: Sparse) -> Sparse:
        assert self.weights is not None
        found = sparse.csr_array(counts, dtype=np.float64)
        found.data = (1 + np.log(found.data)) * self.weights[found.indices]
        return sparse.csr_array(normalize(found))


@dataclass(frozen=True)
class Sentences(Texts):
    """The mean of the vectors of a text's word pieces (WordLlama, 256 numbers, 16 MB); for short texts, no download.

    Its package comes with ``pip install "subspaces[text]"``. Files are read only if their bytes are the known ones: the
    weights as numbers (safetensors), the pieces as data.
    """

    kind: ClassVar[str] = "numbers of word vectors"
    packages = ("wordllama", "safetensors", "tokenizers")
    install = f'{INSTALL} (or features="tfidf")'

    name = "sentences"

    def compute(self, items: Sequence[str], step: Step) -> Array:
        """Return unit rows; an empty text is a row of zeros."""
        self.check()
        tokenizer, vectors = _wordllama()
        found = np.zeros((len(items), vectors.shape[1]), dtype=np.float32)
        for i, text in enumerate(items):
            pieces = np.minimum(tokenizer.encode(text, add_special_tokens=False).ids, len(vectors) - 1)
            if len(pieces):
                found[i] = vectors[pieces.astype(np.intp)].mean(axis=0, dtype=np.float32)
            step()
        return np.asarray(normalize(found))


@lru_cache(maxsize=1)
def _wordllama() -> tuple[Any, Array]:
    """Load tokenizer and vectors straight from the package's files: its own loader may ask the network."""
    import safetensors.numpy
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    weights, pieces = (known_bytes(folder / name, sha256, PACKAGE) for name, sha256 in FILES.items())
    (vectors,) = safetensors.numpy.load(weights).values()
    tokenizer = Tokenizer.from_str(pieces.decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, np.asarray(vectors, dtype=np.float32)


def count_words(texts: Sequence[str]) -> tuple[Sparse, Array]:
    """Return counts of words, shape (n, m), and the words; those that most or hardly any texts have are left out."""
    n = len(texts)
    least = 1 if n < _FEW else 2 if n < _MANY else 5
    for options in (
        {"stop_words": "english", "min_df": least, "max_df": _COMMON if n >= _FEW else 1.0},
        {"min_df": 1, "max_df": 1.0},
    ):
        try:
            counter = CountVectorizer(max_features=_MOST_WORDS, **options)
            counts = counter.fit_transform(texts)
            return sparse.csr_array(counts), counter.get_feature_names_out().astype(str)
        except ValueError:  # nothing is left: of texts that are all stop words, say
            continue
    raise ValueError("the texts hold no word of two letters or more; is this the right column or folder?")


# ------------------------------------------------------------------ the words that make a cluster


def class_tfidf(counts: Sparse, labels: Labels) -> Array:
    """Return the weight of each word for each cluster, shape (k, m): tf(t, c) · log(1 + A / f(t)).

    tf is the share of word t among the words of cluster c, f its count in all, A the mean number of words of a cluster
    (class-based TF-IDF of BERTopic, Grootendorst 2022). Clusters are those of ``np.unique(labels)``.
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
    """Return the words that set each cluster apart, strongest first, in the order of ``np.unique(labels)``.

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
    """Return the same from counts, shape (n, m), and the m words (or genes) that they are of."""
    weights = class_tfidf(counts, labels)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :n_words]
    return [[str(words[j]) for j in row if weights[c, j] > 0] for c, row in enumerate(order)]
