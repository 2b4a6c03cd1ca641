"""A cluster model for BERTopic: every document has a topic and a probability, new ones too get a topic."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from subspaces import KTRR, SubspaceClustering

bertopic = pytest.importorskip("bertopic")

WORDS = ("star planet orbit moon comet telescope galaxy sun", "bread flour oven dough yeast crust salt bake")
WORDS += ("goal match team league coach player ball score", "court judge law trial jury verdict appeal crime")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def documents() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[i % 4].split(), 12)) for i in range(160)]


@pytest.fixture(scope="module")
def vectors(documents: list[str]) -> Any:
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(12, random_state=0)).fit_transform(documents)


@pytest.fixture(scope="module", params=["nothing set", "number given"])
def fitted(request: Any, documents: list[str], vectors: Any) -> Any:
    clusters = SubspaceClustering() if request.param == "nothing set" else KTRR(4, assign_labels="modularity")
    model = bertopic.BERTopic(hdbscan_model=clusters, umap_model=PCA(8, random_state=0), embedding_model=None)
    model.fit(documents, vectors)
    return model


def test_every_document_has_a_topic_and_a_probability(fitted: Any, documents: list[str], vectors: Any) -> None:
    assert set(fitted.topics_) == {0, 1, 2, 3}
    assert fitted.probabilities_.shape == (160,)
    assert ((fitted.probabilities_ >= 0) & (fitted.probabilities_ <= 1)).all()
    assert "Probability" in fitted.get_document_info(documents)
    for i in range(4):
        assert len({fitted.topics_[j] for j in range(i, 160, 4)}) == 1
        assert {word for word, _ in fitted.get_topic(fitted.topics_[i])} & set(WORDS[i].split())


def test_new_documents(fitted: Any, documents: list[str], vectors: Any) -> None:
    topics, _ = fitted.transform(documents[:20], vectors[:20] + 1e-3)
    assert list(topics) == fitted.topics_[:20]


def test_topics_are_merged_and_arranged(fitted: Any, documents: list[str]) -> None:
    assert set(fitted.hierarchical_topics(documents).Topics.map(len)) >= {4}
    fewer = copy.deepcopy(fitted)
    fewer.reduce_topics(documents, nr_topics=3)
    assert len(set(fewer.topics_)) == 3
    fewer.merge_topics(documents, [0, 1])
    assert len(set(fewer.topics_)) == 2
    names = fewer.topic_mapper_.get_mappings()
    assert [names[label] for label in fewer.hdbscan_model.labels_] == fewer.topics_
    assert fitted.approximate_distribution(documents[:5])[0].shape == (5, 4)


@pytest.mark.parametrize("form", ["safetensors", "pickle"])
def test_saved(form: str, fitted: Any, documents: list[str], vectors: Any, tmp_path: Any) -> None:
    fitted.save(str(tmp_path / "model"), serialization=form, save_ctfidf=form == "safetensors")
    back = bertopic.BERTopic.load(str(tmp_path / "model"))
    assert back.topics_ == fitted.topics_
    assert list(back.transform(documents[:9], vectors[:9])[0]) == fitted.topics_[:9]
