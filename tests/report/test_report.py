"""The report: whole in one file, small, and nothing in it that a file name could turn into code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from subspaces import KTRR, TRR
from subspaces.app.report import Content, _page, _tree, render, render_tables, write_report, write_tables
from subspaces.app.report import _members as members
from subspaces.app.report._pictures import Pictures
from subspaces.app.report._tables import latex, latex_table, markdown, markdown_table
from subspaces.engine.confidence import summarize

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("PIL")

HOSTILE = [
    "<img src=x onerror=alert(1)>.png",
    "</script><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "'; alert(1); '",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- &lt; ]]>",
    "\u202egnp.exe",
    "$x^2$ \\frac",
]


class Elements(HTMLParser):
    """Every element with its attributes, and the text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.inside = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append([])

    def handle_data(self, data):
        if self.lasttag in ("script", "style") and self.inside:
            self.inside[-1].append(data)
        else:
            self.text.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(3)
    return np.kron(np.eye(3), rng.uniform(0.5, 1, size=(16, 4))) + 0.02 * rng.uniform(size=(48, 12))


@pytest.fixture(scope="module")
def content(points):
    """A run with hostile names everywhere a file could bring them."""
    names = (HOSTILE * 6)[:48]
    return Content.from_estimator(
        TRR(3).fit(points),
        points,
        title=HOSTILE[0],
        ids=names,
        y=np.repeat(HOSTILE[1:4], 16),
        feature_names=(HOSTILE * 2)[:12],
    )


@pytest.fixture(scope="module")
def page(content):
    return render(content)


@pytest.fixture
def no_plots(monkeypatch):
    """Plots take most of a report's time; tests of other things do without."""
    monkeypatch.setattr(_page, "pictures", lambda _: [])
    monkeypatch.setattr(_page, "drawn", lambda _: [])
    monkeypatch.setattr(_tree, "drawn", lambda _: [])


def test_nothing_is_fetched_or_run_but_our_own(page):
    elements = Elements(page)
    allowed = {"href": ("#",), "src": ("data:image/",), "srcset": ("data:image/",)}
    for tag, attributes in elements.found:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "action", "formaction", "data", "poster", "background")
            if name in allowed:
                assert value.startswith(allowed[name])
    assert not {tag for tag, _ in elements.found} & {"link", "iframe", "object", "embed", "base", "audio", "video"}
    assert [attributes.get("type") for attributes in elements.named("script")] == ["application/json", None]
    assert re.findall(r"https?://", page) == []


def test_policy_knows_the_script_and_the_style_by_their_hashes(page):
    (policy,) = [a["content"] for a in Elements(page).named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    for text in (style, script):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_path_of_other_bytes_than_utf8(no_plots, points, tmp_path):
    """Such a path comes to Python with lone surrogates, which no page can hold."""
    title = os.fsdecode(b"caf\xe9/\xff.npy") if os.name == "posix" else "\udce9.npy"
    content = Content.from_estimator(TRR(3).fit(points), points, title=title, ids=[title] * len(points))
    write_report(tmp_path / "page.html", content)
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "\\udce9" in "".join(Elements(written).text)


def test_names_from_files_are_text(page, content):
    elements = Elements(page)
    shown = "".join(elements.text)
    for name in HOSTILE:
        assert name in shown
    assert "49" not in re.findall(r"\{\{ (\d+) \}\}", page)
    data = json.loads("".join(elements.inside[1]))
    assert data["id"] == list(content.ids)
    assert set(data["class"]) == set(HOSTILE[1:4])
    assert "<" not in "".join(elements.inside[1])
    assert page.count("alert(1)") > 0  # they are shown, as text


def test_page_says_what_was_done(points):
    model = KTRR("auto", reg="auto").fit(points)
    frame = pd.DataFrame(points, columns=[f"gene {j}" for j in range(12)])
    page = render(Content.from_estimator(model, frame, title="genes"))
    text = " ".join(" ".join(Elements(page).text).split())
    assert sum(map(len, re.findall(r"data:image/png[^\"]*", page))) < 800_000
    assert model.selection_.reason in text
    assert "KTRR(" in text
    assert f"The 48 points were put into {model.n_clusters_} groups" in text
    assert re.search(r"gene \d+ [+-]\d\.\d sd", text)
    for title in ("The graph that was cut", "Spectrum", "Map", "Settings tried", "How many clusters"):
        assert title in text
    assert "chosen" in text


def test_every_member_is_in_the_gallery_once(page, content):
    elements = Elements(page)
    cards = [a for a in elements.named("article") if a.get("class") == "card"]
    assert [card["id"] for card in cards] == ["cluster-0", "cluster-1", "cluster-2"]
    views = members.gallery(content)
    indices = sorted(member.index for view in views for member in view.members)
    assert indices == list(range(48))
    for view in views:
        assert [m.confidence for m in view.members] == sorted((m.confidence for m in view.members), reverse=True)


def test_images_are_thumbnails_within_their_room(no_plots, monkeypatch, rng):
    X = rng.uniform(size=(60, 48))
    content = Content.from_estimator(TRR(3).fit(X), X, image_shape=(6, 8))
    elements = Elements(render(content))
    assert len([a for a in elements.named("img") if a["src"].startswith("data:image/webp")]) >= 60
    monkeypatch.setattr(members, "GALLERY_BYTES", 20_000)
    views = members.gallery(content, Pictures(content))
    shown = [member for view in views for member in view.members]
    assert 0 < len(shown) < 60
    assert sum(len(member.image) for member in shown) <= 20_000
    assert all(view.n_hidden == view.row["size"] - len(view.members) for view in views)
    assert "The page has no room for" in render(content)


@pytest.mark.parametrize("kind", ["images", "table"])
def test_ten_thousand_points_stay_below_six_megabytes(no_plots, rng, kind, tmp_path):
    labels = np.arange(10_000) % 40
    X = rng.uniform(size=(40, 48 * 3))[labels] + 0.5 * rng.uniform(size=(10_000, 144))
    model = TRR(40)
    model.labels_ = labels
    content = Content(
        model,
        X,
        summarize(model, X),
        Content.from_estimator(TRR(2).fit(X[:50]), X[:50]).document,
        ids=[f"holidays/2019/summer/with a rather long name {i:06d}.jpeg" for i in range(10_000)],
        image_shape=(12, 12) if kind == "images" else None,
    )
    write_report(tmp_path / "out.html", content)
    assert (tmp_path / "out.html").stat().st_size < 5_200_000  # and at most 0.8 MB of plots, see below
    page = (tmp_path / "out.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert all(f'id="cluster-{c}"' in page for c in range(40))


def test_names_that_grow_when_escaped_stay_below_it_too(no_plots, rng, monkeypatch):
    X = rng.uniform(size=(400, 36))
    content = Content.from_estimator(TRR(4).fit(X), X, ids=["<" * 200] * 400, image_shape=(6, 6))
    full = len(render(content))
    monkeypatch.setattr(_page, "MAX_BYTES", full // 3)
    for name, module in (("TABLE_BYTES", _page), ("GALLERY_BYTES", members)):
        monkeypatch.setattr(module, name, full // 6)
    assert len(render(content)) < full // 3


def test_methods_without_a_graph_have_a_report(points, monkeypatch):
    from sklearn.cluster import KMeans

    from subspaces import KASP

    for model in (KMeans(3, random_state=0), KASP(3)):
        content = Content.from_estimator(model.fit(points), points)
        assert [picture.title for picture in _page.pictures(content)] == ["Confidence of the labels"]
        with monkeypatch.context() as patch:
            patch.setattr(_page, "pictures", lambda _: [])
            assert "cluster-2" in render(content)


def test_failing_plot_is_left_out(content, monkeypatch):
    from matplotlib.figure import Figure

    from subspaces.app.report import _figures
    from subspaces.inspection import plots

    def broken(*_, **__):
        raise ValueError("no")

    monkeypatch.setattr(plots.SpectrumDisplay, "from_estimator", broken)
    monkeypatch.setattr(_figures, "_png", lambda draw, *_: (str(draw(Figure())), 1, 1))
    with pytest.warns(UserWarning, match="'Spectrum' was left out of the report: no"):
        titles = [picture.title for picture in _page.pictures(content)]
    assert "The graph that was cut" in titles
    assert "Spectrum" not in titles


def test_written_whole_or_not_at_all(no_plots, content, tmp_path, monkeypatch):
    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_page, "gallery", broken)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "out.html", content)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ tables for a text


def test_markdown_is_escaped_and_complete(content, tmp_path):
    write_tables(tmp_path / "t.md", content)
    text = (tmp_path / "t.md").read_text()
    assert text == render_tables(content)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Parameters",
        "## Quality",
        "## Scores against the known classes, in percent",
        f"## Clusters of {markdown(content.title)}",
    ]
    assert "<" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(re.fullmatch(r"\| .* \|", line) for line in tables)
    assert markdown("a|b\n*c* _d_ `e` [f](g)") == r"a\|b \*c\* \_d\_ \`e\` \[f\](g)"


def test_markdown_cells_do_not_split():
    text = markdown_table("t", [("a", "b"), ("x|y", "1"), ("z", "22")])
    assert text.splitlines()[2:] == ["| a | b |", "| --- | ---: |", r"| x\|y | 1 |", "| z | 22 |"]


def test_latex_is_escaped(content, tmp_path):
    write_tables(tmp_path / "t.tex", content)
    text = (tmp_path / "t.tex").read_text()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 4
    assert latex(r"\input{/etc/passwd} 50% a_b & #1 ~ ^ $x$") == (
        r"\textbackslash{}input\{/etc/passwd\} 50\% a\_b \& \#1 \textasciitilde{} \textasciicircum{} \$x\$"
    )
    rows = latex_table("t", [("a", "b"), ("x & y", "1")])
    assert r"x \& y & 1 \\" in rows
    assert r"\begin{tabular}{lr}" in rows
