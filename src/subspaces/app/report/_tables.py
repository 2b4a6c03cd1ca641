"""Tables and sentences of the report: key figures, what was told, scores, versions."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from sklearn.base import clone

from subspaces import __version__
from subspaces.app.report._content import Content
from subspaces.engine.confidence import UNSURE
from subspaces.utils.spelling import counted

Row = tuple[str, ...]


def two_digits(share: float) -> str:
    """Return a share with two digits, never rounded up: what lies below a half is not shown as one.

    Examples
    --------
    >>> two_digits(0.499), two_digits(0.5), two_digits(0.29)
    ('0.49', '0.50', '0.29')
    """
    return f"{np.floor(100 * share + 1e-9) / 100:.2f}"


def key_figures(content: Content) -> list[Row]:
    """Return value, name and remark of the figures at the top of the page."""
    summary, document = content.summary, content.document
    low, high = document.get("n_clusters_range", (0, 0))
    k = len(summary.clusters)
    several = f"{low} to {high} may be right" if low < high and k > 1 else ""
    figures: list[Row] = [
        (
            f"{len(summary.labels):,}",
            content.noun,
            f"{content.X.shape[1]:,} {'values' if content.image_shape else 'features'} each",
        ),
        (str(k), "cluster" if k == 1 else "clusters", several),
        (f"{np.median(summary.confidence):.2f}", "median confidence", "probability that a label is right"),
        (f"{int((summary.confidence < UNSURE).sum()):,}", "doubtful", f"confidence below {UNSURE}"),
        (f"{int(summary.fits_nowhere.sum()):,}", "fit nowhere", "far away or torn between clusters"),
    ]
    if "scores" in document:
        figures.append((f"{100 * document['scores']['accuracy']:.1f} %", "accuracy", "against the known classes"))
    return figures


def told(content: Content) -> list[str]:
    """Return what known labels changed, then a line for each class that was named; nothing where none was given."""
    known = content.document.get("told")
    if not known:
        return []
    labels, classes = (counted(known["n_known"], "label"), counted(known["n_classes"], "class", "classes"))
    said = f"You gave {labels} of {classes}."
    if "with" in known:
        groups = f"there are {counted(known['with'], 'group')} instead of {known['without']}"
        groups = f"the number of groups stays {known['with']}" if known["with"] == known["without"] else groups
        one = counted(
            known["n_moved"],
            f"of {known['n_compared']:,} {content.noun} is",
            f"of {known['n_compared']:,} {content.noun} are",
        )
        said += f" With them {groups}, and {one} in another group than without."
    lines = []
    for cluster, name in known["names"].items():
        rows = np.flatnonzero(content.summary.labels == int(cluster))
        given = int(np.asarray(content.estimator.known_)[rows].sum())
        lines.append(f"{name}: cluster {cluster}, {content.counted(len(rows))}, {given} of them labelled by you")
    rest = len(content.summary.clusters) - len(known["names"])
    more = [f"{counted(rest, 'more group')} that you did not name"] if rest else []
    return [said, *lines, *more]


def scores(content: Content) -> list[Row]:
    """Return scores against known classes in percent, beside those of one label for all; the first row names them."""
    if content.y is None:
        return []
    from subspaces.metrics import CONSTANT, SCORES, score_table

    found = score_table(content.y, {"this run": content.summary.labels}).rows
    titles = {CONSTANT: "one label for all"}
    rows = [(titles.get(name, name), *(f"{100 * v:z.1f}" for v in row.values())) for name, row in found.items()]
    return [("", *(score.title for score in SCORES)), *rows]


def versions() -> list[Row]:
    """Return name and version of what the run depended on."""
    rows: list[Row] = [("subspaces", __version__), ("Python", platform.python_version())]
    for name in ("numpy", "scipy", "scikit-learn", "graspologic-native", "pillow", "matplotlib"):
        with suppress(PackageNotFoundError):
            rows.append((name, version(name)))
    return [*rows, ("system", f"{platform.system()} {platform.machine()}")]


def python_lines(content: Content) -> str:
    """Return the fit in Python, with the settled parameters; it runs as it stands where the file can be read again."""
    estimator, comment = clone(content.estimator), ""
    if hasattr(content.estimator, "estimator_"):  # SubspaceClustering: it chooses again, and the same
        comment = f"  # it chose {' '.join(repr(content.estimator.estimator_).split())}"
    else:
        estimator.set_params(**content.document.get("chosen", {}))
    module = type(estimator).__module__
    module = "subspaces" if module.startswith("subspaces.estimators") else module
    reading = f"{content.reading}\n" if content.reading else ""
    return (
        f"from {module} import {type(estimator).__name__}\n{reading}\nmodel = {estimator!r}{comment}\n"
        f"labels = model.fit_predict(X{', y' if 'told' in content.document else ''})"
    )
