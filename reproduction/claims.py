"""Judge what the paper says about its results, sentence by sentence (claims.toml), by its own numbers and by ours.

A check reads numbers by their places, so the same one judges both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reproduction.plan import HERE
from reproduction.records import Record
from subspaces.metrics.significance import LEVEL

Names = Sequence[str]
At = float | None
SCORES = ("AC", "NMI", "ARI", "F")
RIVALS = ("TRR", "LSR1", "LSR2", "KLRR", "KSSC", "LatLRR", "LRR1", "LRR2", "SSC", "SMCE", "LSA", "SC")
METHODS = ("KTRR", *RIVALS)
LARGE = ("SSSC", "SLSR", "SLRR", "KASP", "Nyström", "SEC", "AKK")
NETWORKS = ("DASC", "DSC-Net-L2", "DSC-Net-L1", "StructAE")
KERNELS = ("(xᵀy)³", "(xᵀy)²", "exp(−d²/σ²)", "exp(−d/σ)", "1/d²", "1/d")
LISTS = {"SCORES": SCORES, "RIVALS": RIVALS, "LARGE": LARGE, "NETWORKS": NETWORKS, "KERNELS": KERNELS}
LISTS |= {"KTRR and RIVALS": METHODS, "EKTRR and LARGE": ("EKTRR", *LARGE)}
KERNEL_OF = {"TRR": "KTRR", "LRR1": "KLRR", "LRR2": "KLRR", "SSC": "KSSC"}
"""Linear methods and their kernel extensions."""
SETS = ("ExYaleB", "COIL20", "USPS", "MNIST")


class Verdict(NamedTuple):
    """Whether a statement holds, and the figures that say so."""

    holds: bool
    figures: str


class Judged(NamedTuple):
    """A claim with its verdict by the paper's own numbers and by ours; None where it cannot be judged."""

    where: str
    text: str
    paper: Verdict | None
    ours: Verdict | None


class Read:
    """Numbers by experiment, panel, row, metric and x: ours (``mean``) or the paper's. KeyError where there is none."""

    def __init__(self, results: Mapping[str, Sequence[Record]], side: str) -> None:
        self.side = side
        self.records: dict[tuple[str, str, str, str, float | None], Record] = {}
        for name, records in results.items():
            for r in records:
                self.records.setdefault((name, r.panel, r.row, r.metric, r.x), r)  # the first cut

    def __call__(self, table: str, panel: str, row: str, metric: str = "AC", x: At = None, side: str = "") -> float:
        """Return a number."""
        value: float | None = getattr(self.records[table, panel, row, metric, x], side or self.side)
        if value is None:
            raise KeyError
        return value

    def p(self, table: str, panel: str, row: str, metric: str) -> float:
        """Return the p-value of our runs."""
        if self.side != "mean":
            raise KeyError
        return self(table, panel, row, metric, side="p")

    def rows(self, table: str, panel: str, rows: Names, metric: str = "AC", x: At = None) -> dict[str, float]:
        """Return the numbers of several rows."""
        return {row: self(table, panel, row, metric, x) for row in rows}


def judge(results: Mapping[str, Sequence[Record]]) -> Iterator[Judged]:
    """Judge all claims, as far as there are results."""
    ours, paper = Read(results, "mean"), Read(results, "paper")
    for where, text, *checks in tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))["claims"]:
        yield Judged(where, text, _verdict(checks, paper), _verdict(checks, ours))


def _verdict(checks: Sequence[Sequence[Any]], read: Read) -> Verdict | None:
    """All parts have to hold; the figures are those of the parts that fail, or of all."""
    calls = [(globals()[name], [LISTS.get(v, v) if isinstance(v, str) else v for v in rest]) for name, *rest in checks]
    try:
        found = [verdict for check, arguments in calls for verdict in check(read, *arguments)]
    except KeyError:
        return None
    failed = [verdict for verdict in found if not verdict.holds]
    return Verdict(not failed, "; ".join(verdict.figures for verdict in (failed or found))) if found else None


# ------------------------------------------------------------------ kinds of statements: each yields its parts

Parts = Iterator[Verdict]


def largest(values: Mapping[Any, float]) -> Any:
    """Return the key of the largest value."""
    return max(values, key=values.__getitem__)


def told(values: Mapping[str, float], form: str = ".1f") -> str:
    """Write names and numbers."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def best(read: Read, table: str, panel: str, row: str, others: Names, metrics: Names = SCORES) -> Parts:
    """Check that the row has the largest value, in every metric."""
    parts, holds = [], True
    for metric in metrics:
        own, values = read(table, panel, row, metric), read.rows(table, panel, [n for n in others if n != row], metric)
        rival = largest(values)
        holds &= own >= values[rival]
        parts.append(f"{metric} {own:.1f}, best other {rival} {values[rival]:.1f}")
    yield Verdict(holds, "; ".join(parts))


def higher(read: Read, table: str, panel: str, row: str, others: Names, metric: str = "AC", by: float = 0.0) -> Parts:
    """Check that the row is above all the others, by more than `by`."""
    own, values = read(table, panel, row, metric), read.rows(table, panel, [n for n in others if n != row], metric)
    holds = all(own - value > by for value in values.values())
    yield Verdict(holds, f"{panel}: {row} {own:.4g}, {told(values, '.4g')}")


def each_higher(read: Read, table: str, panel: str, rows: Names, others: Names) -> Parts:
    """Check that every row is above all the others that are not among the rows."""
    for row in rows:
        yield from higher(read, table, panel, row, [name for name in others if name not in rows])


def kernels_win(read: Read, table: str, panel: str) -> Parts:
    """Check that every linear method is below its kernel extension."""
    for linear, kernel in KERNEL_OF.items():
        yield from higher(read, table, panel, kernel, [linear])


def faster(read: Read, metric: str, row: str, others: Names) -> Parts:
    """Check that the row takes less time than each of the others on all data sets."""
    for panel in SETS:
        for other in [name for name in others if name != row]:
            yield from higher(read, "table7", panel, other, [row], metric)


def gap(
    read: Read, table: str, panel: str, row: str, other: str, said: float, metric: str = "AC", within: float = 1.0
) -> Parts:
    """Check that the row is above the other by what the paper says."""
    found = read(table, panel, row, metric) - read(table, panel, other, metric)
    yield Verdict(abs(found - said) <= within, f"{metric} {row} − {other}: {found:+.1f}, said {said:+.4g}")


def about(read: Read, table: str, panel: str, x: float, said: Mapping[str, float], within: float) -> Parts:
    """Check that values of KTRR are near those that the text names."""
    found = {metric: read(table, panel, "KTRR", metric, x) for metric in said}
    text = ", ".join(f"{metric} {value:.1f} (said {said[metric]:g})" for metric, value in found.items())
    yield Verdict(all(abs(found[metric] - said[metric]) <= within for metric in said), text)


def at_least(read: Read, table: str, panel: str, places: Sequence[float], bounds: Mapping[str, float]) -> Parts:
    """Check that all values of KTRR along a part of a curve are above the bounds."""
    lows = {metric: min(read(table, panel, "KTRR", metric, x) for x in places) for metric in bounds}
    text = ", ".join(f"{metric} ≥ {low:.1f} (said {bounds[metric]:g})" for metric, low in lows.items())
    yield Verdict(all(lows[metric] > bounds[metric] for metric in bounds), text)


def peak(read: Read, table: str, penalties: Sequence[float], size: int, penalty: float) -> Parts:
    """Check that the surface of accuracies is highest at this size and penalty."""
    values = {(n, reg): read(table, "(a)", f"n_nonzero {n}", "AC", reg) for n in range(3, 8) for reg in penalties}
    n, reg = largest(values)
    text = f"best at λ = {reg:g}, η = {n} with {values[n, reg]:.1f}; λ = {penalty:g}, η = {size} has "
    yield Verdict((n, reg) == (size, penalty), f"{text}{values[size, penalty]:.1f}")


def middle_wins(read: Read, table: str) -> Parts:
    """Check that every accuracy of the curve (c) for η from 3 to 10 is above every one of the rest."""
    low = min(read(table, "(c)", "KTRR", "AC", x) for x in range(3, 11))
    values = {x: read(table, "(c)", "KTRR", "AC", x) for x in (1, 2, 20, 30, 40, 50)}
    x = largest(values)
    yield Verdict(low > values[x], f"lowest inside {low:.1f}, highest outside {values[x]:.1f} (η = {x:g})")


def leads(read: Read, figure: str, panel: str, row: str, levels: Sequence[float], rivals: Names) -> Parts:
    """Check that the row is the best at all levels."""
    wins, parts = 0, []
    for x in levels:
        own, values = read(figure, panel, row, "AC", x), read.rows(figure, panel, rivals, "AC", x)
        rival = largest(values)
        wins += own > values[rival]
        parts.append(f"{x:g}: {own:.0f}, {rival} {values[rival]:.0f}")
    yield Verdict(wins == len(levels), f"{panel}: best at {wins} of {len(levels)} levels ({'; '.join(parts)})")


def easier_objects(read: Read, figure: str, levels: Sequence[float]) -> Parts:
    """Check that all methods are better on COIL20 than on ExYaleB, at all levels."""
    wins = [
        read(figure, "COIL20", row, "AC", x) > read(figure, "ExYaleB", row, "AC", x) for row in METHODS for x in levels
    ]
    yield Verdict(all(wins), f"{sum(wins)} of {len(wins)} pairs")


def worse_than_gaussian(read: Read, panel: str) -> Parts:
    """Check that every method has a lower accuracy at 5 % salt and pepper than at 50 dB."""
    worse = sum(read("fig8", panel, row, "AC", 5) < read("fig7", panel, row, "AC", 50) for row in METHODS)
    yield Verdict(worse == len(METHODS), f"{panel}: {worse} of {len(METHODS)} methods")


def drops(read: Read, panel: str) -> Parts:
    """Check that the low-rank methods lose more than ten points of accuracy from 50 to 10 dB."""
    rows = ("LRR1", "LRR2", "LatLRR")
    found = {row: read("fig7", panel, row, "AC", 50) - read("fig7", panel, row, "AC", 10) for row in rows}
    yield Verdict(all(value > 10 for value in found.values()), f"{panel}, points lost: {told(found, '.0f')}")


def below(
    read: Read, table: str, panel: str, rows: Names, bound: float, metric: str = "AC", places: Sequence[At] = (None,)
) -> Parts:
    """Check that no row is above the bound, at any of the places."""
    values = {(row, x): read(table, panel, row, metric, x) for row in rows for x in places}
    row, x = largest(values)
    yield Verdict(values[row, x] < bound, f"highest: {row} {values[row, x]:.1f}{'' if x is None else f' at {x:g}'}")


def differs_from_all(read: Read, table: str, panel: str, rivals: Names, metrics: Names) -> Parts:
    """Check that the rank-sum test finds the paper's method different from every rival in every metric."""
    found = [read.p(table, panel, rival, metric) < LEVEL for metric in metrics for rival in rivals]
    yield Verdict(all(found), f"{sum(found)} of {len(found)} tests")


def times_alike(read: Read) -> Parts:
    """Check that the rank-sum test finds no difference between the times of KTRR and TRR."""
    found = {f"{panel} {metric}": read.p("table7", panel, "TRR", metric) for panel in SETS for metric in ("t1", "t2")}
    yield Verdict(all(p >= LEVEL for p in found.values()), f"p: {told(found, '.2g')}")


def inside(read: Read) -> Parts:
    """Check that more than nine tenths of the similarities lie in the blocks."""
    share = read("fig2", "128 images", "KTRR", "weight inside")
    yield Verdict(share > 90, f"{share:.1f} % of the weight inside the blocks")


def kernels_matter(read: Read) -> Parts:
    """Check that the best and the worst kernel are more than five points apart on every data set."""
    values = {panel: read.rows("table2", panel, KERNELS).values() for panel in SETS}
    gaps = {panel: max(found) - min(found) for panel, found in values.items()}
    yield Verdict(min(gaps.values()) > 5, f"points between best and worst: {told(gaps)}")


def falls(read: Read) -> Parts:
    """Check that accuracy falls with the number of objects."""
    few, some, many = (read("fig5", "COIL100", "KTRR", "AC", t) for t in (10, 50, 100))
    yield Verdict(few > some > many, f"AC {few:.1f}, {some:.1f}, {many:.1f} at 10, 50, 100 objects")


def useless(read: Read) -> Parts:
    """Check that salt and pepper changes fewer pixels of COIL20."""
    faces, objects = (read("fig6", f"(b) {panel}", "first image", "changed (%)", 25) for panel in SETS[:2])
    yield Verdict(objects < faces, f"changed at 25 %: COIL20 {objects:.1f} %, ExYaleB {faces:.1f} %")


def twice_as_fast(read: Read) -> Parts:
    """Check that EKTRR takes at most half the time of the next."""
    times = read.rows("table8", "Covtype", LARGE, "seconds")
    rival = min(times, key=times.__getitem__)
    ratio = times[rival] / read("table8", "Covtype", "EKTRR", "seconds")
    yield Verdict(ratio >= 2, f"{rival}, the next, takes {ratio:.2g} times as long")
