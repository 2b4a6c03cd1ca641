"""The explorer in a real browser: slider, pictures, questions by keys, names; nothing leaves the machine."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

import numpy as np
import pytest

from subspaces.datasets import make_subspaces

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine: apt-get install chromium", allow_module_level=True)
pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")

CHANGED = """before => {
    const find = root => {
        for (const element of root.querySelectorAll('*')) {
            if (element.matches('.quality')) return element;
            const inside = element.shadowRoot && find(element.shadowRoot);
            if (inside) return inside;
        }
    };
    return find(document).innerText !== before;
}"""
"""Whether the line of figures differs; Panel keeps it in a shadow root."""

NASTY = "<img src=x onerror=alert(1)>"
N_POINTS = 300
ASKING = """
from subspaces.app.cli.main import app
from subspaces.app.explorer import Session
from subspaces.selection.hints import Question

Session.question = lambda session: Question(len(session.answers), 100, "asked whatever a search would ask")
app()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The command itself, on points that pass for small images; its address and its process."""
    X, y = make_subspaces(10, 3, 64, N_POINTS // 10, noise=0.02, random_state=0)
    file = tmp_path_factory.mktemp("explore") / "points.npz"
    np.savez(file, X=X.reshape(-1, 8, 8), y=y, name=np.array([NASTY, *(f"point {i}" for i in range(1, len(X)))]))
    command = [sys.executable, "-c", ASKING, "explore", str(file), "--label", "y", "--id", "name"]
    command += ["-k", "10", "--image-shape", "8x8", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if line.startswith("http"))
        yield address, process
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server):
    """An open page; afterwards: no error on the console, no alert, no request to anywhere else."""
    host = urlsplit(server[0]).netloc
    opened = browser.new_page(viewport={"width": 1280, "height": 1000})
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    opened.on("request", lambda request: None if _is_here(request.url, host) else problems.append(request.url))
    opened.on("websocket", lambda socket: None if _is_here(socket.url, host) else problems.append(socket.url))
    opened.goto(server[0])
    opened.wait_for_selector(".gallery .card", timeout=60_000)
    opened.wait_for_timeout(1000)
    undo = opened.get_by_role("button", name="Undo")
    while undo.is_enabled():  # the session outlives a page
        undo.click()
        opened.wait_for_timeout(1000)
    yield opened
    opened.close()
    assert problems == []


def _is_here(url, host):
    """Whether a request stays with this server; data and blob addresses are the page's own memory."""
    return url.startswith(("data:", f"blob:http://{host}/")) or urlsplit(url).netloc == host


def press(page, key):
    """Press a key on the slider and wait for the page to follow."""
    before = page.inner_text(".quality")
    page.locator(".noUi-handle").first.press(key)
    page.wait_for_function(CHANGED, arg=before, timeout=60_000)


def place_of(page, point):
    """Where a point of the map is on the screen."""
    return page.evaluate(
        """point => {
            const models = [...Bokeh.documents[0]._all_models.values()];
            const scatter = models.find(m => m.type === 'GlyphRenderer' && m.glyph.type === 'Scatter');
            const figure = models.find(m => m.type === 'Figure' && m.renderers.includes(scatter));
            const view = Bokeh.index.find_one_by_id(figure.id);
            const data = scatter.data_source.data;
            const box = view.canvas_view.el.getBoundingClientRect();
            const {x_scale, y_scale} = view.frame;
            return [box.x + x_scale.compute(data.x[point]), box.y + y_scale.compute(data.y[point])];
        }""",
        point,
    )


def test_slider_moves_the_groups_and_undo_brings_them_back(page):
    assert page.inner_text(".quality .clusters") == "10 groups"
    press(page, "ArrowRight")
    assert page.inner_text(".quality .clusters") == "11 groups"
    page.locator(".gallery .card").nth(10).wait_for(timeout=60_000)
    page.get_by_role("button", name="Undo").click()
    page.locator(".quality .clusters", has_text="10 groups").wait_for(timeout=60_000)
    page.locator(".gallery .card").nth(10).wait_for(state="hidden", timeout=60_000)


def test_a_click_enlarges_a_picture(page):
    picture = page.locator(".gallery .picture").first
    large = picture.locator(".large img")
    assert not large.is_visible()
    picture.click()
    large.wait_for(state="visible")
    page.wait_for_function("image => image.naturalWidth > 0", arg=large.element_handle())
    assert large.bounding_box()["width"] > 600
    large.click()
    large.wait_for(state="hidden")


def test_questions_are_answered_by_keys_and_clicks(page):
    page.get_by_role("button", name="Ask me").click()
    page.get_by_role("button", name="Same (1)").wait_for(timeout=120_000)
    page.get_by_text("0 answers so far").wait_for()
    page.keyboard.press("2")
    page.get_by_text("1 answer so far").wait_for(timeout=60_000)
    page.locator("select[multiple]").select_option(index=1)
    page.wait_for_timeout(1000)
    page.locator("input[type=text]").press("3")  # a name is typed: no answer
    page.wait_for_timeout(1000)
    page.get_by_role("button", name="Don't know (3)").click()
    page.get_by_text("2 answers so far").wait_for(timeout=60_000)
    for n in (1, 0):
        page.wait_for_timeout(1000)
        page.get_by_role("button", name="Undo").click()
        page.get_by_text(f"{n} answer{'s' * (n != 1)} so far").wait_for(timeout=60_000)
    page.get_by_role("button", name="Enough").click()


def test_hover_and_click_on_the_map(page):
    page.get_by_role("button", name="Advanced").click()
    page.locator("pre", has_text="subspaces cluster").wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(500)
    x, y = place_of(page, 70)
    page.mouse.move(x, y)
    page.locator(".bk-Tooltip", has_text="group").first.wait_for(timeout=10_000)
    page.mouse.click(x, y)
    page.locator("table.representers tr").first.wait_for(timeout=10_000)
    assert page.inner_text(".chosen > b >> nth=0").startswith("point ")


def test_labels_can_be_saved(page):
    with page.expect_download() as waiting:
        page.get_by_text("Save the labels (CSV)").click()
    with waiting.value.path().open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == N_POINTS
    assert len({row["cluster"] for row in rows}) == 10
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)


def test_groups_are_named_merged_and_restored(page):
    page.locator("select[multiple]").select_option(index=1)
    page.locator("input[type=text]").fill(NASTY)
    page.get_by_role("button", name="Name", exact=True).click()
    page.locator(".gallery .given", has_text=NASTY).wait_for(timeout=60_000)
    page.locator("select[multiple]").select_option(index=[0, 1])
    page.get_by_role("button", name="Merge").click()
    page.locator(".quality .clusters", has_text="9 groups").wait_for(timeout=60_000)
    page.get_by_role("button", name="Undo").click()
    page.locator(".quality .clusters", has_text="10 groups").wait_for(timeout=60_000)
    page.locator(".gallery .given", has_text=NASTY).wait_for()


def test_dark_as_the_system_or_by_the_switch(browser, server):
    ground = "() => getComputedStyle(document.querySelector('.explorer')).backgroundColor"
    opened = browser.new_page(color_scheme="dark")
    opened.goto(server[0])
    opened.wait_for_selector(".gallery .card", timeout=60_000)
    assert opened.evaluate(ground) == "rgb(27, 30, 35)"
    drawn = "() => [...Bokeh.documents[0]._all_models.values()].find(m => m.type === 'Figure').background_fill_color"
    opened.wait_for_function(f"({drawn})() === '#1b1e23'", timeout=30_000)
    opened.get_by_role("button", name="Light").click()
    opened.wait_for_function(f"({drawn})() === '#ffffff'", timeout=30_000)
    assert opened.evaluate(ground) == "rgb(255, 255, 255)"
    opened.close()


def test_narrow_page_has_no_sideways_scroll(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(1000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
