"""Tables of the report: key figures, parameters with their origin, quality, clusters, versions; as text for a text."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from subspaces import __version__
from subspaces.app.report._content import Content
from subspaces.engine.confidence import UNSURE
from subspaces.selection.result import TOO_FEW
from subspaces.utils.atomic import write_text

Row = tuple[str, ...]

MEANINGS = {
    "n_clusters": "number of clusters",
    "kernel": "how similar two points are",
    "bandwidth": "width of the kernel",
    "scaling": "what was done to the points first",
    "reg": "weight of the penalty on the coefficients",
    "error_weight": "weight of the error beside the penalty",
    "n_nonzero": "coefficients kept per point",
    "graph": "how coefficients become edges",
    "assign_labels": "how the graph was cut",
    "random_state": "seed of all random choices",
}
"""Parameters worth a row, with what they do."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}


def two_digits(share: float) -> str:
    """A share with two digits, never rounded up: what lies below a half is not shown as one.

    Examples
    --------
    >>> two_digits(0.499), two_digits(0.5), two_digits(0.29)
    ('0.49', '0.50', '0.29')
    """
    return f"{np.floor(100 * share + 1e-9) / 100:.2f}"


def key_figures(content: Content) -> list[Row]:
    """Value, name and remark of the figures at the top of the page."""
    summary, document = content.summary, content.document
    n = len(summary.labels)
    low, high = document.get("n_clusters_range", (0, 0))
    is_one = len(summary.clusters) == 1
    noun, several = ("cluster", "") if is_one else ("clusters", f"{low} to {high} may be right" if low < high else "")
    figures: list[Row] = [
        (f"{n:,}", content.noun, f"{content.X.shape[1]:,} {'values' if content.image_shape else 'features'} each"),
        (str(len(summary.clusters)), noun, several),
        (f"{np.median(summary.confidence):.2f}", "median confidence", "probability that a label is right"),
        (f"{int((summary.confidence < UNSURE).sum()):,}", "doubtful", f"confidence below {UNSURE}"),
        (f"{int(summary.fits_nowhere.sum()):,}", "fit nowhere", "far away or torn between clusters"),
    ]
    if "scores" in document:
        figures.append((f"{100 * document['scores']['accuracy']:.1f} %", "accuracy", "against the known classes"))
    return figures


def plain_words(content: Content) -> list[str]:
    """What a person should know before anything else, in sentences."""
    summary, document, noun = content.summary, content.document, content.noun
    n, k, one = len(summary.labels), len(summary.clusters), content.noun[:-1]
    doubtful, nowhere = int((summary.confidence < UNSURE).sum()), int(summary.fits_nowhere.sum())
    if n < TOO_FEW:
        return [f"With only {content.counted(n)} nothing can be said about groups; take what follows as a sketch."]
    if k == 1:
        found = ": nothing speaks for splitting them" if "n_clusters_range" in document else ""
        said = [f"All {n:,} {noun} are in one group{found}."]
    else:
        largest, smallest = int(summary.sizes.max()), int(summary.sizes.min())
        each = (
            f"each with {content.counted(largest)}"
            if largest == smallest
            else f"from {smallest:,} to {largest:,} {noun}"
        )
        said = [f"The {n:,} {noun} were put into {k} groups (clusters), {each}."]
        sure = float(np.median(summary.confidence))
        said.append(f"For a typical {one} the cluster is right with a probability of {100 * sure:.0f} %.")
        low, high = document.get("n_clusters_range", (0, 0))
        if low < high:
            said.append(f"The number itself was estimated: anything from {low} to {high} may be right.")
        if doubtful:
            said.append(
                f"Look first at the {content.counted(doubtful)} that {'is' if doubtful == 1 else 'are'} doubtful."
            )
        else:
            said.append(f"No {one} is doubtful.")
    if nowhere:
        said.append(
            f"{content.counted(nowhere)} {'fits' if nowhere == 1 else 'fit'} nowhere: unlike all others, or torn."
        )
    return said


def parameters(content: Content) -> list[Row]:
    """Name, value, origin and meaning of the parameters."""
    given, chosen = content.document.get("parameters", {}), content.document.get("chosen", {})
    defaults = type(content.estimator)().get_params()
    rows: list[Row] = []
    for name, meaning in MEANINGS.items():
        if name not in {**given, **chosen}:
            continue
        value = chosen.get(name, given.get(name))
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
        cut = normalized_cut(W, codes)
        rows.append(("normalised cut", f"{cut:.3f}", "share of edge weight that is cut, 0 is best"))
    selection = getattr(content.estimator, "selection_", None)
    if selection is not None:
        winner = selection.winner
        rows.append(("modularity", f"{winner.modularity:.3f}", "edges inside clusters beyond chance"))
        meaning = "adjusted Rand index with the most similar settings tried"
        rows.append(("agreement", f"{winner.agreement:.3f}", meaning))
        if np.isfinite(selection.stability):
            meaning = "the same clusters from 80 % of the graph, 1 is best"
            rows.append(("stability", f"{selection.stability:.3f}", meaning))
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
    rows: list[Row] = [("cluster", "size", "tightness", "confidence", "nearest", "fit nowhere", "most typical")]
    for row in content.summary.as_rows():
        typical = ", ".join(content.name_of(i) for i in row["exemplars"][:3])
        nearest = "" if row["nearest"] < 0 else str(row["nearest"])
        figures = (f"{row['tightness']:.2f}", f"{row['confidence']:.2f}", nearest, str(row["fits_nowhere"]))
        rows.append((str(row["cluster"]), str(row["size"]), *figures, typical))
    return rows


def versions() -> list[Row]:
    """What the run depended on."""
    rows: list[Row] = []
    for name in ("numpy", "scipy", "scikit-learn", "graspologic-native", "pillow", "matplotlib"):
        with suppress(PackageNotFoundError):
            rows.append((name, version(name)))
    head = [("subspaces", __version__), ("Python", platform.python_version())]
    return [*head, *rows, ("system", f"{platform.system()} {platform.machine()}")]


def python_lines(content: Content) -> str:
    """The fit in Python, with the settled parameters; they run as they stand where the points can be read again."""
    estimator, settled = content.estimator, dict(content.document.get("parameters", {}))
    comment = ""
    if hasattr(estimator, "estimator_"):  # the front door: it chooses again, and the same
        comment = f"  # it chose {_call(estimator.estimator_, estimator.estimator_.get_params())}"
    else:
        settled |= content.document.get("chosen", {})
    module = type(estimator).__module__
    module = "subspaces" if module.startswith("subspaces.estimators") else module
    before = f"{content.reading}\n" if content.reading else ""
    call = _call(estimator, settled)
    return (
        f"from {module} import {type(estimator).__name__}\n{before}\nmodel = {call}{comment}\n"
        "labels = model.fit_predict(X)"
    )


def _call(estimator: Any, settled: dict[str, Any]) -> str:
    """What makes an estimator with these parameters."""
    defaults = type(estimator)().get_params()
    changed = {name: value for name, value in settled.items() if value != defaults.get(name)}
    first = changed.pop("n_clusters", settled.get("n_clusters"))
    number = [] if first is None and defaults.get("n_clusters") is None else [repr(first)]
    arguments = ", ".join([*number, *(f"{name}={value!r}" for name, value in changed.items())])
    return f"{type(estimator).__name__}({arguments})"


def write_tables(path: str | PathLike[str], content: Content) -> None:
    """Write the tables to a ``.md`` or ``.tex`` file."""
    write_text(path, render_tables(content, latex=Path(path).suffix.lower() == ".tex"))


def render_tables(content: Content, *, latex: bool = False) -> str:
    """Parameters, quality, scores and clusters as Markdown or LaTeX (booktabs)."""
    tables = [
        ("Parameters", [("parameter", "value", "origin", "meaning"), *parameters(content)]),
        ("Quality", [("measure", "value", "meaning"), *quality(content)]),
    ]
    if content.y is not None:
        tables.append(("Scores against the known classes, in percent", scores(content)))
    tables.append((f"Clusters of {content.title}", clusters(content)))
    return "\n".join((latex_table if latex else markdown_table)(title, rows) for title, rows in tables)


def markdown_table(title: str, rows: Sequence[Row]) -> str:
    """A table with its title as a heading; the first row holds the names of the columns."""
    names, *body = [[markdown(cell) for cell in row] for row in rows]
    rules = ["---:" if is_number else "---" for is_number in _are_numbers(rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (names, rules, *body)]
    return "\n".join([f"## {markdown(title)}", "", *lines, ""])


def _are_numbers(rows: Sequence[Row]) -> list[bool]:
    """Whether each column holds numbers only, below its name."""
    return [len(rows) > 1 and all(map(_is_number, cells)) for _, *cells in zip(*rows, strict=True)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == ""
    return True


def markdown(text: str) -> str:
    r"""Text that no Markdown program takes for anything else.

    Examples
    --------
    >>> markdown("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    joined = " ".join(text.split())
    escaped = joined.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]|#" else c for c in escaped)


def latex_table(title: str, rows: Sequence[Row]) -> str:
    """A table for booktabs; the first row holds the names of the columns."""
    columns = "".join("r" if is_number else "l" for is_number in _are_numbers(rows))
    header, *lines = [" & ".join(map(latex, row)) + r" \\" for row in rows]
    begin = [r"\begin{table}", r"\centering", rf"\caption{{{latex(title)}}}", rf"\begin{{tabular}}{{{columns}}}"]
    end = [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join([*begin, r"\toprule", header, r"\midrule", *lines, *end])


def latex(text: str) -> str:
    r"""Text that LaTeX prints and does not run.

    Examples
    --------
    >>> print(latex(r"\input{x} 5%"))
    \textbackslash{}input\{x\} 5\%
    """
    joined = " ".join(text.split())
    return "".join(_LATEX.get(c, c) for c in joined if c.isprintable())
