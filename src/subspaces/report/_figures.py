"""The plots of the report, each drawn twice: for light and for dark pages."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subspaces.report._content import Content

LARGE = 20_000
"""Points above which nothing is drawn that needs eigenvectors the fit did not compute."""

DPI = 110

LIGHT = {
    "figure.facecolor": "#ffffff",
    "axes.facecolor": "#ffffff",
    "savefig.facecolor": "#ffffff",
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor"), "#1c2430"),
    "axes.edgecolor": "#8b95a3",
}
DARK = {
    "figure.facecolor": "#1b2129",
    "axes.facecolor": "#1b2129",
    "savefig.facecolor": "#1b2129",
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor"), "#e4e9f0"),
    "axes.edgecolor": "#77828f",
    "legend.facecolor": "#1b2129",
    "legend.edgecolor": "#77828f",
}


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
    found = []
    for title, text, size, draw in _plots(content):
        try:
            light, width, height = _png(draw, size, LIGHT)
            dark, _, _ = _png(draw, size, DARK)
        except (ValueError, ImportError, np.linalg.LinAlgError, MemoryError) as error:
            warnings.warn(f"the plot '{title}' was left out of the report: {error}", UserWarning, stacklevel=3)
            continue
        found.append(Picture(title, text, light, dark, width, height))
    return found


Draw = Callable[[Any], None]
Plot = tuple[str, str, tuple[float, float], Draw]


def _plots(content: Content) -> list[Plot]:
    """Title, explanation, size and a function that draws into a figure."""
    from subspaces import plots

    estimator, summary = content.estimator, content.summary
    made: list[Plot] = [
        (
            "Confidence of the labels",
            "How many points have how clear a label. Left: toss-ups; right: certain.",
            (6.4, 3.6),
            lambda figure: _draw_confidence(figure.subplots(), summary.confidence),
        )
    ]
    fits = len(summary.labels) <= LARGE
    if getattr(estimator, "affinity_matrix_", None) is not None:
        made.append(_in_axes("The graph that was cut", _GRAPH, (6.4, 6.0), plots.AffinityDisplay, estimator))
        if fits or getattr(estimator, "eigenvalues_", None) is not None:
            made.append(_in_axes("Spectrum", _SPECTRUM, (6.4, 4.0), plots.SpectrumDisplay, estimator))
    if hasattr(type(estimator), "embedding_") and (fits or getattr(estimator, "_embedding", None) is not None):
        made.append(_in_axes("Map of the points", _MAP, (6.4, 5.4), plots.EmbeddingDisplay, estimator))
    selection = getattr(estimator, "selection_", None)
    if selection is not None and len(selection.trials) > 1:
        n_rows = len(plots.SelectionDisplay(selection).row_names)
        size = (6.4, max(3.0, 1.5 + 0.26 * n_rows))
        made.append(_in_axes("Settings tried", _SETTINGS, size, plots.SelectionDisplay, estimator))
    if selection is not None and selection.n_clusters is not None:
        made.append(("How many clusters", _COUNT, (6.4, 6.4), lambda figure: _draw_count(figure, estimator)))
    if content.y is not None:
        made.append(("Clusters and known classes", _CONFUSION, (6.4, 5.6), lambda figure: _draw_truth(figure, content)))
    return made


_GRAPH = (
    "Points ordered by cluster, ties marked. Blocks on the diagonal are clusters; marks outside are ties that were cut."
)
_SPECTRUM = "Smallest eigenvalues of the graph's Laplacian. A step after the chosen number speaks for it."
_MAP = "The points in two dimensions, as near to each other as the graph says; numbers name clusters."
_SETTINGS = "Score of every setting; the best is framed. The score is high where other settings find the same clusters."
_COUNT = "How well all settings agree for each number of clusters; the estimate is marked."
_CONFUSION = "Points of each class in each cluster, after the best matching."


def _in_axes(title: str, text: str, size: tuple[float, float], display: Any, estimator: Any) -> Plot:
    return title, text, size, lambda figure: display.from_estimator(estimator, ax=figure.subplots())


def _draw_count(figure: Any, estimator: Any) -> None:
    from subspaces import plots

    plots.NumberOfClustersDisplay.from_estimator(estimator, ax=figure.subplots(2, 1))


def _draw_truth(figure: Any, content: Content) -> None:
    from subspaces import plots

    assert content.y is not None
    names = content.y if content.classes is None else np.asarray(content.classes)[content.y]
    plots.ConfusionDisplay.from_predictions(names, content.summary.labels, ax=figure.subplots())


def _draw_confidence(ax: Any, confidence: Any) -> None:
    from subspaces.plots.style import main_color

    ax.hist(confidence, bins=np.linspace(0, 1, 26), color=main_color(ax))
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
