"""What a notebook shows of a fitted estimator: scikit-learn's own picture, then a box for each stage of its fit."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import estimator_html_repr

from subspaces.representation.coefficients import PermutedFactors
from subspaces.utils.spelling import counted


class Box(NamedTuple):
    """One box: what it is about, what came out, and how long that took (None: nothing to time)."""

    title: str
    detail: str
    seconds: float | None = None


class BoxesMixin:
    """Adds the boxes to the HTML representation of a fitted estimator; an unfitted one looks as ever."""

    def _html_repr(self) -> str:
        own: str = estimator_html_repr(self)
        return own + boxes_html(self) if hasattr(self, "labels_") else own


def boxes_of(estimator: Any) -> list[Box]:
    """Return data, the stages of the fit, labels, as far as a fitted estimator has them."""
    timings = dict(getattr(estimator, "timings_", {}))
    boxes = [Box("data", _data(estimator))]
    if "selection" in timings:
        selection = estimator.selection_
        boxes.append(Box("choice", f"{counted(len(selection.trials), 'setting')} tried", timings.pop("selection")))
    for stage, seconds in timings.items():
        describe = _DETAILS.get(stage)
        boxes.append(Box(str(stage), "" if describe is None else describe(estimator), seconds))
        if stage == "graph" and "embedding" not in timings:  # the modularity cut
            boxes.append(Box("embedding", "not needed"))
    sizes = np.sort(np.bincount(estimator.labels_[estimator.labels_ >= 0]))[::-1]
    span = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[-1]:,} to {sizes[0]:,}"
    boxes.append(Box("labels", f"{counted(estimator.n_clusters_, 'cluster')} of {span} points"))
    return boxes


def boxes_html(estimator: Any) -> str:
    """Return one line of boxes; colours follow the page, so that it is read on light and dark ones."""
    boxes = boxes_of(estimator)
    total = sum(box.seconds or 0 for box in boxes)
    line = '<span style="align-self:center;opacity:.5">→</span>'.join(_html(box, total) for box in boxes)
    return (
        '<div class="subspaces-stages" style="display:flex;flex-wrap:wrap;gap:6px;margin:8px 0;font-size:12px">'
        f"{line}</div>"
    )


def _html(box: Box, total: float) -> str:
    bar = ""
    if box.seconds is not None:
        share = 100 * box.seconds / total if total else 0
        time = f"{1000 * box.seconds:.0f} ms" if box.seconds < 1 else f"{box.seconds:.1f} s"
        bar = (
            f'<div style="opacity:.7">{time}</div><div style="height:3px;background:#0072B2;width:{share:.0f}%"></div>'
        )
    return (
        '<div style="border:1px solid currentColor;border-radius:4px;padding:4px 8px;max-width:190px">'
        f"<b>{escape(box.title)}</b><div>{escape(box.detail)}</div>{bar}</div>"
    )


def _data(estimator: Any) -> str:
    n, m = len(estimator.labels_), getattr(estimator, "n_features_in_", None)
    scaling = getattr(estimator, "scaling_", getattr(estimator, "scaling", None))
    return f"{n:,} points" + (f", {m:,} features" if m else "") + (f", scaling {scaling}" if scaling else "")


def _kernel(estimator: Any) -> str:
    kernel = getattr(estimator, "kernel_", None)
    if kernel is None:
        return ""
    width = f", width {kernel.bandwidth:.3g}" if kernel.bandwidth else ""
    solver = getattr(estimator, "solver_", "")
    return f"{kernel.name}{width}" + (f" ({solver})" if solver else "")


def _coefficients(estimator: Any) -> str:
    found = getattr(estimator, "_coefficients", None)
    penalty, trace = getattr(estimator, "penalty_", None), getattr(estimator, "trace_", None)
    parts = [f"λ = {penalty:.3g}"] if penalty is not None else []
    if trace is not None:
        parts.append(f"{trace.n_iter} iterations" + ("" if trace.converged else ", not converged"))
    if isinstance(found, PermutedFactors):
        parts.append(f"rank {len(found.factors.singular_values)}")
    elif found is not None:
        parts.append(f"{found.nnz:,} kept, {found.nnz / max(found.shape[0], 1):.1f} per point")
    return ", ".join(parts) or "none: an affinity of the points"


def _graph(estimator: Any) -> str:
    n_components = estimator.n_components_
    return f"{estimator.affinity_matrix_.nnz // 2:,} edges, {n_components} component{'s' * (n_components != 1)}"


def _embedding(estimator: Any) -> str:
    values = getattr(estimator, "eigenvalues_", None)
    return "" if values is None else f"{len(values)} eigenvectors, eigenvalues up to {values[-1]:.3g}"


def _sample(estimator: Any) -> str:
    found = getattr(estimator, "landmarks_", getattr(estimator, "landmark_indices_", None))
    return "" if found is None else f"{len(found):,} landmarks"


def _cut(estimator: Any) -> str:
    return str(getattr(estimator, "assign_labels_", getattr(estimator, "assign_labels", "")))


_DETAILS = {
    "kernel": _kernel,
    "coefficients": _coefficients,
    "graph": _graph,
    "embedding": _embedding,
    "cut": _cut,
    "sample": _sample,
}
