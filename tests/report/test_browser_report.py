"""The report in a real browser: clicks, sorting, no error, no request, no code from file names.

Needs Playwright (``pip install playwright``) and a Chromium on the path (Debian's ``chromium``); skipped otherwise.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from subspaces.cli.main import app

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path: apt-get install chromium")

HOSTILE = "<img src=x onerror=alert(1)>.png"
FIXED = ["--kernel", "rbf", "--reg", "1", "--n-nonzero", "5", "--scaling", "none", "--partition", "kmeans"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of pictures, one of them with a hostile name, and one of a table with hostile names everywhere."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    photos = folder / "photos"
    photos.mkdir()
    patterns = rng.uniform(0, 220, size=(3, 16, 16))
    for i in range(60):
        pixels = patterns[i % 3] * rng.uniform(0.6, 1) + rng.uniform(0, 30, size=(16, 16))
        Image.fromarray(pixels.astype(np.uint8)).save(
            photos / (HOSTILE if i == 4 else f"picture {i}.png"), format="PNG"
        )
    table = folder / "table <b>.csv"
    rows = ["name,<script>alert(3)</script>,b,c"]
    for i in range(40):
        a, b, c = rng.normal(size=3) + 6 * (i % 2)
        rows.append(f"<img src=x onerror=alert({i})>,{a},{b},{c}")
    table.write_text("\n".join(rows))
    for source, k, name, more in ((photos, 3, "photos.html", []), (table, 2, "table.html", ["--id", "name"])):
        arguments = ["cluster", str(source), "-k", str(k), *FIXED, *more, "--report", str(folder / name)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def browser():
    # as root, in a container, Chromium has no sandbox of its own
    options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_api.sync_playwright() as playwright, playwright.chromium.launch(**options) as chromium:
        yield chromium


class Watched:
    """A page, and everything it did that it should not."""

    def __init__(self, browser, path, **options):
        self.troubles = []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.troubles.append(f"console {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self._note(request.url, path.as_uri()))
        self.page.goto(path.as_uri())

    def _note(self, url, own):
        if not url.startswith(("data:", own)):
            self.troubles.append(f"request: {url}")


@pytest.fixture
def open_report(browser, reports):
    opened = []

    def open_it(name, width=1280, **options):
        opened.append(Watched(browser, reports / name, viewport={"width": width, "height": 900}, **options))
        return opened[-1].page

    yield open_it
    for watched in opened:
        watched.page.wait_for_timeout(100)
        assert watched.troubles == []
        watched.context.close()


def column(page, number):
    return page.locator(f"#table tbody tr td:nth-child({number})").all_inner_texts()


def test_click_opens_the_members(open_report):
    page = open_report("photos.html")
    card = page.locator("details.card").nth(1)
    assert not card.locator(".members li").first.is_visible()
    card.locator("summary").click()
    members = card.locator(".members li")
    assert members.count() == 20
    assert members.first.is_visible()
    loaded = "images => images.every(image => image.complete && image.naturalWidth === 16)"
    assert card.locator("img").evaluate_all(loaded)
    card.locator("summary").click()
    assert not members.first.is_visible()


def test_hostile_name_shows_as_text(open_report):
    page = open_report("photos.html")
    for summary in page.locator("details.card > summary").all():
        summary.click()
    shown = page.locator(".members .name", has_text=HOSTILE)
    assert shown.count() == 1
    assert shown.inner_text() == HOSTILE
    page.fill("#words", "onerror")
    assert column(page, 1) == [HOSTILE]
    assert page.locator("img[src=x]").count() == 0


def test_hostile_table_shows_as_text(open_report):
    page = open_report("table.html")
    assert page.locator("h1").inner_text() == "table <b>.csv"
    assert page.title() == "table <b>.csv: 2 clusters"
    assert any("<script>alert(3)</script>" in text for text in page.locator(".traits").all_inner_texts())
    assert "<img src=x onerror=alert(0)>" in column(page, 1)
    assert page.locator("svg.profile path.mean").count() >= 40


def test_sorting_filtering_and_paging(open_report):
    page = open_report("photos.html")
    assert len(column(page, 1)) == 25
    page.click("#table button[data-column=name]")
    assert column(page, 1)[1:4] == ["picture 0.png", "picture 1.png", "picture 2.png"]  # numbers in their order
    button = page.locator("#table button[data-column=confidence]")
    button.click()
    rising = [float(text) for text in column(page, 3)]
    assert rising == sorted(rising)
    button.click()
    falling = [float(text) for text in column(page, 3)]
    assert falling == sorted(falling, reverse=True)
    assert page.locator("#table th[aria-sort=descending]").inner_text().strip().startswith("confidence")
    page.click("#next")
    page.click("#next")
    assert len(column(page, 1)) == 10
    assert page.locator("#next").is_disabled()
    page.select_option("#which", "2")
    assert set(column(page, 2)) == {"2"}
    assert page.locator("#count").inner_text() == "20 of 60"
    page.fill("#words", "no such name")
    assert column(page, 1) == []
    page.fill("#words", "")
    page.check("#odd")
    assert set(column(page, 6)) <= {"yes"}


def test_link_in_the_table_opens_the_cluster(open_report):
    page = open_report("photos.html")
    link = page.locator("#table tbody td:nth-child(2) a").first
    number = link.inner_text()
    link.click()
    page.wait_for_function("number => document.getElementById('cluster-' + number).open", arg=number)


@pytest.mark.parametrize("name", ["photos.html", "table.html"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_width_scrolls_sideways(open_report, name, width):
    page = open_report(name, width=width)
    for summary in page.locator("details > summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_light_and_dark(open_report):
    background = "getComputedStyle(document.body).backgroundColor"
    source = "document.querySelector('figure img').currentSrc.length"
    light, dark = (open_report("photos.html", color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(background) != dark.evaluate(background)
    assert light.evaluate(source) != dark.evaluate(source)


def test_works_without_scripts(open_report):
    page = open_report("photos.html", java_script_enabled=False)
    page.locator("details.card summary").first.click()
    assert page.locator("details.card .members li").first.is_visible()
    assert page.locator("noscript").inner_text() != ""


def test_policy_stops_what_is_not_ours(browser, reports):
    """Were markup to slip in after all, the page's own policy would neither run nor fetch it."""
    watched = Watched(browser, reports / "photos.html")
    failures = []
    watched.page.on("requestfailed", lambda request: failures.append(request.failure))
    watched.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            const image = new Image();
            image.src = "https://example.org/x.png";
            document.body.append(script, image);
        }"""
    )
    watched.page.wait_for_timeout(200)
    assert watched.page.evaluate("window.hacked === undefined")
    assert failures == ["csp"]
    assert any("Content Security Policy" in trouble for trouble in watched.troubles)
    watched.context.close()
