"""The picture of the page on the architecture, drawn from the imports of the package and the layers it keeps.

``python docs/_ext/architecture.py picture.svg`` draws it without Sphinx. A row is a layer of the contract in
``pyproject.toml``; an arrow is an import that exists. Those that follow from others are left out, but for who runs the
engine and what the engine calls. The rows at the bottom say in words who stands on them.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from imports import PACKAGE, Arrow, arrows_of, layers_of, modules_of, shortest, users_of_engine

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- the picture of the imports -->"
TARGET = "_generated/architecture.svg"
ENGINE, FIRST = "engine", "scaling"
USERS = {
    "estimators": "fit",
    "selection": "search: a cache",
    "explorer": "a cache",
    "distributed": "other workers",
}
"""Who runs the engine, and what each hands to it; that there are no others is tested."""

WIDTH, ROW, GAP, PAD, FONT, SMALL = 420.0, 27.0, 25.0, 6.0, 12.5, 10.2
# each readable on white and on near black; all text stands within a box
BOX, HEART, GROUND, BAND, TEXT = "#3b5b7a", "#9a4a12", "#4d5560", "#808890", "#ffffff"
COLORS = {"runs": "#d9730d", "calls": "#3f8fc9", "imports": "#8a929b"}


@dataclass(eq=False)
class Node:
    """A box, or a point where an arrow passes a row (no name)."""

    row: int
    width: float
    name: str = ""
    lines: tuple[str, ...] = ()
    x: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    """An arrow of one kind: its nodes from the importing box to the imported one."""

    kind: str
    nodes: tuple[Node, ...]


def facts(root: Path = ROOT) -> tuple[list[list[str]], dict[str, set[Arrow]], dict[str, tuple[str, ...]]]:
    """Rows of packages, arrows to draw by kind, and lines of small print by package."""
    source = root / "src"
    rows, arrows, modules = layers_of(root / "pyproject.toml"), arrows_of(source), modules_of(source)
    ground = [name for row in rows[_ground_of(rows) :] for name in row]
    runs = {(user, ENGINE) for user in users_of_engine(source)}
    above_ground = {(a, b) for a, b in arrows if not {a, b} & set(ground)}
    calls = {(a, b) for a, b in above_ground if a == ENGINE}
    drawn = {"runs": runs, "calls": calls, "imports": shortest(above_ground) - runs - calls}
    order = [part for row in rows for part in row]
    small = {user: (words,) for user, words in USERS.items()}
    small |= {ENGINE: (" · ".join(m.split(".")[2] for m in modules if m.startswith(f"{PACKAGE}.{ENGINE}.")),)}
    for part in ground:
        users = sorted((a for a, b in arrows if b == part), key=order.index)
        others = [name for name in order[: order.index(part)] if name not in users]
        words = f"all but {', '.join(others)}" if 0 < len(others) <= 4 else ", ".join(users) if others else "all above"
        room = WIDTH / max(len(row) for row in rows if part in row) - 2 * PAD
        small[part] = tuple(_wrapped(f"imported by {words}", room))
    return rows, drawn, small


def _ground_of(rows: list[list[str]]) -> int:
    """The first row below those that the way from points to labels passes."""
    return next(i for i, row in enumerate(rows) if FIRST in row) + 1


# ---------------------------------------------------------------- where everything stands


def layout(rows: list[list[str]], drawn: dict[str, set[Arrow]], small: dict[str, tuple[str, ...]]) -> tuple[Any, Any]:
    """Nodes of every row from left to right, with their places, and the lines between them."""
    boxes = {
        name: Node(i, _width(name, small.get(name, ())), name, small.get(name, ()))
        for i, row in enumerate(rows)
        for name in row
    }
    placed: list[list[Node]] = [[boxes[name] for name in row] for row in rows]
    passes: dict[tuple[str, str, int], Node] = {}
    lines = []
    for kind, arrows in drawn.items():
        for a, b in sorted(arrows):
            nodes = [boxes[a]]
            for i in range(boxes[a].row + 1, boxes[b].row):
                key = (kind, b, i)  # arrows to one box share their way
                if key not in passes:
                    passes[key] = Node(i, 1.0)
                    placed[i].append(passes[key])
                nodes.append(passes[key])
            nodes.append(boxes[b])
            lines.append(Line(kind, tuple(nodes)))
            for upper, lower in pairwise(nodes):
                if lower not in upper.below:
                    upper.below.append(lower)
                    lower.above.append(upper)
    ground = _ground_of(rows)
    placed = [*_ordered(placed[:ground]), *placed[ground:]]
    _place(placed[:ground])
    for row in placed[ground:]:
        for k, node in enumerate(row):
            node.width = (WIDTH - 5 * (len(row) - 1)) / len(row)
            node.x = (k + 0.5) * node.width + 5 * k
    return placed, lines


def _ordered(rows: list[list[Node]], attempts: int = 30) -> list[list[Node]]:
    """The order within rows in which the fewest lines cross, of several beginnings."""
    draw = random.Random(0)
    best, fewest = rows, None
    for _ in range(attempts):
        now = [draw.sample(row, len(row)) for row in rows]
        place = {id(node): k / max(1, len(row) - 1) for row in now for k, node in enumerate(row)}
        for sweep in range(12):
            down = sweep % 2 == 0
            for i in range(len(now)) if down else reversed(range(len(now))):
                now[i] = sorted(now[i], key=lambda node: _mean(node.above if down else node.below, place, node))
                place |= {id(node): k / max(1, len(now[i]) - 1) for k, node in enumerate(now[i])}
            crossings = _crossings(now)
            if fewest is None or crossings < fewest:
                best, fewest = [list(row) for row in now], crossings
    return best


def _mean(nodes: list[Node], place: dict[int, float], node: Node) -> float:
    return sum(place[id(other)] for other in nodes) / len(nodes) if nodes else place[id(node)]


def _crossings(rows: list[list[Node]]) -> int:
    place = {id(node): k for row in rows for k, node in enumerate(row)}
    found = 0
    for row in rows:
        pairs = [(place[id(upper)], place[id(lower)]) for upper in row for lower in upper.below]
        found += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(pairs) for c, d in pairs[:i])
    return found


def _place(rows: list[list[Node]]) -> None:
    """Each node near the mean of those it is tied to, in order, no two closer than they may."""
    for row in rows:
        for k, node in enumerate(row):
            node.x = WIDTH * (k + 0.5) / len(row)
    for sweep in range(300):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = []
            for node in row:
                tied = [(other.x, _pull(node, other)) for other in node.above + node.below] or [(WIDTH / 2, 1.0)]
                tied.append((WIDTH / 2, 0.02))
                wanted.append(sum(x * pull for x, pull in tied) / sum(pull for _, pull in tied))
            for node, x in zip(row, _apart(row, wanted), strict=True):
                node.x = x
    _fill([node for row in rows for node in row])


def _fill(nodes: list[Node]) -> None:
    """The whole width is used: places in the middle of it and as far apart as it lets them be."""
    shift = WIDTH / 2 - (min(n.x - n.width / 2 for n in nodes) + max(n.x + n.width / 2 for n in nodes)) / 2
    away = [(abs(n.x + shift - WIDTH / 2), n.width / 2) for n in nodes]
    factor = min((WIDTH / 2 - 4 - half) / far for far, half in away if far > 1)
    for node in nodes:
        node.x = WIDTH / 2 + max(1.0, factor) * (node.x + shift - WIDTH / 2)


def _pull(a: Node, b: Node) -> float:
    """Long arrows are to be straight where they pass rows."""
    return {0: 8.0, 1: 2.0, 2: 1.0}[bool(a.name) + bool(b.name)]


def _apart(row: list[Node], wanted: list[float]) -> list[float]:
    """The places nearest to those wanted that keep order and distance: neighbours that collide move as one."""
    offsets, at = [], 0.0
    for k, node in enumerate(row):
        if k:
            both = row[k - 1].name and node.name
            at += (row[k - 1].width + node.width) / 2 + (PAD if both else 6.0)
        offsets.append(at)
    groups: list[tuple[float, float, int]] = []
    for node, want, offset in zip(row, wanted, offsets, strict=True):
        mean, weight, size = want - offset, 1.0 if node.name else 3.0, 1
        while groups and groups[-1][0] > mean:
            other, heavy, n = groups.pop()
            mean, weight, size = (mean * weight + other * heavy) / (weight + heavy), weight + heavy, size + n
        groups.append((mean, weight, size))
    starts = [mean for mean, _, size in groups for _ in range(size)]
    low, high = row[0].width / 2, WIDTH - row[-1].width / 2 - offsets[-1]
    return [min(max(start, low), max(low, high)) + offset for start, offset in zip(starts, offsets, strict=True)]


def _wrapped(text: str, room: float) -> list[str]:
    """Lines of small print that are no wider than there is room."""
    lines: list[str] = []
    for word in text.split():
        if lines and _text_width(f"{lines[-1]} {word}", SMALL) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _width(name: str, lines: tuple[str, ...]) -> float:
    return max([_text_width(name, FONT), *(_text_width(line, SMALL) for line in lines)]) + 2 * PAD


def _text_width(text: str, size: float) -> float:
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=size).get_extents().width)


# ---------------------------------------------------------------- drawing


def draw(target: Path, root: Path = ROOT) -> None:
    """Draw the picture into a file; what its ending says (.svg, .png) is what it is."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows, drawn, small = facts(root)
    placed, lines = layout(rows, drawn, small)
    heights = [ROW + 12 * max(len(node.lines) for node in row) for row in placed]
    tops, y = [], 0.0
    ground = _ground_of(rows)
    for i, height in enumerate(heights):
        tops.append(y)
        y += height + (GAP if i < ground - 1 else GAP / 2 if i < ground else 5.0)
    with mpl.rc_context({"svg.hashsalt": "architecture", "svg.fonttype": "path"}):
        figure = Figure(figsize=((WIDTH + 2) / 72, (y - 1) / 72))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-1, WIDTH + 1)
        axes.set_ylim(y - 3, -2)
        for top, height in zip(tops[:ground], heights, strict=False):
            axes.axhspan(top - 5, top + height + 5, color=BAND, alpha=0.13, linewidth=0, zorder=1)
        _draw_lines(axes, lines, tops, heights)
        for row in placed:
            for node in row:
                if node.name:
                    _draw_box(axes, node, tops[node.row], heights[node.row], node.row >= ground)
        target.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if target.suffix == ".svg" else None
        figure.savefig(target, transparent=True, metadata=metadata, dpi=144)


def _draw_box(axes: Any, node: Node, top: float, height: float, is_ground: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, width = node.x - node.width / 2, node.width
    color = GROUND if is_ground else HEART if node.name == ENGINE else BOX
    shape = "round,pad=0,rounding_size=4"
    edge = {"edgecolor": COLORS["runs"], "linewidth": 1.7} if node.name in USERS else {"linewidth": 0}
    axes.add_patch(FancyBboxPatch((left, top), width, height, boxstyle=shape, facecolor=color, zorder=3, **edge))
    texts = [(node.name, FONT), *((line, SMALL) for line in node.lines)]
    for k, (text, size) in enumerate(texts):
        y = top + height / 2 + 14 * (k - (len(texts) - 1) / 2)
        weight = "bold" if k == 0 and (is_ground or node.name == ENGINE) else "normal"
        axes.text(left + width / 2, y, text, size=size, weight=weight, color=TEXT, ha="center", va="center", zorder=4)


def _ports(lines: list[Line]) -> dict[tuple[int, int, bool], float]:
    """Where each piece of a line touches a box: side by side, in the order of the other ends."""
    pieces = {(id(a), id(b)): (a, b) for line in lines for a, b in pairwise(line.nodes)}
    found = {}
    for is_start in (True, False):
        ends: dict[int, list[tuple[Node, Node]]] = {}
        for a, b in pieces.values():
            ends.setdefault(id(a if is_start else b), []).append((a, b))
        for several in ends.values():
            several.sort(key=lambda piece: piece[1 if is_start else 0].x)
            box = several[0][0 if is_start else 1]
            step = min(16.0, (box.width - 10) / len(several)) if box.name else 0.0
            for k, (a, b) in enumerate(several):
                found[id(a), id(b), is_start] = box.x + step * (k - (len(several) - 1) / 2)
    return found


def _draw_lines(axes: Any, lines: list[Line], tops: list[float], heights: list[float]) -> None:
    from matplotlib.patches import FancyArrowPatch, PathPatch
    from matplotlib.path import Path as Curve

    ports, done = _ports(lines), set()
    for line in sorted(lines, key=lambda line: list(COLORS).index(line.kind), reverse=True):
        color = COLORS[line.kind]
        style: dict[str, Any] = {"edgecolor": color, "linewidth": 1.1 if line.kind == "imports" else 1.7, "zorder": 2}
        for a, b in pairwise(line.nodes):
            if (id(a), id(b)) in done:
                continue
            done.add((id(a), id(b)))
            x0, x1 = ports[id(a), id(b), True], ports[id(a), id(b), False]
            y0, y1 = tops[a.row] + heights[a.row], tops[b.row]
            middle = (y0 + y1) / 2
            end = y1 - 4 if b.name else y1
            points = [(x0, y0), (x0, middle), (x1, middle), (x1, end)]
            codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
            if not b.name:
                points, codes = [*points, (x1, y1 + heights[b.row])], [*codes, Curve.LINETO]
            axes.add_patch(PathPatch(Curve(points, codes), facecolor="none", **style))
            if b.name:
                head = FancyArrowPatch(
                    (x1, end - 1), (x1, y1), arrowstyle="-|>", mutation_scale=7, shrinkA=0, shrinkB=0
                )
                head.set(color=color, linewidth=0.5, zorder=2)
                axes.add_patch(head)


# ---------------------------------------------------------------- in the manual


def insert_picture(app: Any, docname: str, source: list[str]) -> None:
    """Draw the picture and show it where the page marks it."""
    if MARK in source[0]:
        draw(Path(app.srcdir) / TARGET)
        for path in [*modules_of(ROOT / "src").values(), ROOT / "pyproject.toml"]:
            app.env.note_dependency(str(path))
        alt = "Layers of the package and the imports between them"
        figure = f"```{{image}} /{TARGET}\n:alt: {alt}\n:class: dark-light\n:width: 680px\n```"
        source[0] = source[0].replace(MARK, figure)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", insert_picture)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
