"""docs/speed/ from the finished runs: CSV, tables, the Pareto fronts, growth with the number of points."""

from __future__ import annotations

import csv
import os
import platform
from importlib import metadata
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from _peers.data import ABOUT, GROWTH, SMALL_FIRST, kind
from _peers.methods import METHODS, PEERS, REFERENCE

SCORE = {"covtype": "nmi"}  # one label for all points has an accuracy of 48.8 % there
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "graspologic-native", "umap-learn", "scikit-network", "genieclust"),
    *("faiss-cpu", "spectral-bridges", "spectralcluster", "clustpy"),
)
COLUMNS = (
    *("data", "n", "m", "k", "method", "group", "runs", "ac", "nmi", "ari", "found", "wall", "cpu", "mb"),
    *("cpu_over_ours", "cpu_over_dense_floor", "cpu_over_search_floor", "on_front", "note"),
)
Row = dict[str, Any]


def write(stored: list[Row], folder: Path) -> None:
    """All outputs; nothing is computed anew."""
    folder.mkdir(parents=True, exist_ok=True)
    sets = {name: of_data(name, stored) for name in SMALL_FIRST}
    sets = {name: rows for name, rows in sets.items() if any("ac" in row for row in rows)}
    with (folder / "peers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for rows in sets.values() for row in rows)
    (folder / "peers.md").write_text(page(sets))
    if sets:
        plot_fronts(sets, folder / "pareto.png")
        plot_growth(sets, folder / "growth.png")


def of_data(name: str, stored: list[Row]) -> list[Row]:
    """One row per method: mean scores, median seconds, largest memory over the repeats, and the ratios."""
    rows: list[Row] = []
    for method, about in METHODS.items():
        found = [row["result"] for row in stored if row["key"]["data"] == name and row["key"]["method"] == method]
        if not found:
            continue
        row: Row = {"data": name, "method": method, "title": about.title, "group": about.group}
        good = [result for result in found if "failed" not in result]
        row["note"] = next((result["failed"] for result in found if "failed" in result), "")
        row["runs"] = len(good)
        if good:
            (row["n"], row["m"]), row["k"] = good[0]["shape"], good[0]["k"]
            for key in ("wall", "cpu"):
                row[key] = float(np.median([result[key] for result in good]))
            row["mb"] = max(result["mb"] for result in good)
            if "ac" in good[0]:
                row |= {key: float(np.mean([result[key] for result in good])) for key in ("ac", "nmi", "ari")}
                row["found"] = float(np.median([result["found"] for result in good]))
        rows.append(row)
    _add_ratios(rows)
    _add_front(rows, SCORE.get(name, "ac"))
    return rows


def _add_ratios(rows: list[Row]) -> None:
    cpu = {row["method"]: row["cpu"] for row in rows if "cpu" in row}
    mine = next((cpu[method] for method in (REFERENCE, *METHODS) if method in cpu and method not in PEERS), None)
    for row in rows:
        for key, base in (
            ("cpu_over_ours", mine),
            ("cpu_over_dense_floor", cpu.get("floor-dense")),
            ("cpu_over_search_floor", cpu.get("floor-search")),
        ):
            if base and "cpu" in row:
                row[key] = row["cpu"] / base


def _add_front(rows: list[Row], score: str) -> None:
    """Mark the rows that no other beats in accuracy without taking more time."""
    scored = [row for row in rows if "ac" in row]
    for row in scored:
        row["on_front"] = not any(
            other["cpu"] <= row["cpu"] and other[score] >= row[score] and _differ(other, row, score) for other in scored
        )


def _differ(a: Row, b: Row, score: str) -> bool:
    return bool(a["cpu"] < b["cpu"] or a[score] > b[score])


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


# ---------------------------------------------------------------- tables


def page(sets: dict[str, list[Row]]) -> str:
    """The whole page of tables as Markdown."""
    missing = [about.title for about in METHODS.values() if about.missing()]
    lines = [
        "# Ours and the others, every run",
        "",
        "Written by `python benchmarks/peers.py`; what it means is in [Where the time goes](../speed.md).",
        "",
        f"{machine()}. One thread. Each run is a process of its own: CPU seconds of the fit after an untimed warm-up "
        "(median over the repeats), MB at the peak above the level before the fit (largest), AC, NMI (divided by the "
        "larger entropy) and ARI in % (mean). All know the number of clusters but HDBSCAN, Louvain and Leiden. "
        "Nobody was tuned per data set, but the polynomial kernel is run only where subspaces intersect. Other work "
        "ran on the machine: wall seconds say little. **Bold**: ours. ●: on the front, nobody is at least as accurate "
        "in less time. "
        "× ours: CPU seconds over those of KTRR; × inverse: over bare GEMM + potrf + potri; × search: over the bare "
        "search of ten neighbours of every point.",
        "",
        f"Not installed: {', '.join(missing)}." if missing else "All peers were installed.",
        "",
    ]
    lines += ["| data | the front, fastest first | ours on it |", "|---|---|---|"]
    lines += [_front_line(name, rows) for name, rows in sets.items()]
    lines.append("")
    for name, rows in sets.items():
        lines += _table(name, rows)
    return "\n".join(lines)


def _front_line(name: str, rows: list[Row]) -> str:
    score = SCORE.get(name, "ac")
    front = sorted((row for row in rows if row.get("on_front")), key=lambda row: row["cpu"])
    said = [f"{_title(row)} ({row[score]:.1f} %, {row['cpu']:.2f} s)" for row in front]
    mine = sum(row["group"] == "ours" for row in front)
    top = " and its most accurate end" if front and front[-1]["group"] == "ours" else ""
    return f"| {name} | {', '.join(said)} | {f'{mine} of {len(front)}{top}' if mine else '**no**'} |"


def _title(row: Row) -> str:
    return f"**{row['title']}**" if row["group"] == "ours" else str(row["title"])


def _table(name: str, rows: list[Row]) -> list[str]:
    score = SCORE.get(name, "ac")
    shape = next(row for row in rows if "n" in row)
    lines = [
        f"## {name}",
        "",
        f"{ABOUT[kind(name)]}; {shape['n']:,} × {shape['m']}, {shape['k']} clusters.",
        "",
        "| | method | AC | NMI | ARI | CPU s | wall s | MB | × ours | × inverse | × search |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: (row["group"] == "floor", -row.get(score, -1.0))):
        title = _title(row)
        if "cpu" not in row:
            lines.append(f"| | {title} | {row['note']} | | | | | | | | |")
            continue
        if row.get("found", row["k"]) != row["k"]:
            title += f" (found {row['found']:.0f})"
        scores = [f"{row[key]:.1f}" if key in row else "" for key in ("ac", "nmi", "ari")]
        seconds = [f"{row[key]:.2f}" if row[key] < 10 else f"{row[key]:.0f}" for key in ("cpu", "wall")]
        keys = ("cpu_over_ours", "cpu_over_dense_floor", "cpu_over_search_floor")
        ratios = [f"{row[key]:.2g}" if key in row and row[key] < 100 else _whole(row.get(key)) for key in keys]
        cells = ["●" if row.get("on_front") else "", title, *scores, *seconds, f"{row['mb']:.0f}", *ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def machine() -> str:
    """Processor, cores, Python and the versions of everybody."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    info = Path("/proc/cpuinfo")
    models = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    model = models[0].split(":")[1].strip() if models else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, {', '.join(found)}"


# ---------------------------------------------------------------- plots

_SHADES = {"ours": "Reds", "peer": "Blues", "floor": "Greys"}
_MARKS = {"ours": "osDphv<", "peer": "^>*XdP8", "floor": "|_"}


def plot_fronts(sets: dict[str, list[Row]], file: Path) -> None:
    """Accuracy against CPU seconds, one panel per data set, the front drawn through."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(4, len(sets))
    lines = -(-len(sets) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4 * columns, 3.6 * lines), layout="constrained", squeeze=False)
    for axis in axes.ravel()[len(sets) :]:
        axis.set_visible(False)
    for axis, (name, rows) in zip(axes.ravel(), sets.items(), strict=False):
        _front_panel(axis, name, rows)
    figure.supxlabel("CPU seconds; red circles: ours, blue triangles: others; numbers: on the front", fontsize=9)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def _front_panel(axis: Any, name: str, rows: list[Row]) -> None:
    """One data set; the points on the front are numbered and named below, where names cannot overlap."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    score = SCORE.get(name, "ac")
    scored = [row for row in rows if "ac" in row]
    front = sorted((row for row in scored if row["on_front"]), key=lambda row: row["cpu"])
    axis.step([r["cpu"] for r in front], [r[score] for r in front], where="post", color="0.7", lw=1, zorder=1)
    for row in scored:
        mine = row["group"] == "ours"
        axis.plot(row["cpu"], row[score], "o" if mine else "^", color="#c1272d" if mine else "#3b6ea5", ms=5)
    for number, row in enumerate(front, start=1):
        axis.annotate(
            str(number), (row["cpu"], row[score]), fontsize=7, xytext=(0, 4), textcoords="offset points", ha="center"
        )
    cpu = [row["cpu"] for row in scored]
    limits = 10.0 ** np.floor(np.log10(0.8 * min(cpu))), 10.0 ** np.ceil(np.log10(1.25 * max(cpu)))
    axis.set(title=name, xscale="log", ylim=(-3, 109), xlim=limits)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25)
    axis.set_ylabel("NMI, %" if score == "nmi" else "accuracy, %", fontsize=8)
    named = [f"{number} {row['method']}" for number, row in enumerate(front, start=1)]
    axis.set_xlabel("\n".join("   ".join(named[i : i + 3]) for i in range(0, len(named), 3)), fontsize=7)


def plot_growth(sets: dict[str, list[Row]], file: Path) -> None:
    """CPU seconds and memory against n on the union of subspaces, ours in red."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grown = [row for name in GROWTH for row in sets.get(name, []) if "cpu" in row]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    colours = {group: cycle(plt.colormaps[name](np.linspace(0.35, 0.95, 7))) for group, name in _SHADES.items()}
    marks = {group: cycle(marks) for group, marks in _MARKS.items()}
    for method, about in METHODS.items():
        mine = sorted((row["n"], row["cpu"], max(row["mb"], 1)) for row in grown if row["method"] == method)
        if len(mine) < 2:
            continue
        n, cpu, mb = zip(*mine, strict=True)
        style = {"ours": "-", "peer": "--", "floor": ":"}[about.group]
        keywords = {"color": next(colours[about.group]), "marker": next(marks[about.group]), "ms": 4, "lw": 1.2}
        axes[0].loglog(n, cpu, style, **keywords)
        axes[1].loglog(n, mb, style, label=about.title, **keywords)
    axes[0].set(xlabel="points", ylabel="CPU seconds")
    axes[1].set(xlabel="points", ylabel="MB above the start")
    if axes[1].lines:
        figure.legend(loc="outside right upper", fontsize=7)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=90)
    plt.close(figure)
