"""What a notebook shows of a fitted estimator: its verdict, scikit-learn's own picture, its stages and its tree."""

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


MANY = 20_000
"""Samples up to which a picture of a fit may compute its verdict and tree."""


class BoxesMixin:
    """Adds what was found to the HTML representation of a fitted estimator; an unfitted one looks as ever."""

    def _html_repr(self) -> str:
        own: str = estimator_html_repr(self)
        return f"{verdict_html(self)}{own}{boxes_html(self)}{tree_html(self)}" if hasattr(self, "labels_") else own


def verdict_html(estimator: Any) -> str:
    """Return the verdict as one line; of methods without one, and of very many samples, the number of groups."""
    known = getattr(estimator, "verdict_", None) if len(estimator.labels_) <= MANY else None
    return f"<p><b>{escape(known or counted(estimator.n_clusters_, 'group') + '.')}</b></p>"


def tree_html(estimator: Any) -> str:
    """Return the drawing of the tree, without its tests; nothing where there is none."""
    if len(estimator.labels_) > MANY or estimator.n_clusters_ < 3 or not hasattr(estimator, "_bare_tree"):
        return ""
    return f'<pre style="font-size:12px">{escape(str(estimator._bare_tree()))}</pre>'


def boxes_of(estimator: Any) -> list[Box]:
    """Return data, the stages of the fit, labels, as far as a fitted estimator has them."""
    timings = dict(getattr(estimator, "timings_", {}))
    n, m = len(estimator.labels_), getattr(estimator, "n_features_in_", None)
    scaling = getattr(estimator, "scaling_", getattr(estimator, "scaling", None))
    about = f"{n:,} points" + (f", {m:,} features" if m else "") + (f", scaling {scaling}" if scaling else "")
    boxes = [Box("data", about)]
    if "selection" in timings:
        selection = estimator.selection_
        boxes.append(Box("choice", f"{counted(len(selection.trials), 'setting')} tried", timings.pop("selection")))
    for stage, seconds in timings.items():
        boxes.append(Box(str(stage), _detail(stage, estimator), seconds))
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


def _detail(stage: str, estimator: Any) -> str:
    """Return what came out of a stage; nothing of a stage that is not known here."""

    def known(*names: str) -> Any:
        return next((getattr(estimator, name) for name in names if hasattr(estimator, name)), None)

    if stage == "kernel" and (kernel := known("kernel_")) is not None:
        width = f", width {kernel.bandwidth:.3g}" if kernel.bandwidth else ""
        solver = known("solver_")
        return f"{kernel.name}{width}" + (f" ({solver})" if solver else "")
    if stage == "coefficients":
        return ", ".join(_of_coefficients(known("_coefficients"), known("penalty_"), known("trace_"))) or _NONE
    if stage == "graph":
        return f"{known('affinity_matrix_').nnz // 2:,} edges, {counted(known('n_components_'), 'component')}"
    if stage == "embedding" and (values := known("eigenvalues_")) is not None:
        return f"{len(values)} eigenvectors, eigenvalues up to {values[-1]:.3g}"
    if stage == "sample" and (found := known("landmarks_", "landmark_indices_")) is not None:
        return f"{len(found):,} landmarks"
    return str(known("assign_labels_", "assign_labels") or "") if stage == "cut" else ""


_NONE = "none: an affinity of the points"


def _of_coefficients(found: Any, penalty: float | None, trace: Any) -> list[str]:
    parts = [f"λ = {penalty:.3g}"] if penalty is not None else []
    if trace is not None:
        parts.append(f"{trace.n_iter} iterations" + ("" if trace.converged else ", not converged"))
    if isinstance(found, PermutedFactors):
        parts.append(f"rank {len(found.factors.singular_values)}")
    elif found is not None:
        parts.append(f"{found.nnz:,} kept, {found.nnz / max(found.shape[0], 1):.1f} per point")
    return parts
