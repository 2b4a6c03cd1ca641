"""What ``benchmarks/shards.py`` measured → the tables, the cost model and the plot of docs/distributed.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
NAMES = {"memory": "in memory, one process", "here": "out of core, one process", "one": "1 worker", "two": "2 workers"}
WORKERS, NETWORK = 100, 1.25e9  # machines of the prediction, and bytes a second of each (10 Gbit/s)
BEGIN, END = "<!-- measured: benchmarks/shards.py page -->\n", "<!-- end -->"


def write_page(rows: list[Row], docs: Path) -> None:
    """Replace what stands between the marks of the page, and draw the plot; of runs of one kind the last counts."""
    rows = list({(row["kind"], row["n"], row["how"]): row for row in rows}.values())
    page = docs / "distributed.md"
    text = page.read_text(encoding="utf-8")
    parts = [table(rows), growth(rows, docs), speed_up(rows), model(rows)]
    body = BEGIN + "\n\n".join(part for part in parts if part) + "\n" + END
    page.write_text(
        re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: body, text, flags=re.S), encoding="utf-8"
    )


def cpu(row: Row) -> float:
    return float(row["caller"]["cpu"] + sum(worker["cpu"] for worker in row["workers"]))


def table(rows: list[Row]) -> str:
    lines = [
        "| estimator | data | n | how | AC | NMI | wall s | CPU s | caller MB | largest worker MB | load |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["kind"], row["n"], row["how"])):
        estimator, data = (
            ("EKTRR" if row["kind"] == "ektrr" else "KTRR"),
            "Covtype" if row["kind"] == "covtype" else "pieces",
        )
        peak = max((worker["peak_mb"] for worker in row["workers"]), default=None)
        lines.append(
            f"| {estimator} | {data} | {row['n']:,} | {NAMES[row['how']]} | {row['ac']:.2f} | {row['nmi']:.2f} "
            f"| {row['wall']:.0f} | {cpu(row):.0f} | {row['caller']['peak_mb']:.0f} "
            f"| {'' if peak is None else f'{peak:.0f}'} | {row['load']:.0f} |"
        )
    return "\n".join(lines)


def sharded(rows: list[Row]) -> list[Row]:
    return sorted((row for row in rows if row["kind"] == "ktrr" and row["how"] == "two"), key=lambda row: row["n"])


def growth(rows: list[Row], docs: Path) -> str:
    """The exponent of CPU time, and the plot."""
    found = sharded(rows)
    if len(found) < 2:
        return ""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = [row["n"] for row in found]
    exponent = np.polyfit(np.log(n), np.log([cpu(row) for row in found]), 1)[0]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    axes[0].loglog(n, [cpu(row) for row in found], "o-", label="in shards, all processes")
    axes[1].loglog(n, [row["caller"]["peak_mb"] for row in found], "o-", label="caller")
    axes[1].loglog(n, [max(w["peak_mb"] for w in row["workers"]) for row in found], "s-", label="largest worker")
    here = sorted((row for row in rows if row["kind"] == "ktrr" and row["how"] == "memory"), key=lambda row: row["n"])
    if here:
        axes[0].loglog([row["n"] for row in here], [cpu(row) for row in here], "^--", label="in memory")
        axes[1].loglog([row["n"] for row in here], [row["caller"]["peak_mb"] for row in here], "^--", label="in memory")
    for axis, name in zip(axes, ("CPU seconds", "peak memory, MB"), strict=True):
        axis.set_xlabel("points")
        axis.set_ylabel(name)
        axis.grid(alpha=0.3, which="both")
        axis.legend()
    figure.savefig(docs / "shards.png", dpi=110)
    return (
        f"CPU time grows with n to the power {exponent:.2f} from {n[0]:,} to {n[-1]:,} points.\n\n"
        "![CPU seconds and peak memory against the number of points](shards.png)"
    )


def speed_up(rows: list[Row]) -> str:
    """Wall time on one and two workers, and what CPU times say of a machine that nobody else uses."""
    lines = []
    found = {(row["n"], row["how"]): row for row in rows if row["kind"] == "ktrr"}
    for n in sorted({n for n, how in found if how == "two"}):
        two, one = found[n, "two"], found.get((n, "one"))
        caller, workers = two["caller"]["cpu"], [worker["cpu"] for worker in two["workers"]]
        ideal = (caller + sum(workers)) / (caller + max(workers))
        said = f"At {n:,} points the CPU times of caller and workers allow a speed-up of {ideal:.2f} on two idle cores"
        if one is not None:
            seen = one["wall"] / two["wall"]
            said += f"; {one['wall']:.0f} s on one worker and {two['wall']:.0f} s on two were seen, {seen:.2f}"
            said += f" (at loads of {one['load']:.0f} and {two['load']:.0f})"
        lines.append(said + ".")
    return " ".join(lines)


def model(rows: list[Row]) -> str:
    """Seconds and bytes of a point, from the largest run, and what they say of more points on more machines."""
    found = sharded(rows)
    if not found:
        return ""
    row = found[-1]
    n, m = row["n"], 32
    seconds = sum(worker["cpu"] for worker in row["workers"]) / n
    written = sum(row["files"].values()) / n
    read = 4 * m * 2 + row["files"]["points"] / n + 2 * row["files"]["graph"] / n + 2 * row["files"]["cut"] / n
    lines = [
        f"Fitted to {n:,} points: {1e6 * seconds:.0f} µs of a worker's CPU and {written + read:.0f} bytes read or "
        f"written a point ({written:.0f} of them files of the checkpoint). The caller cut the groups in "
        f"{row['timings']['cut']:.0f} s; their number is held near 10⁵ at most up to 10⁸ points.",
        "",
        f"| points | {WORKERS} workers, computing | network and disk at 1.25 GB/s each | their share | disk |",
        "|---|---|---|---|---|",
    ]
    for big in (10**8, 10**9):
        compute, moved = big * seconds / WORKERS, big * (written + read) / (WORKERS * NETWORK)
        lines.append(
            f"| 10^{np.log10(big):.0f} | {compute / 60:.0f} min | {moved:.1f} s "
            f"| {100 * moved / (compute + moved):.1f} % | {big * written / 1e12:.2f} TB |"
        )
    lines += ["", "Predicted, not run. At 10⁹ points the sort into shards would want a second level: a shard would be"]
    lines[-1] += f" gathered from {10**9 * 4 * m // 2**26:,} chunks."
    return "\n".join(lines)
