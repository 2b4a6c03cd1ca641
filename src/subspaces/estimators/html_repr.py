"""What a notebook shows of a fitted estimator: scikit-learn's own picture, then the journey with sizes and timings."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import estimator_html_repr


class Stage(NamedTuple):
    """One leg of the journey: what it is, what came out, and how long it took (None: nothing to time)."""

    title: str
    detail: str
    seconds: float | None = None


class JourneyMixin:
    """Adds the journey to the HTML representation of a fitted estimator; an unfitted one looks as ever."""

    def _html_repr(self) -> str:
        own: str = estimator_html_repr(self)
        return own + journey_html(self) if hasattr(self, "labels_") else own


def journey(estimator: Any) -> list[Stage]:
    """The legs of a fitted estimator, data to labels, as far as it has them."""
    timings = dict(getattr(estimator, "timings_", {}))
    stages = [Stage("data", _data(estimator))]
    if "selection" in timings:
        selection = estimator.selection_
        stages.append(Stage("choice", f"{len(selection.trials)} settings tried", timings.pop("selection")))
    for leg, seconds in timings.items():
        describe = _DETAILS.get(leg)
        stages.append(Stage(_TITLES.get(leg, str(leg)), "" if describe is None else describe(estimator), seconds))
    sizes = np.sort(np.bincount(estimator.labels_[estimator.labels_ >= 0]))[::-1]
    span = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[-1]:,} to {sizes[0]:,}"
    stages.append(Stage("labels", f"{estimator.n_clusters_} clusters of {span} points"))
    return stages


def journey_html(estimator: Any) -> str:
    """The journey as one line of boxes; colours follow the page, so that it is read on light and dark ones."""
    stages = journey(estimator)
    total = sum(stage.seconds or 0 for stage in stages)
    boxes = '<span style="align-self:center;opacity:.5">→</span>'.join(_box(stage, total) for stage in stages)
    return (
        '<div class="subspaces-journey" style="display:flex;flex-wrap:wrap;gap:6px;margin:8px 0;font-size:12px">'
        f"{boxes}</div>"
    )


def _box(stage: Stage, total: float) -> str:
    bar = ""
    if stage.seconds is not None:
        share = 100 * stage.seconds / total if total else 0
        bar = (
            f'<div style="opacity:.7">{_readable(stage.seconds)}</div>'
            f'<div style="height:3px;background:#0072B2;width:{share:.0f}%"></div>'
        )
    return (
        '<div style="border:1px solid currentColor;border-radius:4px;padding:4px 8px;max-width:190px">'
        f"<b>{escape(stage.title)}</b><div>{escape(stage.detail)}</div>{bar}</div>"
    )


def _readable(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


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


def _representation(estimator: Any) -> str:
    penalty, trace = getattr(estimator, "penalty_", None), getattr(estimator, "trace_", None)
    parts = [f"λ = {penalty:.3g}"] if penalty is not None else []
    if trace is not None:
        parts.append(f"{trace.n_iter} iterations" + ("" if trace.converged else ", not converged"))
    return ", ".join(parts) or "closed form"


def _truncation(estimator: Any) -> str:
    C = estimator.coefficients_
    return f"{C.nnz:,} coefficients, {C.nnz / max(C.shape[0], 1):.1f} per point"


def _affinity(estimator: Any) -> str:
    n_components = estimator.n_components_
    return f"{estimator.affinity_matrix_.nnz // 2:,} edges, {n_components} component{'s' * (n_components != 1)}"


def _embedding(estimator: Any) -> str:
    values = getattr(estimator, "eigenvalues_", None)
    return "not needed" if values is None else f"{len(values)} eigenvectors, eigenvalues up to {values[-1]:.3g}"


def _sample(estimator: Any) -> str:
    return f"{len(estimator.landmarks_):,} landmarks" if hasattr(estimator, "landmarks_") else ""


def _partition(estimator: Any) -> str:
    return str(getattr(estimator, "partition_", getattr(estimator, "partition", "")))


_TITLES = {"representation": "coefficients", "embed": "embedding"}
_DETAILS = {
    "kernel": _kernel,
    "representation": _representation,
    "truncation": _truncation,
    "affinity": _affinity,
    "embed": _embedding,
    "partition": _partition,
    "sample": _sample,
}
