"""Tables of the report: key figures, parameters with their origin, quality, clusters, versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from subspaces import __version__
from subspaces.report._content import Content

Row = tuple[str, ...]

MEANINGS = {
    "n_clusters": "number of clusters",
    "kernel": "how similar two points are",
    "bandwidth": "width of the kernel",
    "scaling": "what was done to the points first",
    "reg": "weight of the ridge, relative to the kernel",
    "error_weight": "weight of the error beside the rank",
    "sparsity": "weight of the locality beside the error",
    "alpha": "weight of the data beside the sparsity",
    "gamma": "weight of the data beside the sparsity",
    "n_nonzero": "coefficients kept per point",
    "graph": "how coefficients become edges",
    "partition": "how the graph was cut",
    "random_state": "seed of all random choices",
}
"""Parameters worth a row, with what they do."""

UNSURE = 0.2


def key_figures(content: Content) -> list[Row]:
    """Value, name and remark of the figures at the top of the page."""
    summary, document = content.summary, content.document
    n = len(summary.labels)
    low, high = document.get("n_clusters_range", (0, 0))
    figures: list[Row] = [
        (f"{n:,}", content.noun, f"{content.X.shape[1]:,} {'values' if content.image_shape else 'features'} each"),
        (str(len(summary.clusters)), "clusters", f"{low} to {high} fit nearly as well" if low < high else ""),
        (f"{np.median(summary.confidence):.2f}", "median confidence", "0 a toss-up, 1 certain"),
        (f"{int((summary.confidence < UNSURE).sum()):,}", "unsure", f"confidence below {UNSURE}"),
        (f"{int(summary.fits_nowhere.sum()):,}", "fit nowhere", "far away or torn between clusters"),
    ]
    if "scores" in document:
        figures.append((f"{100 * document['scores']['accuracy']:.1f} %", "accuracy", "against the known classes"))
    if document.get("seconds"):
        figures.append((f"{document['seconds']:.1f} s", "computing time", ""))
    return figures


def parameters(content: Content) -> list[Row]:
    """Name, value, origin and meaning of the parameters."""
    given, chosen = content.document.get("parameters", {}), content.document.get("chosen", {})
    defaults = type(content.estimator)().get_params()
    rows: list[Row] = []
    for name, meaning in MEANINGS.items():
        if name not in given:
            continue
        value = chosen.get(name, given[name])
        origin = "chosen" if name in chosen else "default" if given[name] == defaults.get(name) else "given"
        rows.append((name, "none" if value is None else str(value), origin, meaning))
    return rows


def quality(content: Content) -> list[Row]:
    """Name, value and meaning of what can be said without and with known classes."""
    from subspaces.selection.criteria import normalized_cut

    summary = content.summary
    rows: list[Row] = [
        ("mean confidence", f"{summary.confidence.mean():.3f}", "how clearly points belong to their cluster, 0 to 1"),
        ("mean tightness", f"{summary.tightness.mean():.3f}", "share of edge weight that stays inside a cluster"),
    ]
    W = getattr(content.estimator, "affinity_matrix_", None)
    if W is not None and W.nnz:
        codes = np.searchsorted(summary.clusters, summary.labels)
        rows.append(
            ("normalised cut", f"{normalized_cut(W, codes):.3f}", "share of edge weight that is cut, 0 is best")
        )
    selection = getattr(content.estimator, "selection_", None)
    if selection is not None:
        winner = selection.winner
        rows.append(("modularity", f"{winner.modularity:.3f}", "edges inside clusters beyond chance"))
        rows.append(
            ("agreement", f"{winner.agreement:.3f}", "adjusted Rand index with the most similar settings tried")
        )
        if np.isfinite(selection.stability):
            rows.append(
                ("stability", f"{selection.stability:.3f}", "the same clusters from 80 % of the graph, 1 is best")
            )
    return rows


def scores(content: Content) -> list[Row]:
    """Scores against known classes in percent, beside those of one label for all; the first row names them."""
    if content.y is None:
        return []
    from subspaces.metrics import CONSTANT, SCORES, score_table

    rows = score_table(content.y, {"this run": content.summary.labels}).rows
    return [
        ("", *(score.title for score in SCORES)),
        *(
            ("one label for all" if name == CONSTANT else name, *(f"{100 * value:z.1f}" for value in row.values()))
            for name, row in rows.items()
        ),
    ]


def clusters(content: Content) -> list[Row]:
    """One row per cluster, after the names of the columns."""
    header = ("cluster", "size", "tightness", "confidence", "nearest", "fit nowhere", "most typical")
    rows: list[Row] = [header]
    for row in content.summary.as_rows():
        typical = ", ".join(content.name_of(i) for i in row["exemplars"][:3])
        nearest = "" if row["nearest"] < 0 else str(row["nearest"])
        rows.append(
            (
                str(row["cluster"]),
                str(row["size"]),
                f"{row['tightness']:.2f}",
                f"{row['confidence']:.2f}",
                nearest,
                str(row["fits_nowhere"]),
                typical,
            )
        )
    return rows


def versions() -> list[Row]:
    """What the run depended on."""
    rows: list[Row] = []
    for name in ("numpy", "scipy", "scikit-learn", "graspologic-native", "pillow", "matplotlib"):
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    head = [("subspaces", __version__), ("Python", platform.python_version())]
    return [*head, *rows, ("system", f"{platform.system()} {platform.machine()}")]


def python_lines(content: Content) -> str:
    """The fit in Python, with the settled parameters."""
    estimator = content.estimator
    settled: dict[str, Any] = {**content.document.get("parameters", {}), **content.document.get("chosen", {})}
    defaults = type(estimator)().get_params()
    changed = {name: value for name, value in settled.items() if value != defaults.get(name)}
    first = changed.pop("n_clusters", settled.get("n_clusters"))
    arguments = ", ".join([repr(first), *(f"{name}={value!r}" for name, value in changed.items())])
    module = (
        "subspaces" if type(estimator).__module__.startswith("subspaces.estimators") else type(estimator).__module__
    )
    name = type(estimator).__name__
    return f"from {module} import {name}\n\nlabels = {name}({arguments}).fit_predict(X)"
