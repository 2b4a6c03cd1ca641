"""Texts on the command line: a folder or a column in, clusters with their words out."""

import csv

import numpy as np
import pytest

from cli_data import found, told

TOPICS = ("apple pear cherry plum orchard juice", "engine piston gearbox brake wheel motor")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_CACHE", "off")
    rng = np.random.default_rng(0)
    with (tmp_path / "x.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["said", "topic"])
        for i in range(60):
            writer.writerow([" ".join(["<b>line</b>", *rng.choice(TOPICS[i % 2].split(), 9)]), i % 2])
    return tmp_path / "x.csv"


def test_a_column_is_clustered_shown_and_labelled_anew(table):
    folder = table.parent
    written = ["--report", folder / "r.html", "--save", folder / "m.skops", "-o", folder / "l.csv"]
    shown = told("cluster", table, "--text", "said", "--label", "topic", "-k", 2, "--features", "tfidf", *written)
    lines = [line for line in shown.splitlines() if line.startswith("cluster ")]
    assert len(lines) == 2
    for line in lines:
        words = line.partition(": ")[2].split(", ")
        assert len(words) == 5
        assert any(set(words) <= {*topic.split(), "line"} for topic in TOPICS)
    assert "each of 60 texts became" in shown
    page = (folder / "r.html").read_text()
    assert "&lt;b&gt;line" in page
    assert "<b>line" not in page
    assert "words are those that set it apart" in page
    card = page.partition('id="cluster-0"')[2].partition("<details>")[0]
    assert card.count("&lt;b&gt;line") == 3, "typical texts are read without a click"
    told("predict", folder / "m.skops", table, "--text", "said", "-o", folder / "again.csv")
    first, again = ((folder / name).read_text().splitlines()[1:] for name in ("l.csv", "again.csv"))
    assert [line.split(",")[1] for line in first] == [line.split(",")[1] for line in again]
    document = found("cluster", table, "--text", "said", "-k", 2, "--features", "tfidf")
    assert all(row["words"] for row in document["clusters"])
