"""Pieces of the page made of HTML: small images of samples, the gallery, the table of representers, the figures.

Everything that comes from a file (names of samples) is escaped; pictures are data URIs, so that nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.app.explorer.session import Session, View
from subspaces.estimators.explain import Explanation
from subspaces.inspection.plots.gallery import as_bytes, data_uri, profiles_of, side_by_side
from subspaces.inspection.plots.style import OKABE_ITO, map_colors, readable_on
from subspaces.inspection.plots.tree import p_text
from subspaces.metrics import SCORES
from subspaces.spectral.hierarchy import LEVEL
from subspaces.utils.types import Array, Labels

THUMB = 40
"""Most pixels of a small image's side."""


def colors_of(view: View) -> list[str]:
    """Return the colour of each cluster on the map and in the gallery."""
    return [OKABE_ITO[color] for color in map_colors(view.centres)]


class Pictures:
    """Small images of a session's samples; none where samples are no images."""

    def __init__(self, session: Session) -> None:
        shape = session.image_shape
        self.pixels = None if shape is None else _pixels(session.X if session.pixels is None else session.pixels, shape)

    @cached_property
    def thumbs(self) -> list[str]:
        """Data URI of each sample, or nothing."""
        return [] if self.pixels is None else [data_uri(image, compress_level=1) for image in self.pixels]

    def strip(self, points: Sequence[int] | Labels) -> str:
        """Return several samples side by side as one image; what is between them lets the page through."""
        assert self.pixels is not None
        images = self.pixels[np.asarray(points, dtype=np.intp)]
        colors = images if images.ndim == 4 else np.repeat(images[..., None], 3, axis=3)
        opaque = np.concatenate([colors, np.full((*colors.shape[:3], 1), 255, dtype=np.uint8)], axis=3)
        return data_uri(side_by_side(opaque, 2), compress_level=1)


def _pixels(X: Any, shape: tuple[int, ...]) -> Array:
    """Return images as bytes, larger ones averaged in square blocks down to about `THUMB` pixels."""
    values = X.toarray() if sparse.issparse(X) else X
    low, high = float(values.min()), float(values.max())
    images = values.reshape(len(values), *(shape[:2] if shape[2:] == (1,) else shape))
    step = max(1, -(-max(shape[:2]) // THUMB))
    height, width = (side // step * step for side in shape[:2])
    blocks = images[:, :height, :width].reshape(len(images), height // step, step, width // step, step, *shape[2:3])
    small = blocks.mean(axis=(2, 4))
    return as_bytes(small, low, high)


def gallery(session: Session, view: View, pictures: Pictures) -> str:
    """Return one card per cluster: number, size, and typical and doubtful members, words, or its mean profile."""
    drawn = pictures.pixels is not None
    curves = profiles_of(session.X, view.labels) if not drawn and not view.words else None
    cards = []
    for cluster, color in enumerate(colors_of(view)):
        if curves is not None:
            body = _curve(curves[cluster], float(curves.min()), float(curves.max()))
        else:
            body = _strips(session, view, pictures, cluster) if drawn else _texts(session, view, cluster)
        count = f"{view.sizes[cluster]:,}"
        head, given = f'{badge(cluster, color)}<span class="size">{count}</span>', view.name_of(cluster)
        name = "" if given == str(cluster) else f'<span class="given">{escape(given)}</span>'
        cards.append(f'<div class="card">{head}{body}{name}</div>')
    what = "most typical members first" if drawn else "mean and middle 80 % of each feature"
    if view.words and not drawn:
        what = "the words that set it apart" + (", most typical texts" if session.texts else "")
    has_doubts = any(map(len, view.doubtful)) and (drawn or session.texts is not None)
    doubts = ", then doubtful ones" if has_doubts and curves is None else ""
    kind = "gallery texts" if view.words and not drawn else "gallery"
    return f'<h2>Clusters: number, size, {what}{doubts}</h2><div class="{kind}">{"".join(cards)}</div>'


def _strips(session: Session, view: View, pictures: Pictures, cluster: int) -> str:
    """Return the most typical images of a cluster, and the doubtful ones in a frame."""
    shown = []
    for points, kind in ((view.members[cluster], "typical"), (view.doubtful[cluster], "doubtful")):
        if len(points):
            names = escape(("doubtful: " if kind == "doubtful" else "") + ", ".join(session.ids[i] for i in points))
            shown.append(f'<img class="{kind}" src="{pictures.strip(points)}" alt="{names}" title="{names}">')
    return "".join(shown)


def _texts(session: Session, view: View, cluster: int, n_shown: int = 3) -> str:
    """Return the words of a cluster; of texts also the first lines of the most typical and of the doubtful ones."""
    words = f'<span class="words">{escape(", ".join(view.words[cluster]))}</span>'
    if session.texts is None:
        return words
    unsure = view.doubtful[cluster]
    typical = [i for i in view.members[cluster] if i not in unsure][:n_shown]
    lines = [f"<li>{text_of(session, int(i))}</li>" for i in typical]
    lines += [
        f'<li class="doubtful">{text_of(session, int(i))} <i>{100 * view.confidence[i]:.0f} % sure</i></li>'
        for i in unsure
    ]
    return f"{words}<ul>{''.join(lines)}</ul>"


def text_of(session: Session, i: int) -> str:
    """Return the name of a sample, and the first line of its text where it is one."""
    name = escape(session.ids[i])
    return name if session.texts is None else f'<span class="place">{name}</span> {escape(session.first_lines[i])}'


def _curve(curves: Array, least: float, most: float) -> str:
    """Return mean and band of a cluster as SVG."""
    width, height = 180, 44
    low, mean, high = (height - 2 - (height - 4) * (curves - least) / ((most - least) or 1.0)).round(1)
    at = np.linspace(1, width - 1, len(mean)).round(1) if len(mean) > 1 else np.array([1.0, width - 1.0])
    low, mean, high = (np.broadcast_to(curve, at.shape) for curve in (low, mean, high))

    def path(x: Array, y: Array) -> str:
        return " ".join(f"{a},{b}" for a, b in zip(x.tolist(), y.tolist(), strict=True))

    band = f"{path(at, low)} {path(at[::-1], high[::-1])}"
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<polygon points="{band}" style="fill:var(--blue)" fill-opacity="0.25"/>'
        f'<polyline points="{path(at, mean)}" fill="none" style="stroke:var(--blue)" stroke-width="1.4"/></svg>'
    )


def title_of(view: View, cluster: int) -> str:
    """Return the number of a cluster, and the name that it was given."""
    name = view.name_of(cluster)
    return name if name == str(cluster) else f"{cluster}  {name}"


def badge(cluster: int, color: str) -> str:
    """Return the cluster's number on its colour."""
    return f'<b class="badge" style="background:{color};color:{readable_on(color)}">{cluster}</b>'


def representers(session: Session, view: View, found: Explanation, pictures: Pictures) -> str:
    """Return a sample, and the samples that represent it with their coefficients."""
    colors = colors_of(view)

    def picture(i: int) -> str:
        return "" if pictures.pixels is None else f'<img src="{pictures.strip([i])}" alt="">'

    rows = []
    largest = float(np.abs(found.coefficients).max(initial=0)) or 1.0
    for row in found.as_rows():
        i, label = row["point"], row["label"]
        width = 100 * abs(row["coefficient"]) / largest
        rows.append(
            f"<tr><td>{picture(i)}</td><td class='name'>{text_of(session, i)}</td>"
            f"<td class='number'>{row['coefficient']:.3f}</td>"
            f"<td class='bar'><div style='width:{width:.0f}%'></div></td><td>{badge(label, colors[label])}</td></tr>"
        )
    truth = "" if session.y is None else f", class {escape(str(session.y[found.point]))}"
    name, own = view.name_of(found.label), badge(found.label, colors[found.label])
    called = "" if name == str(found.label) else f" {escape(name)}"
    sure = f", {100 * view.confidence[found.point]:.0f} % sure"
    point = f"<b>{escape(session.ids[found.point])}</b>"
    line = f" <q>{escape(session.first_lines[found.point])}</q>" if session.texts is not None else ""
    head = f"<p class='chosen'>{picture(found.point)} {point}{line} {own}{called}{sure}{truth}</p>"
    share = f"{100 * found.own_share:.0f} % of the weight lies in its own cluster"
    by = f"{found.n_representers} points; {share}" if found.n_representers else "no other point"
    return f"{head}<p>represented by {by}</p><table class='representers'>{''.join(rows)}</table>"


def quality(session: Session, view: View, seconds: float) -> str:
    """Return the verdict on a view, which ``subspaces cluster`` gives as well, and its figures in one line."""
    figures = view.quality
    n_components = int(figures["components"])
    parts = [
        f"<b class='clusters'>{len(view.sizes)} cluster{'s' * (len(view.sizes) != 1)}</b>",
        f"separation <b class='separation'>{figures['separation']:.3f}</b>",
        f"modularity <b class='modularity'>{figures['modularity']:.3f}</b>",
        f"{n_components} component{'s' * (n_components != 1)}",
    ]
    if known := [score for score in SCORES if score.name in figures]:
        shown = ", ".join(f"{score.title} <b>{100 * figures[score.name]:.1f} %</b>" for score in known)
        parts.append(f"{shown} (classes known)")
    n, n_given = len(session.rows), session.n_given
    points = f"{n:,} points" if n == n_given else f"{n:,} of {n_given:,} points (a sample)"
    parts.append(f"<span class='time'>{points}, updated in <span class='seconds'>{seconds:.2f}</span> s</span>")
    warned = "".join(f"<div class='warning'>{escape(message)}</div>" for message in view.messages)
    said = f"<p class='verdict'>{escape(view.verdict)}</p>"
    return f"{said}<div class='quality'>{' · '.join(parts)}</div>{warned}"


def level_note(view: View) -> str:
    """Return the level that the slider of the tree shows, and how real the split is that made it."""
    if view.level is None:
        return "<p class='note level'>The clusters of the fit; move to see coarser or finer ones.</p>"
    if view.level == 1:
        return "<p class='note level'><b>Level 1</b>: all points together.</p>"
    i = view.tree.split(view.level - 1)
    one, other = sorted(view.tree.sizes[view.tree.merges[i]].tolist(), reverse=True)
    split = f"the last split makes {one:,} and {other:,} points and cuts {100 * view.tree.cut[i]:.1f} % of the edges"
    tested = f"<span class='p'>{_tested(view, i)}</span>"
    return f"<p class='note level'><b>Level {view.level}</b>: {split}; {tested}</p>"


def _tested(view: View, i: int) -> str:
    """Return how real split `i` is."""
    if not view.is_tested:
        return "testing it …"
    p = float(view.tree.p_value[i]) if i < len(view.tree.p_value) else float("nan")
    return "not tested." if np.isnan(p) else f"p {escape(p_text(p))}, {'real' if p <= LEVEL else 'may be chance'}."


def captions(view: View) -> tuple[str, str]:
    """Return captions of the graph and the map."""
    n, size = len(view.labels), len(view.cells)
    cells = "" if size == n else f"; {size} × {size} cells, each the sum of about {(n / size) ** 2:.0f} entries"
    graph = f"<h2>Affinity, points ordered by cluster</h2><p class='note'>colours on a root scale{cells}</p>"
    of_the_fit = "" if view.level is None else " of the fit"
    what = {
        "map": f"a disc per cluster{of_the_fit}, typical points in its middle; doubtful ones lie between discs",
        "pca": "principal plane of the spectral embedding",
    }[view.layout]
    return graph, f"<h2>Embedding</h2><p class='note'>{what}; hover shows a point, a click its representers</p>"
