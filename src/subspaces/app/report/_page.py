"""The page: plots and sections in one template that needs nothing from outside, and is allowed nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from subspaces.app.palette import PALETTE
from subspaces.app.report import _tables as tables
from subspaces.app.report._content import Content, attempted
from subspaces.app.report._next import next_steps
from subspaces.app.report._sections import Images, MapView, doubtful_section, gallery, map_view, tree_section
from subspaces.engine.confidence import UNSURE
from subspaces.inspection.plots import style
from subspaces.inspection.plots.tree import TreeDisplay
from subspaces.spectral.hierarchy import ClusterTree
from subspaces.utils.atomic import write_text
from subspaces.utils.progress import phase
from subspaces.utils.types import Labels

MAX_BYTES = 5_900_000
"""Size of a page that any mail server and browser takes."""

MOST_LISTED = 12_000
"""Samples in the table and on the map: some 1.2 MB."""

SPECTRUM = 200_000
"""Samples times clusters up to which the eigenvalues beyond the clusters are computed for a plot: seconds."""

DPI = 110

MOST_COLUMNS = 30
"""Columns of the table of groups."""

COLUMNS = ("cluster", "class", "confidence", "second_cluster", "margin", "fits_nowhere")
"""Columns of the table, named as in every file."""

INK = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor")
PAPER = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
LIGHT = {**dict.fromkeys(PAPER, "#ffffff"), **dict.fromkeys(INK, "#1c2430"), "axes.edgecolor": "#8b95a3"}
DARK = {**dict.fromkeys(PAPER, "#1b2129"), **dict.fromkeys(INK, "#e4e9f0"), "axes.edgecolor": "#77828f"}
DARK |= {"legend.facecolor": "#1b2129", "legend.edgecolor": "#77828f"}

Plot = tuple[str, str, tuple[float, float], Callable[[Any], Any]]
"""Title, explanation, size in inches, and a function that draws into a figure."""


def write_report(path: str | PathLike[str], content: Content) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(content))


def render(content: Content) -> str:
    """Return the page as text.

    Whatever comes from files (names, columns, notes) is escaped by the template; the table's data travels as JSON in
    which ``<`` is escaped, and scripts put it on the page as text. The page's own policy forbids any request and any
    script or style but the two inside, which it knows by their hashes.
    """
    try:
        import jinja2
    except ImportError:
        raise ImportError("a report needs Jinja2: pip install 'subspaces[app]'.") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["two"] = tables.two_digits
    folder, names = files("subspaces.app.report") / "templates", ("report.html", "report.css", "report.js", "map.js")
    markup, sheet, *scripts = ((folder / name).read_text(encoding="utf-8") for name in names)
    colors = "".join(f"--c{i}:{color};" for i, color in enumerate(PALETTE))  # before the sheet, which changes some
    sheet = f":root{{{colors}}}{sheet}" + "".join(f".dot.c{i}{{background:var(--c{i})}}" for i in range(len(PALETTE)))
    template, script = environment.from_string(markup), "\n".join(scripts)
    now = datetime.now()
    images = Images(content) if content.image_shape is not None else None
    with phase("Placing the points on a map"):
        place = map_view(content)
    with phase("Drawing the plots"):
        tree = tree_section(content)
        drawings, plots = drawn(content.drawings), drawn(plots_of(content))
        dendrogram = [] if tree is None else drawn([_dendrogram(tree.tree)])
    fixed = {
        "content": content,
        "document": content.document,
        "style": sheet,
        "script": script,
        "policy": _policy(sheet, script),
        "figures": tables.key_figures(content),
        "columns": [content.named_by, *(name for name in COLUMNS if name != "class" or content.y is not None)],
        "told": tables.told(content),
        "compared": [] if content.groups is None else content.groups.compared(MOST_COLUMNS),
        "map": place,
        "doubtful": doubtful_section(content, images),
        "steps": next_steps(content),
        "drawings": drawings,
        "scores": tables.scores(content),
        "versions": tables.versions(),
        "python": tables.python_lines(content),
        "pictures": plots,
        "tree": tree,
        "dendrogram": dendrogram,
        "made": f"{now.day} {now:%B %Y, %H:%M}",
    }
    for share in (1.0, 0.5, 0.25, 0.1):  # names that grow when they are escaped may need more room than foreseen
        with phase("Putting the page together"):
            points = _points(content, place, share)
            shown = gallery(content, images, share)
        page = template.render(**fixed, clusters=shown, points=points, n_listed=len(points["index"])).lstrip()
        page = page.encode(errors="backslashreplace").decode()  # paths may hold bytes that are no text
        if len(page.encode()) < MAX_BYTES:
            break
    return page


def _policy(style: str, script: str) -> str:
    allowed = {"style-src": style, "script-src": script}
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in allowed.items()}
    rules = [f"{name} 'sha256-{value}'" for name, value in hashes.items()]
    return "; ".join(["default-src 'none'", "img-src data:", *rules, "base-uri 'none'", "form-action 'none'"])


def _points(content: Content, place: MapView | None, share: float) -> dict[str, Any]:
    """Return columns of the table and of the map; `share` is the part of the usual room they may use."""
    summary = content.summary
    listed = _listed(content, int(share * MOST_LISTED))
    columns: dict[str, Any] = {
        "named_by": content.named_by,
        "unsure": UNSURE,
        "index": listed.tolist(),
        "id": [content.place_of(int(i)) for i in listed],
        "cluster": summary.labels[listed].tolist(),
        "confidence": _rounded(summary.confidence[listed]),
        "second_cluster": [None if label < 0 else label for label in summary.second_cluster[listed].tolist()],
        "margin": _rounded(summary.margin[listed]),
        "fits_nowhere": summary.fits_nowhere[listed].astype(int).tolist(),
    }
    if content.y is not None:
        names = content.classes
        columns["class"] = [str(code) if names is None else names[code] for code in content.y[listed].tolist()]
    if place is not None:
        columns |= {"x": place.points[listed, 0].tolist(), "y": place.points[listed, 1].tolist()}
    return columns


def _listed(content: Content, most: int) -> Labels:
    """Return the samples that are listed: all, else the least sure and an even part of the others."""
    n = len(content.summary.labels)
    order = np.argsort(content.summary.confidence, kind="stable")
    if n <= most:
        return np.arange(n)
    rest = np.sort(order[most // 2 :])
    even = rest[np.unique(np.linspace(0, len(rest) - 1, most - most // 2).astype(int))]
    return np.sort(np.concatenate([order[: most // 2], even]))


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]


# ---------------------------------------------------------------- plots


@dataclass(frozen=True)
class Picture:
    """A plot as two PNG files in base64, for light and for dark pages."""

    title: str
    text: str
    light: str
    dark: str
    width: int
    height: int


def drawn(plots: Sequence[Plot]) -> list[Picture]:
    """Draw plots; one that fails is left out."""
    found = []
    for title, text, size, draw in plots:
        both = attempted(f"the plot '{title}'", partial(_in_both_looks, draw, size))
        if both is not None:
            light, dark = both
            found.append(Picture(title, text, light, dark, round(DPI * size[0]), round(DPI * size[1])))
    return found


def _in_both_looks(draw: Callable[[Any], Any], size: tuple[float, float]) -> list[str]:
    font = {"font.family": "DejaVu Sans", "font.size": 11, "axes.titlesize": 11}
    return [base64.b64encode(style.png(draw, size, DPI, **colors, **font)).decode() for colors in (LIGHT, DARK)]


def plots_of(content: Content) -> list[Plot]:
    """Return every plot that this run has something for."""
    from subspaces.inspection import plots

    estimator, selection = content.estimator, getattr(content.estimator, "selection_", None)
    made: list[Plot] = []

    def add(title: str, text: str, height: float, display: Any, rows: int = 1) -> None:
        computed: list[Any] = []  # once, for the light and the dark picture

        def draw(figure: Any) -> None:
            if computed:
                computed[0].plot(figure.subplots(rows))
            else:
                computed.append(display.from_estimator(estimator, ax=figure.subplots(rows)))

        made.append((title, text, (6.4, height), draw))

    def confidence(figure: Any) -> None:
        ax = figure.subplots()
        ax.hist(content.summary.confidence, bins=np.linspace(0, 1, 26), color=style.main_color(ax))
        ax.set(xlabel="confidence", ylabel="points", xlim=(0, 1))
        ax.spines[["top", "right"]].set_visible(False)

    def confusion(figure: Any) -> None:
        names: Any = content.y if content.classes is None else np.asarray(content.classes)[content.y]
        plots.ConfusionDisplay.from_predictions(names, content.summary.labels, ax=figure.subplots())

    text = "How many points have how clear a label. Left: toss-ups; right: certain."
    made.append(("Confidence of the labels", text, (6.4, 3.6), confidence))
    if getattr(estimator, "affinity_matrix_", None) is not None:
        text = (
            "Points ordered by cluster, ties marked. Blocks on the diagonal are clusters; marks outside are ties that "
        )
        add("The graph that was cut", f"{text}were cut.", 6.0, plots.AffinityDisplay)
        if len(content.summary.labels) * len(content.summary.clusters) <= SPECTRUM:
            text = "Smallest eigenvalues of the graph's Laplacian. A step after the chosen number speaks for it."
            add("Spectrum", text, 4.0, plots.SpectrumDisplay)
    if selection is not None and len(selection.trials) > 1:
        height = max(3.0, 1.5 + 0.26 * len(plots.SelectionDisplay(selection).row_names))
        text = (
            "Score of every setting; the best is framed. The score is high where other settings find the same clusters."
        )
        add("Settings tried", text, height, plots.SelectionDisplay)
    if selection is not None and selection.n_clusters is not None:
        text = "How well all settings agree for each number of clusters; the estimate is marked."
        add("How many clusters", text, 6.4, plots.NumberOfClustersDisplay, rows=2)
    if content.y is not None:
        text = "Points of each class in each cluster, after the best matching."
        made.append(("Clusters and known classes", text, (6.4, 5.6), confusion))
    return made


def _dendrogram(tree: ClusterTree) -> Plot:
    text = (
        "Read it from the top: each split makes one cluster more. Numbers below name clusters, at the left they count "
        "them."
    )
    return "The tree of clusters", text, (6.4, 5.0), lambda figure: TreeDisplay.from_tree(tree, ax=figure.subplots())
