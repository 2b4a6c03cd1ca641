"""The report in a real browser: clicks, sorting, no error, no request, no code from file names.

Needs Playwright (``pip install playwright``) and a Chromium on the path (Debian's ``chromium``); skipped otherwise.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from cli_data import FIXED, told, write_images

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path: apt-get install chromium")

HOSTILE = "<img src=x onerror=alert(1)>.png"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of pictures, one of them with a hostile name, and one of a table with hostile names everywhere."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    light, noise = rng.uniform(0.6, 1, size=(60, 1, 1)), rng.uniform(0, 30, size=(60, 16, 16))
    images = rng.uniform(0, 220, size=(3, 16, 16))[np.arange(60) % 3] * light + noise
    names = [HOSTILE if i == 4 else f"picture {i}.png" for i in range(60)]
    photos = write_images(folder / "photos", dict(zip(names, images, strict=True)))
    table = folder / "table <b>.csv"
    rows = ["name,<script>alert(3)</script>,b,c"]
    for i in range(40):
        a, b, c = rng.normal(size=3) + 6 * (i % 2)
        rows.append(f"<img src=x onerror=alert({i})>,{a},{b},{c}")
    table.write_text("\n".join(rows))
    for source, k, name, more in ((photos, 3, "photos.html", []), (table, 2, "table.html", ["--id", "name"])):
        told("cluster", source, "-k", k, *FIXED, *more, "--report", folder / name)
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


def wait_until(page, test, arg=None):
    """Playwright evaluates text inside the page to wait, which the page's policy forbids from the second look on."""
    for _ in range(400):
        if page.evaluate(test, arg):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"ten seconds passed without {test}")


def column(page, name):
    number = page.locator("#table thead th").evaluate_all(
        "(heads, name) => heads.findIndex(head => head.querySelector(`[data-column=${name}]`)) + 1", name
    )
    return page.locator(f"#table tbody tr td:nth-child({number})").all_inner_texts()


def test_pictures_enlarge_by_mouse_and_keys(open_report):
    page = open_report("photos.html")
    card = page.locator("article.card").first
    card.locator(".thumbs .look").first.click()
    dialog = page.locator("#look")
    assert dialog.is_visible()
    name = page.locator("#look-name").inner_text()
    assert name in card.locator(".members .name").all_text_contents()
    assert page.locator("#look-image").bounding_box()["width"] > 200
    assert "cluster 0" in page.locator("#look-facts").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#look-name").inner_text() != name
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert not card.locator(".members li").first.is_visible()
    card.locator("summary").click()
    assert card.locator(".members li").count() == 20
    card.locator(".members li[tabindex]").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator("#look-name").inner_text() == card.locator(".members .name").nth(2).inner_text()
    page.click("#look-close")
    page.locator("#table .look").first.click()
    assert page.locator("#look-name").inner_text() == column(page, "id")[0]
    page.mouse.click(3, 3)  # beside the dialog
    assert not dialog.is_visible()


def test_map_shows_what_is_under_the_pointer(open_report):
    page = open_report("photos.html")
    page.locator("#map-canvas").scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    tip = page.locator("#map-tip")
    page.focus("#map-canvas")
    page.keyboard.press("ArrowRight")
    assert tip.is_visible()
    first = tip.inner_text()
    assert "cluster 0" in first
    assert "confidence" in first
    assert tip.locator("img").evaluate("async image => { await image.decode(); return image.naturalWidth > 0; }")
    page.keyboard.press("ArrowDown")
    assert "cluster 1" in tip.inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#look-name").inner_text() in tip.inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    before = page.evaluate("document.getElementById('map-canvas').toDataURL()")
    page.click("#map-in")
    page.click("#legend .chip >> nth=0")
    assert page.locator("#legend .chip").first.get_attribute("aria-pressed") == "false"
    page.wait_for_timeout(100)
    assert page.evaluate("document.getElementById('map-canvas').toDataURL()") != before
    page.click("#map-reset")
    page.click("#legend-all")
    assert page.locator("#legend .chip[aria-pressed=true]").count() == 3


def test_commands_are_copied(open_report):
    page = open_report("photos.html", permissions=["clipboard-read", "clipboard-write"])
    block = page.locator("#next-steps .copied").first
    # the clipboard answers later than the click, and the button says so for a moment only: what it says is written down
    block.locator("button").evaluate(
        "button => { window.said = [];"
        " new MutationObserver(() => said.push(button.textContent)).observe(button, {childList: true}); }"
    )
    block.locator("button").click()
    wait_until(page, "() => said.length > 0")
    assert page.evaluate("said[0]") == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("code").inner_text()


def test_hostile_name_shows_as_text(open_report):
    page = open_report("photos.html")
    for summary in page.locator("article.card summary").all():
        summary.click()
    shown = page.locator(".members .name", has_text=HOSTILE)
    assert shown.count() == 1
    assert shown.inner_text() == HOSTILE
    page.fill("#words", "onerror")
    assert column(page, "id") == [HOSTILE]
    page.locator("#table .look").click()
    assert page.locator("#look-name").inner_text() == HOSTILE
    assert page.locator("img[src=x]").count() == 0


def test_hostile_table_shows_as_text(open_report):
    page = open_report("table.html")
    assert page.locator("h1").inner_text() == "table <b>.csv"
    assert page.title() == "table <b>.csv: 2 clusters"
    assert any("<script>alert(3)</script>" in text for text in page.locator(".traits").all_inner_texts())
    assert "<img src=x onerror=alert(0)>" in column(page, "id")
    assert page.locator("svg.profile path.mean").count() >= 40
    page.focus("#map-canvas")
    page.keyboard.press("ArrowRight")
    assert "onerror=alert" in page.locator("#map-tip").inner_text()


def test_sorting_filtering_and_paging(open_report):
    page = open_report("photos.html")
    assert len(column(page, "id")) == 25
    page.click("#table button[data-column=id]")
    assert column(page, "id")[1:4] == ["picture 0.png", "picture 1.png", "picture 2.png"]  # numbers in their order
    button = page.locator("#table button[data-column=confidence]")
    button.click()
    rising = [float(text) for text in column(page, "confidence")]
    assert rising == sorted(rising)
    button.click()
    falling = [float(text) for text in column(page, "confidence")]
    assert falling == sorted(falling, reverse=True)
    assert page.locator("#table th[aria-sort=descending]").inner_text().strip().startswith("confidence")
    page.click("#next")
    page.click("#next")
    assert len(column(page, "id")) == 10
    assert page.locator("#next").is_disabled()
    page.select_option("#which", "2")
    assert set(column(page, "cluster")) == {"2"}
    assert page.locator("#count").inner_text() == "20 of 60 shown"
    page.select_option("#which", "")
    page.select_option("#only", "nowhere")
    assert set(column(page, "fits_nowhere")) <= {"yes"}
    page.select_option("#only", "away")
    assert all("⚑" in text for text in column(page, "margin"))


@pytest.mark.parametrize("name", ["photos.html", "table.html"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_width_scrolls_sideways(open_report, name, width):
    page = open_report(name, width=width)
    for summary in page.locator("details > summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_light_and_dark(open_report):
    background = "getComputedStyle(document.body).backgroundColor"
    source = "document.querySelector('#tree img').currentSrc.length"
    light, dark = (open_report("photos.html", color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(background) != dark.evaluate(background)
    assert light.evaluate(source) != dark.evaluate(source)


def test_works_without_scripts(open_report):
    page = open_report("photos.html", java_script_enabled=False)
    page.locator("article.card summary").first.click()
    assert page.locator("article.card .members li").first.is_visible()
    assert "needs JavaScript" in page.locator("#points noscript").inner_text()


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
