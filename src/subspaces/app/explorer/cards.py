"""Pieces of the page made of HTML: the verdict, a card for each group, the two sides of a question, a sample.

Everything that comes from a file or from a person (names, columns, texts) is escaped.
"""

from __future__ import annotations

from html import escape

import numpy as np

from subspaces.app.explorer.pictures import Pictures
from subspaces.app.explorer.session import CLEAR, Session, View
from subspaces.app.groups import STANDS_OUT, Groups, short
from subspaces.app.palette import PALETTE
from subspaces.estimators.explain import Explanation
from subspaces.inspection.plots.style import readable_on
from subspaces.metrics import SCORES, clustering_scores
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

N_TRAITS, MOST_ROWS, MOST_GROUPS, LONGEST = 5, 200, 12, 4000  # of a group; of the table of means; letters of a text


def color_of(cluster: int) -> str:
    """Return the colour of a group; the numbers tell more than 20 groups apart, and stripes every second 20."""
    return PALETTE[cluster % len(PALETTE)]


def badge(cluster: int) -> str:
    """Return the number of a group on its colour."""
    color, stripes = color_of(cluster), " striped" * (cluster // len(PALETTE) % 2)
    return f'<b class="badge{stripes}" style="background-color:{color};color:{readable_on(color)}">{cluster}</b>'


def title_of(view: View, cluster: int) -> str:
    """Return the number of a group, its name and its size."""
    name = view.names[cluster]
    return f"{cluster}{f'  {name}' if name else ''}  ·  {view.sizes[cluster]:,}"


def verdict(session: Session) -> str:
    """Return the verdict, which ``subspaces cluster`` gives as well, what the last step changed, and the figures."""
    view, data = session.view, session.data
    noun = "text" if session.texts is not None else "image" if data.image_shape is not None else "sample"
    sure = float(np.median(view.summary.confidence))
    facts = [f"<b class='clusters'>{counted(len(view.sizes), 'group')}</b>", counted(data.n_samples, noun)]
    facts += [f"median confidence {sure:.2f} of 1", f"<b class='doubts'>{view.n_doubtful}</b> doubtful"]
    if data.y is not None:
        found = clustering_scores(data.y, view.labels)
        shown = (f"{score.title} <b>{100 * found[score.name]:.1f} %</b>" for score in SCORES if score.name in found)
        facts.append(f"classes known: {', '.join(list(shown)[:2])}")
    told = f"<p class='told'>{escape(view.told) or '&nbsp;'}</p>"  # always a line, so that nothing moves
    return f"<p class='verdict'>{escape(view.verdict)}</p>{told}<div class='quality'>{' · '.join(facts)}</div>"


# ------------------------------------------------------------------ groups


def gallery(session: Session, pictures: Pictures) -> str:
    """Return a card for each group: its typical members beside the most different ones, its columns or words."""
    view = session.view
    words = session.words(view)
    groups = None if words else session.groups(view)
    if pictures.exist:
        bodies = [_pictures(session, pictures, cluster) for cluster in range(len(view.sizes))]
    elif session.texts is not None:
        bodies = [_texts(session, cluster, words) for cluster in range(len(view.sizes))]
    elif words:
        bodies = [f"<p class='words'>{escape(', '.join(own))}</p>" for own in words]
    else:
        bodies = _tables(session, groups)
    cards = []
    for cluster, body in enumerate(bodies):
        name = f"<b class='given'>{escape(view.names[cluster])}</b>" if view.names[cluster] else ""
        sure = f"{100 * view.summary.mean_confidence[cluster]:.0f} % sure"
        head = f"{badge(cluster)} {name} <span class='size'>{view.sizes[cluster]:,} · {sure}</span>"
        cards.append(f"<div class='card'><p>{head}</p>{body}</div>")
    kind = "pictures" if pictures.exist else "texts" if session.texts is not None else "tables"
    after = "" if groups is None else _means(groups)
    return f"<h2>Groups</h2><div class='gallery {kind}'>{''.join(cards)}</div>{after}"


def _pictures(session: Session, pictures: Pictures, cluster: int) -> str:
    kinds = zip(("typical", "most different", "doubtful"), session.members(session.view, cluster), strict=True)
    return (
        "<div class='strips'>"
        + "".join(
            f"<div class='strip'><i>{kind}</i><div>"
            + "".join(pictures.html(i, session.ids[i], kind.split()[-1]) for i in members.tolist())
            + "</div></div>"
            for kind, members in kinds
            if len(members)
        )
        + "</div>"
    )


def _texts(session: Session, cluster: int, words: list[list[str]]) -> str:
    typical, different, doubtful = session.members(session.view, cluster)
    sure = session.view.summary.confidence
    lines = [(i, "") for i in typical[:3].tolist() if i not in doubtful]
    lines += [(i, "most different") for i in different[:2].tolist() if i not in doubtful]
    lines += [(i, f"{100 * sure[i]:.0f} % sure") for i in doubtful.tolist()]
    shown = "".join(f"<li>{_text(session, i, note)}</li>" for i, note in lines)
    head = f"<p class='words'>{escape(', '.join(words[cluster]))}</p>" if words else ""
    return f"{head}<ul>{shown}</ul>"


def _text(session: Session, i: int, note: str = "") -> str:
    assert session.texts is not None
    line, text = session.first_lines[i], session.texts[i]
    place = f"<span class='place'>{escape(session.ids[i])}</span> {f'<i>{note}</i> ' if note else ''}"
    if len(text) <= len(line) + 2:
        return place + escape(line)
    return f"<details><summary>{place}{escape(line)}</summary><pre>{escape(text[:LONGEST])}</pre></details>"


def _tables(session: Session, groups: Groups | None) -> list[str]:
    """Return of each group the columns that set it apart, its standardised profile, and members to look up."""
    view = session.view
    curves = np.clip(session.profiles(view), -2.5, 2.5)
    bodies = []
    for cluster in range(len(view.sizes)):
        rows = [] if groups is None else _traits(groups, cluster)
        typical, different, doubtful = session.members(view, cluster)
        kinds = {"typical": typical[:3], "most different": different[:2], "doubtful": doubtful}
        named = [
            f"{kind} {', '.join(escape(session.ids[i]) for i in found)}" for kind, found in kinds.items() if len(found)
        ]
        body = f"<table class='traits'>{''.join(rows)}</table>{_curve(curves[cluster])}"
        bodies.append(f"<div class='traited'>{body}</div><p class='note'>{'; '.join(named)}</p>")
    return bodies


def _traits(groups: Groups, cluster: int) -> list[str]:
    rows = []
    for f in groups.strongest(cluster, N_TRAITS, least=0):
        gap = groups.difference[cluster, f]
        how = ("high" if gap > 0 else "low") if abs(gap) >= STANDS_OUT else "as usual"
        value = f"<td class='number'>{short(groups.mean[cluster, f])}</td>"
        rows.append(f"<tr><td>{escape(groups.columns[f])}</td>{value}<td class='how'>{how}</td></tr>")
    return rows


def _means(groups: Groups) -> str:
    """Return the table of means of all groups, what sets one apart marked."""
    shown = range(min(len(groups.names), MOST_GROUPS))
    head = "".join(f"<th>{badge(c)}</th>" for c in shown)
    rows = []
    for column, cells in groups.compared(MOST_ROWS):
        values = (f"<td class='number{' far' * cells[c][1]}'>{cells[c][0]}</td>" for c in shown)
        rows.append(f"<tr><td>{escape(column)}</td>{''.join(values)}</tr>")
    note = "<p class='note'>Mean ± standard deviation. Bold: what sets a group apart from all others.</p>"
    table = f"<div class='wide'><table class='means'><tr><th></th>{head}</tr>{''.join(rows)}</table></div>"
    return f"<details class='all'><summary>Mean of every column in each group</summary>{note}{table}</details>"


def _curve(curves: Array) -> str:
    """Return mean and middle 80 % of standardised features as SVG, the mean of all samples as a line."""
    width, height = 180, 60
    low, mean, high = (height / 2 - (height / 2 - 2) * curves / 2.5).round(1)
    at = np.linspace(1, width - 1, len(mean)).round(1) if len(mean) > 1 else np.array([1.0, width - 1.0])
    low, mean, high = (np.broadcast_to(curve, at.shape) for curve in (low, mean, high))

    def path(x: Array, y: Array) -> str:
        return " ".join(f"{a},{b}" for a, b in zip(x.tolist(), y.tolist(), strict=True))

    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" '
        'aria-label="mean and middle 80 % of every column, standardised">'
        f'<line x1="0" x2="{width}" y1="{height / 2}" y2="{height / 2}" style="stroke:var(--line)"/>'
        f'<polygon points="{path(at, low)} {path(at[::-1], high[::-1])}" style="fill:var(--blue)" fill-opacity="0.25"/>'
        f'<polyline points="{path(at, mean)}" fill="none" style="stroke:var(--blue)" stroke-width="1.4"/></svg>'
    )


# ------------------------------------------------------------------ two samples, one sample


def question(session: Session, pictures: Pictures, i: int, j: int, reason: str) -> str:
    """Return two samples side by side: pictures, texts, or rows with the differences marked."""
    why = f"<p class='note'>{escape(reason)}</p>"
    if not pictures.exist and session.texts is None:
        return why + _rows(session, i, j)
    sides = "".join(f"<div>{_side(session, pictures, each)}</div>" for each in (i, j))
    return f"{why}<div class='sides'>{sides}</div>"


def _side(session: Session, pictures: Pictures, i: int) -> str:
    place = f"<span class='place'>{escape(session.ids[i])}</span>"
    if pictures.exist:
        return f"{pictures.html(i, session.ids[i], 'asked')}{place}"
    assert session.texts is not None
    return f"{place}<pre>{escape(session.texts[i][:LONGEST])}</pre>"


def _rows(session: Session, i: int, j: int) -> str:
    rows, found = [], session.difference(i, j)
    for column, one, other, gap in found:
        values = "".join(f"<td class='number'>{value:.4g}</td>" for value in (one, other))
        bar = f"<td class='bar'><div style='width:{min(100, 25 * gap):.0f}%'></div></td>"
        rows.append(f"<tr class='{'far' if gap >= CLEAR else ''}'><td>{escape(column)}</td>{values}{bar}</tr>")
    head = "".join(f"<th>{escape(session.ids[each])}</th>" for each in (i, j))
    head += "<th style='text-align:left'>difference</th>"
    more = len(session.columns) - len(found)
    left = f"<p class='note'>{counted(more, 'column differs', 'columns differ')} less</p>" if more else ""
    return f"<table class='means pair'><tr><th></th>{head}</tr>{''.join(rows)}</table>{left}"


def sample(session: Session, pictures: Pictures, found: Explanation) -> str:
    """Return a sample, and the samples that represent it with their coefficients."""
    view, i = session.view, found.point

    def named(each: int) -> str:
        picture = pictures.html(each, session.ids[each]) if pictures.exist else ""
        line = f" <q>{escape(session.first_lines[each])}</q>" if session.texts is not None else ""
        return f"{picture} <b>{escape(session.ids[each])}</b>{line}"

    data = session.data
    truth = "" if data.y is None or data.classes is None else f", class {escape(data.classes[int(data.y[i])])}"
    own = f"{badge(found.label)} {escape(view.names[found.label])} {100 * view.summary.confidence[i]:.0f} % sure{truth}"
    rows = "".join(
        f"<tr><td>{named(row['point'])}</td><td class='number'>{row['coefficient']:.3f}</td>"
        f"<td>{badge(row['label'])}</td></tr>"
        for row in found.as_rows()
    )
    by = f"represented by {counted(found.n_representers, 'other')}" if found.n_representers else "represented by none"
    share = f"; {100 * found.own_share:.0f} % of the weight lies in its own group" if found.n_representers else ""
    head = f"<p class='chosen'>{named(i)} {own}</p><p class='note'>{by}{share}</p>"
    return f"{head}<table class='representers'>{rows}</table>"
