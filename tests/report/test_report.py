"""The report: what it answers, whole in one small file, and nothing in it that a file name could turn into code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from typer.main import get_command

from cli_data import told
from subspaces import EKTRR, KASP, KTRR, TRR, SubspaceClustering
from subspaces.app.cli.main import app
from subspaces.app.palette import PALETTE, colors_of
from subspaces.app.report import Content, _next, _page, _sections, _tables, render, write_report
from subspaces.engine.confidence import summarize
from subspaces.inspection.plots.style import luminance

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


def blocks(seed):
    rng = np.random.default_rng(seed)
    return np.kron(np.eye(3), rng.uniform(0.5, 1, size=(16, 4))) + 0.02 * rng.uniform(size=(48, 12))


@pytest.fixture(scope="module")
def points():
    return blocks(5)


@pytest.fixture(scope="module")
def content(points):
    return Content.from_estimator(TRR(3).fit(points), points)


@pytest.fixture(scope="module")
def hostile():
    """A run with hostile names everywhere a file could bring them."""
    X = blocks(3)
    known = {"ids": HOSTILE * 6, "y": np.repeat(HOSTILE[1:4], 16), "feature_names": (HOSTILE * 2)[:12]}
    return Content.from_estimator(TRR(3).fit(X), X, title=HOSTILE[0], **known)


@pytest.fixture(scope="module")
def page(hostile):
    return render(hostile)


@pytest.fixture
def no_plots(monkeypatch):
    """Plots take most of a report's time; tests of other things do without."""
    monkeypatch.setattr(_page, "drawn", lambda _: [])


def changed(content, **columns):
    """The same run with these columns of its summary changed: name={sample: value}."""
    new = {name: getattr(content.summary, name).copy() for name in columns}
    for name, values in columns.items():
        new[name][list(values)] = list(values.values())
    return replace(content, summary=replace(content.summary, **new))


# ---------------------------------------------------------------- safe and small


def test_nothing_is_fetched_or_run_but_our_own(page):
    elements = Elements(page)
    allowed = {"href": ("#",), "src": ("data:image/",), "srcset": ("data:image/",)}
    for tag, attributes in elements.found:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "action", "formaction", "data", "poster", "background")
            assert value is None or name not in allowed or value.startswith(allowed[name])
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


def test_names_from_files_are_text(page, hostile):
    elements = Elements(page)
    assert all(name in "".join(elements.text) for name in HOSTILE)
    data = "".join(elements.inside[1])
    assert "<" not in data
    assert json.loads(data)["id"] == list(hostile.ids)
    assert set(json.loads(data)["class"]) == set(HOSTILE[1:4])


def test_path_of_other_bytes_than_utf8(no_plots, points, tmp_path):
    """Such a path comes to Python with lone surrogates, which no page can hold."""
    title = os.fsdecode(b"caf\xe9/\xff.npy") if os.name == "posix" else "\udce9.npy"
    write_report(tmp_path / "page.html", Content.from_estimator(TRR(3).fit(points), points, title=title))
    assert "\\udce9" in "".join(Elements((tmp_path / "page.html").read_text(encoding="utf-8")).text)


@pytest.mark.parametrize("kind", ["images", "table"])
def test_ten_thousand_samples_stay_below_six_megabytes(no_plots, rng, kind, tmp_path):
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
    monkeypatch.setattr(_page, "MOST_LISTED", 100)
    monkeypatch.setattr(_sections, "GALLERY_BYTES", full // 6)
    assert len(render(content)) < full // 3


def test_written_whole_or_not_at_all(no_plots, content, tmp_path, monkeypatch):
    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_page, "gallery", broken)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "out.html", content)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- what was done


def test_page_says_what_was_done(points):
    model = SubspaceClustering(kernel="rbf", scaling=None).fit(points)
    frame = pd.DataFrame(points, columns=[f"gene {j}" for j in range(12)])
    content = Content.from_estimator(model, frame, title="genes")
    page = render(content)
    text = " ".join(" ".join(Elements(page).text).split())
    assert sum(map(len, re.findall(r"data:image/png[^\"]*", page))) < 800_000
    assert model.selection_.reason in text
    assert re.search(r"gene \d+ (high|low) \(\S+\)", text)
    for title in ("The graph that was cut", "Spectrum", "Map", "Settings tried", "How many clusters"):
        assert title in text
    names: dict[str, object] = {"X": points}
    exec(_tables.python_lines(content), names)
    np.testing.assert_array_equal(names["labels"], model.labels_)


def test_one_cluster_has_nothing_doubtful_and_the_verdict_comes_first(no_plots, points):
    single = Content.from_estimator(TRR(1).fit(points), points)
    nasty = "<script>alert(1)</script> 2 & 3"
    single.document.update(n_clusters_range=(1, 10), verdict=nasty)
    page = render(single)
    assert f'<header>\n<p class="verdict">{escape(nasty)}</p>' in page
    assert page.index('class="verdict"') < page.index("<h1>")
    assert 'id="doubtful"' not in page
    assert "1 to 10 may be right" not in page


@pytest.mark.parametrize("model", [KMeans(3, random_state=0), KASP(3), EKTRR(3, n_landmarks=40)])
def test_methods_without_a_graph_of_all_samples_have_a_report(no_plots, points, model):
    content = Content.from_estimator(model.fit(points), points)
    assert [title for title, *_ in _page.plots_of(content)] == ["Confidence of the labels"]
    page = render(content)
    assert 'id="cluster-2"' in page
    assert '#tree"' not in page


def test_cards_of_images_show_what_else_is_in_a_cluster(rng):
    """Typical images are alike; where every fourth is of another kind, that is seen, and a single stray is not."""
    kinds = rng.uniform(0, 200, size=(3, 64))
    of = np.repeat([0, 1, 2], 40)
    X = kinds[of] + rng.normal(size=(120, 64))
    X[20:30] = 0.5 * X[20:30] + 0.5 * rng.uniform(0, 200, size=64) + rng.normal(size=(10, 64))
    X[33] = 2000.0
    model = TRR(3).fit(X).with_labels(of)
    content = replace(Content.from_estimator(model, X), image_shape=(8, 8))
    view = _sections.gallery(content, _sections.Images(content))[0]
    assert {item.index for item in view.typical} <= {*range(20), *range(30, 40)} - {33}
    different = [item.index for item in view.different]
    assert len(different) == 4
    assert set(different) & set(range(20, 30))
    assert 33 not in different
    assert not set(different) & {item.index for item in view.typical}
    assert {item.index for item in view.members} == set(range(40))


def test_twenty_clusters_have_twenty_colours_that_are_seen_on_every_page(page):
    def values(color):
        return np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])

    places = colors_of(np.zeros((20, 2))).tolist()
    assert len(set(places)) == 20 == len(set(PALETTE))
    for i, color in enumerate(PALETTE):
        assert min(np.abs(values(color) - values(other)).sum() for other in PALETTE[:i] or ["#FFFFFF"]) > 0.3
        light = luminance(color) + 0.05
        assert min(1.05 / light, light / (luminance("#1b2129") + 0.05)) > 1.3, color
    assert page.rindex(".dot.c0{") > page.index(".dot {"), "else dots are grey"
    angle = np.linspace(0, 6, 30)
    many = colors_of(np.c_[np.cos(angle), np.sin(angle)])
    assert many.max() < 20
    assert (np.diff(many) != 0).all(), "neighbours differ"


def test_what_fails_is_left_out(points, monkeypatch):
    class Failing(TRR):
        @property
        def tree_(self):
            raise ValueError("no such graph")

    def broken(*_, **__):
        raise ValueError("no")

    content = Content.from_estimator(Failing(3).fit(points), points)
    monkeypatch.setattr("subspaces.inspection.plots.SpectrumDisplay.from_estimator", broken)
    with pytest.warns(UserWarning, match="'Spectrum' was left out of the report: no"):
        titles = [picture.title for picture in _page.drawn(_page.plots_of(content))]
    assert "The graph that was cut" in titles
    assert "Spectrum" not in titles
    monkeypatch.setattr(_page, "drawn", lambda _: [])
    monkeypatch.setattr(_sections, "cluster_map", broken)
    with pytest.warns(UserWarning, match="left out of the report") as caught:
        page = render(content)
    assert 'id="tree"' not in page
    assert 'id="map"' not in page
    said = {str(warning.message) for warning in caught}
    assert said >= {
        "the tree was left out of the report: no such graph",
        "the map was left out of the report: no",
    }
    monkeypatch.setattr(_sections, "LARGE", 20)
    assert _sections.tree_of(content) is None  # not even asked for


# ---------------------------------------------------------------- gallery and doubtful samples


def test_every_member_is_in_the_gallery_once_and_the_surest_find_room(content, monkeypatch):
    content = changed(content, confidence={i: 0.6 + 0.005 * i for i in range(48)})
    views = _sections.gallery(content)
    assert sorted(item.index for view in views for item in view.members) == list(range(48))
    monkeypatch.setattr(_sections, "MAX_PROFILES", 30)
    for view, few, exemplars in zip(views, _sections.gallery(content), content.summary.exemplars, strict=True):
        sure = [item.confidence for item in view.members]
        assert sure == sorted(sure, reverse=True)
        typical = exemplars[:5].tolist()
        assert [item.index for item in view.typical] == typical
        rest = [item.index for item in view.members if item.index not in typical]
        assert {item.index for item in few.members} == {*typical, *rest[:5]}
        assert (view.n_hidden, few.n_hidden) == (0, 6)


def test_images_keep_within_their_room(no_plots, monkeypatch, rng):
    X = rng.uniform(size=(60, 48))
    content = Content.from_estimator(TRR(3).fit(X), X, image_shape=(6, 8))
    webp = [a for a in Elements(render(content)).named("img") if a["src"].startswith("data:image/webp")]
    assert len(webp) >= 60
    monkeypatch.setattr(_sections, "GALLERY_BYTES", 20_000)
    shown = [item for view in _sections.gallery(content, _sections.Images(content)) for item in view.members]
    assert 0 < len(shown) < 60
    assert sum(len(item.image) for item in shown) <= 20_000
    assert "The page has no room for" in render(content)


def test_images_are_as_large_as_there_is_room_and_may_stand_beside_vectors(content, rng):
    large = replace(content, pixels=rng.uniform(size=(48, 40_000)), image_shape=(200, 200))
    assert [_sections.Images(large).fitting_side(room) for room in (10**9, 1)] == [256, 64]
    pixels = rng.uniform(size=(48, 30))
    beside = replace(content, image_shape=(5, 6), pixels=pixels)
    whole = replace(content, X=pixels, image_shape=(5, 6))
    assert _sections.Images(beside).uri(7) == _sections.Images(whole).uri(7)


def test_doubtful_samples_come_in_pairs_the_least_sure_first(content):
    some = changed(
        content,
        confidence={0: 0.3, 1: 0.499, 20: 0.1, 21: 0.45},
        second_cluster={0: 1, 1: 1, 20: 0, 21: 2},
        margin={0: -0.2, 20: 0.1},
        fits_nowhere={20: True},
    )
    found = _sections.doubtful_section(some, None)
    assert (found.n_doubtful, found.n_hidden) == (4, 0)
    (pair, together), (last, alone) = found.groups
    assert (pair, last) == ("Between clusters 0 and 1", "One at a time")
    assert [(item.index, item.second) for item in together] == [(20, 0), (0, 1), (1, 1)]
    assert [item.remark for item in together] == ["fits nowhere", "another cluster suits better", ""]
    assert [item.index for item in alone] == [21]
    assert together[0].values == ", ".join(f"{value:.4g}" for value in some.X[20, :4]) + ", …"
    assert _tables.two_digits(together[2].confidence) == "0.49"  # below a half, and shown so


def test_sure_samples_are_not_called_doubtful(content):
    found = _sections.doubtful_section(changed(content, margin={3: -0.1}, second_cluster={3: 2}), None)
    assert found.n_doubtful == 0
    assert found.sentence.startswith("No cluster shown is more probably wrong than right")
    assert "1 point is not doubtful, but nearer to another cluster" in found.sentence
    assert sum(len(items) for _, items in found.groups) == 6


# ---------------------------------------------------------------- map and table


@pytest.mark.parametrize("kind", ["embedding", "values", "sparse", "one column", "equal", "two"])
def test_map_has_a_place_for_every_sample(kind, points, content):
    X = {"one column": points[:, :1], "equal": np.ones((8, 3)), "two": points[:2]}.get(kind, points)
    X = sparse.csr_array(X) if kind == "sparse" else X
    model = KMeans(1 if kind == "equal" else 2, random_state=0).fit(X)
    run = content if kind == "embedding" else Content.from_estimator(model, X)
    found = _sections.map_view(run)
    assert found.points.shape == (X.shape[0], 2)
    assert found.points.min() == 0
    assert found.points.max() == (0 if kind == "equal" else 9999)
    assert len(set(found.colors)) == len(found.centres) == len(run.summary.clusters)


def test_sparse_samples_have_a_report(no_plots, points):
    X = sparse.csr_array(np.where(points > 0.3, points, 0))
    page = render(Content.from_estimator(KTRR(3).fit(X), X, feature_names=[f"word{j}" for j in range(12)]))
    assert "word" in page.partition('<section id="doubtful">')[2]


def test_table_has_the_names_of_files(content):
    data = _page._points(content, _sections.map_view(content), 1.0)
    assert set(data) >= {"cluster", "confidence", "second_cluster", "margin", "fits_nowhere", "x", "y"}
    assert (data["named_by"], data["id"][:3]) == ("row", ["0", "1", "2"])
    lines = replace(content, ids=[f"line {i + 2}" for i in range(48)], named_by="line")
    assert _page._points(lines, None, 1.0)["id"][0] == "2"


def test_of_too_many_samples_the_least_sure_and_an_even_part_are_listed(content):
    least = np.argsort(content.summary.confidence, kind="stable")
    listed = _page._listed(content, 20)
    assert len(listed) == 20
    assert set(least[:10].tolist()) <= set(listed.tolist())
    assert listed.max() > 40


# ---------------------------------------------------------------- tree


def test_tree_section(points):
    page = render(Content.from_estimator(KTRR(3).fit(points), points))
    section = re.search(r'<section id="tree">(.*?)</section>', page, re.DOTALL)[1]
    assert section.count("data:image/png") == 2  # light and dark
    assert re.search(r'alt="Dendrogram of 48 points from 1 to \d+ clusters. 3 clusters are shown', section)


# ---------------------------------------------------------------- what next


def steps_of(content, command):
    steps = _next.next_steps(replace(content, command=command))
    return {step.title: [shlex.split(line) for line in step.commands] for step in steps}


def test_next_commands_keep_what_was_typed(content):
    typed = "'my table.csv' --ignore kind --set header=true --set reg=1 -k3 --seed=4 --report out.html --force -q"
    words = steps_of(content, f"subspaces cluster {typed}")
    reading = ["my table.csv", "--ignore", "kind", "--set", "header=true"]
    kept = ["subspaces", "cluster", *reading, "--set", "reg=1", "-k", "3", "--seed", "4"]
    assert words["Keep the result as a table"] == [[*kept, "-o", "my table-clusters.xlsx"]]
    assert words["Label new points"][0] == [*kept, "--save", "my table.skops"]
    assert words["Label new points"][1][:4] == ["subspaces", "predict", "my table.skops", "NEW"]
    assert words["Try it with your own hands"] == [["subspaces", "explore", *reading, "-k", "3"]]
    assert "Sort the files into folders" not in words


def test_next_commands_only_where_they_make_sense(content):
    assert _next.next_steps(content) == []  # from Python
    assert steps_of(content, "subspaces cluster - -k 3") == {}
    titles = set(steps_of(content, "subspaces cluster cube.hdr --image -o map.tif -k 3"))
    assert not titles & {"Label new points", "Try it with your own hands", "Keep the result as a table"}
    folder = replace(content, files=["a/b.png"] * 48, ids=["a/b.png"] * 48, image_shape=(3, 4))
    found = steps_of(folder, "subspaces cluster photos -k 3")
    assert found["Sort the files into folders"][0][-2:] == ["--sort-into", "photos-sorted"]


def test_other_numbers_are_those_that_may_be_right(content, monkeypatch):
    monkeypatch.setattr(_next, "tree_of", lambda _: SimpleNamespace(layers=[1, 2, 3, 9]))
    assert _next.other_numbers(content) == [2, 9]
    count = SimpleNamespace(low=2, high=5)
    asked = replace(content, estimator=SimpleNamespace(selection_=SimpleNamespace(n_clusters=count)))
    assert _next.other_numbers(asked) == [2, 5], "what the page says: between 2 and 5"
    (two, nine) = steps_of(content, "subspaces cluster x.csv -k auto")["Try another number of clusters"]
    assert two == ["subspaces", "cluster", "x.csv", "-k", "2", "--report", "x-2.html"]
    assert nine[4] == "9"


def test_switches_are_those_of_the_command():
    """An option that takes no value would swallow the word behind it."""
    flags = {
        name
        for parameter in get_command(app).commands["cluster"].params
        if getattr(parameter, "is_flag", False)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }
    assert flags - {"--help"} <= _next.SWITCHES | _next.OUTPUT_SWITCHES


def test_commands_of_a_report_run(tmp_path, monkeypatch):
    """From an empty folder: those that write files do it, as they are printed (pages take too long for a test)."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(20, 3)), 9 + rng.normal(size=(20, 3))])
    np.savetxt("x y.csv", rows, delimiter=",", header="a,b,c", comments="")
    told("cluster", "x y.csv", "-k", 2, "--method", "trr", "--report", "r.html")
    section = (tmp_path / "r.html").read_text().partition('<section id="next-steps">')[2].partition("</section>")[0]
    lines = [re.sub("<[^>]+>", "", line) for line in re.findall(r"<code>(.*?)</code>", section)]
    commands = [shlex.split(line.replace("&#39;", "'")) for line in lines]
    wanted = [words for words in commands if words[1] == "cluster" and "--report" not in words]
    assert len(wanted) == 2
    for words in [*wanted, next(words for words in commands if words[1] == "predict")]:
        told(*("x y.csv" if word == "NEW" else word for word in words[1:]))
