"""Vectors of texts, the words of clusters against a slow reference, and texts from files to labels."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from io_data import refusal
from subspaces import SubspaceClustering
from subspaces.app.features import as_extractor, documents, featured, fit_extractor
from subspaces.app.features.documents import class_tfidf, cluster_words
from subspaces.app.files import load_model, read_table, save_model
from subspaces.app.files.models import Reading

TOPICS = (
    "apple pear cherry plum orchard harvest juice tree blossom fruit",
    "engine piston gearbox brake wheel motor fuel clutch road driver",
    "violin cello sonata concert tempo chord melody opera choir score",
)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    common = ["some", "people", "often", "say", "that", "things", "were", "before", "and", "nobody", "knows", "why"]
    texts = [" ".join([*rng.choice(TOPICS[c].split(), 8), *rng.choice(common, 6)]) for c in y]
    return texts, y


def test_tfidf_is_that_of_scikit_learn(corpus):
    texts = corpus[0]
    extractor, vectors = fit_extractor("tfidf", texts)
    reference = TfidfVectorizer(sublinear_tf=True, vocabulary=extractor.words.tolist()).fit_transform(texts).toarray()
    U, s, _ = np.linalg.svd(reference, full_matrices=False)
    projected = (U * s)[:, :100]
    projected /= np.linalg.norm(projected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors @ vectors.T, projected @ projected.T, atol=1e-6)
    np.testing.assert_allclose(extractor(texts[:7]), vectors[:7], atol=1e-12)
    assert not extractor(["quite unheard"]).any()


def test_words_of_clusters_are_those_of_the_definition(corpus):
    texts, y = corpus
    counts, words = documents.count_words(texts)
    found = class_tfidf(counts, y)
    bags = [
        Counter(word for text, c in zip(texts, y, strict=True) if c == k for word in text.split()) for k in range(3)
    ]
    bags = [{word: bag[word] for word in words if word in bag} for bag in bags]
    mean = sum(sum(bag.values()) for bag in bags) / 3
    for k, bag in enumerate(bags):
        for j, word in enumerate(words):
            share = bag.get(word, 0) / sum(bag.values())
            expected = share * math.log(1 + mean / sum(other.get(word, 0) for other in bags))
            assert found[k, j] == pytest.approx(expected)
    for topic, top in zip(TOPICS, cluster_words(texts, y, 5), strict=True):
        assert set(top) <= set(topic.split())


def test_front_door_takes_texts(corpus, tmp_path):
    pytest.importorskip("skops")
    texts, y = corpus
    model = SubspaceClustering(3, features="tfidf").fit(texts)
    assert adjusted_rand_score(y, model.labels_) == 1
    new = ["the pear and the plum orchard", "a clutch and a gearbox"]
    assert model.predict(new).tolist() == model.labels_[:2].tolist()
    save_model(tmp_path / "m.skops", model, Reading(100))
    assert load_model(tmp_path / "m.skops")[0].predict(new).tolist() == model.labels_[:2].tolist()


@pytest.mark.parametrize("X", ["one text", [1, 2], ["a text", None]])
def test_what_is_no_text_is_refused(X):
    with pytest.raises(ValueError, match="X must be a list of texts"):
        fit_extractor("tfidf", X)


def test_texts_without_words_are_refused():
    with pytest.raises(ValueError, match="no word of two letters"):
        fit_extractor("tfidf", ["?", "!"] * 5)
    assert fit_extractor("tfidf", ["the of and"] * 60 + ["it is"] * 60)[1].shape[0] == 120  # nothing but stop words
    with pytest.raises(ValueError, match="must be fitted"):
        as_extractor("tfidf")(["a text"])


def test_word_vectors_are_those_of_the_package(corpus):
    wordllama = pytest.importorskip("wordllama")
    from pathlib import Path

    texts = corpus[0]
    theirs = wordllama.WordLlama.load(disable_download=True, cache_dir=Path(wordllama.__file__).parent).embed(texts)
    found = fit_extractor("sentences", [*texts, ""])[1]
    assert not found[-1].any()
    np.testing.assert_allclose(found[:-1], theirs / np.linalg.norm(theirs, axis=1, keepdims=True), atol=1e-5)


def test_word_vectors_that_are_not_there(monkeypatch):
    monkeypatch.setattr("subspaces.app.features.extractor.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"subspaces\[text\]"):
        as_extractor("sentences")(["a text"])


# ---------------------------------------------------------------- files


def test_a_folder_of_texts(tmp_path, corpus):
    texts, y = corpus
    for i, (text, c) in enumerate(zip(texts, y, strict=True)):
        (tmp_path / f"topic{c}").mkdir(exist_ok=True)
        (tmp_path / f"topic{c}" / f"{i:03}.{'md' if i % 2 else 'txt'}").write_text(text)
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden.txt").write_text("not this")
    data = read_table(tmp_path, label="folder")
    assert data.X.shape == (150, 0)
    assert data.classes == ["topic0", "topic1", "topic2"]
    assert dict(data.skipped) == {"empty.txt": "is empty", "bytes.txt": "is not UTF-8 text"}
    made = featured(data, "tfidf")
    assert adjusted_rand_score(data.y, SubspaceClustering(3).fit_predict(made.X)) == 1
    assert made.texts[0] == (tmp_path / data.ids[0]).read_text()
    assert "can only be 'folder'" in refusal(tmp_path, label="kind")
    assert "of memory may be used" in refusal(tmp_path, max_bytes=1000)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
def test_a_column_of_texts(tmp_path, corpus, suffix):
    pytest.importorskip({".xlsx": "openpyxl", ".parquet": "pyarrow"}.get(suffix, "csv"))
    texts, y = corpus
    frame = pd.DataFrame({"number": range(150), "what is said": texts, "topic": [f"t{c}" for c in y]})
    path = tmp_path / f"x{suffix}"
    if suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    data = read_table(path, text="what is said", label="topic", id="number")
    assert data.texts == texts
    assert data.classes == ["t0", "t1", "t2"]
    assert [str(name) for name in data.ids[:2]] == ["0", "1"]
    assert "is not a column" in refusal(path, text="what is sad")
    assert "did you mean 'what is said'" in refusal(path, text="what is sad")
    assert "of memory may be used" in refusal(path, text="what is said", max_bytes=3000)


def test_texts_that_are_missing(tmp_path):
    (tmp_path / "x.csv").write_text("id,text\n1,one\n2,\n")
    assert "line 3, column 'text': the text is empty" in refusal(tmp_path / "x.csv", text="text")
    (tmp_path / "x.csv").write_text("id,text\n1,one\n2\n")
    assert "line 3: 1 cell instead of 2" in refusal(tmp_path / "x.csv", text="text")
    (tmp_path / "x.csv").write_text("id,text\n1,one\n")
    assert "fewer than two texts" in refusal(tmp_path / "x.csv", text="text")
    (tmp_path / "x.csv").write_text("some words;others\nthree;more\n")
    assert read_table(tmp_path / "x.csv", text="2").texts == ["others", "more"]
    np.save(tmp_path / "x.npy", np.eye(3))
    assert "text has no meaning" in refusal(tmp_path / "x.npy", text="x")
