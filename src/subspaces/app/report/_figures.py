"""The plots of the report, each drawn twice: for light and for dark pages."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subspaces.app.report._content import Content

LARGE = 20_000
"""Points above which nothing is drawn that needs eigenvectors the fit did not compute."""

SPECTRUM = 200_000
"""Points times clusters up to which the eigenvalues beyond the clusters are computed for a picture: seconds."""

DPI = 110

INK = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor")
PAPER = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
LIGHT = {**dict.fromkeys(PAPER, "#ffffff"), **dict.fromkeys(INK, "#1c2430"), "axes.edgecolor": "#8b95a3"}
DARK = {**dict.fromkeys(PAPER, "#1b2129"), **dict.fromkeys(INK, "#e4e9f0"), "axes.edgecolor": "#77828f"}
DARK |= {"legend.facecolor": "#1b2129", "legend.edgecolor": "#77828f"}


Draw = Callable[[Any], Any]
Plot = tuple[str, str, tuple[float, float], Draw]


@dataclass(frozen=True)
class Picture:
    """A plot as two PNG files in base64."""

    title: str
    text: str
    light: str
    dark: str
    width: int
    height: int


def pictures(content: Content) -> list[Picture]:
    """Every plot that this run has something for; one that fails is left out, the page is worth more than it."""
    return drawn(_plots(content))


def drawn(plots: Sequence[Plot]) -> list[Picture]:
    """Plots as pictures, without those that fail."""
    found = []
    for title, text, size, draw in plots:
        try:
            light, width, height = _png(draw, size, LIGHT)
            dark, _, _ = _png(draw, size, DARK)
        except (ValueError, ImportError, np.linalg.LinAlgError, MemoryError) as error:
            warnings.warn(f"the plot '{title}' was left out of the report: {error}", UserWarning, stacklevel=4)
            continue
        found.append(Picture(title, text, light, dark, width, height))
    return found


def _plots(content: Content) -> list[Plot]:
    """Title, explanation, size and a function that draws into a figure."""
    from subspaces.inspection import plots

    estimator, selection = content.estimator, getattr(content.estimator, "selection_", None)
    made: list[Plot] = []

    def add(title: str, text: str, size: tuple[float, float], display: Any, rows: int = 1) -> None:
        computed: list[Any] = []  # once, for the light and the dark picture

        def draw(figure: Any) -> None:
            if computed:
                computed[0].plot(figure.subplots(rows))
            else:
                computed.append(display.from_estimator(estimator, ax=figure.subplots(rows)))

        made.append((title, text, size, draw))

    made.append(("Confidence of the labels", _CONFIDENCE, (6.4, 3.6), lambda figure: _confidence(figure, content)))
    if getattr(estimator, "affinity_matrix_", None) is not None:
        add("The graph that was cut", _GRAPH, (6.4, 6.0), plots.AffinityDisplay)
        if len(content.summary.labels) * len(content.summary.clusters) <= SPECTRUM:
            add("Spectrum", _SPECTRUM, (6.4, 4.0), plots.SpectrumDisplay)
    if selection is not None and len(selection.trials) > 1:
        height = max(3.0, 1.5 + 0.26 * len(plots.SelectionDisplay(selection).row_names))
        add("Settings tried", _SETTINGS, (6.4, height), plots.SelectionDisplay)
    if selection is not None and selection.n_clusters is not None:
        add("How many clusters", _COUNT, (6.4, 6.4), plots.NumberOfClustersDisplay, rows=2)
    if content.y is not None:
        names = content.y if content.classes is None else np.asarray(content.classes)[content.y]

        def confusion(figure: Any) -> None:
            plots.ConfusionDisplay.from_predictions(names, content.summary.labels, ax=figure.subplots())

        made.append(("Clusters and known classes", _CONFUSION, (6.4, 5.6), confusion))
    return made


_CONFIDENCE = "How many points have how clear a label. Left: toss-ups; right: certain."
_GRAPH = (
    "Points ordered by cluster, ties marked. Blocks on the diagonal are clusters; marks outside are ties that were cut."
)
_SPECTRUM = "Smallest eigenvalues of the graph's Laplacian. A step after the chosen number speaks for it."
_SETTINGS = "Score of every setting; the best is framed. The score is high where other settings find the same clusters."
_COUNT = "How well all settings agree for each number of clusters; the estimate is marked."
_CONFUSION = "Points of each class in each cluster, after the best matching."


def _confidence(figure: Any, content: Content) -> None:
    from subspaces.inspection.plots.style import main_color

    ax = figure.subplots()
    ax.hist(content.summary.confidence, bins=np.linspace(0, 1, 26), color=main_color(ax))
    ax.set(xlabel="confidence", ylabel="points", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)


def _png(draw: Draw, size: tuple[float, float], style: dict[str, Any]) -> tuple[str, int, int]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = {**style, "font.family": "DejaVu Sans", "font.size": 11, "axes.titlesize": 11}
    # no file may reach the text: names are never read as formulas
    with mpl.rc_context({**settings, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=DPI)
    width, height = (round(DPI * side) for side in size)
    return base64.b64encode(stream.getvalue()).decode(), width, height
