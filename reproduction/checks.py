"""Kinds of statements about numbers, each as a check that says whether it holds, and with what figures.

A check reads numbers by their places, so the same one judges the paper's own numbers and ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.facts import Read

SCORES = ("AC", "NMI", "ARI", "F")
RIVALS = ("TRR", "LSR1", "LSR2", "KLRR", "KSSC", "LatLRR", "LRR1", "LRR2", "SSC", "SMCE", "LSA", "SC")
KERNEL_OF = {"TRR": "KTRR", "LRR1": "KLRR", "LRR2": "KLRR", "SSC": "KSSC"}
"""Linear methods and their kernel extensions."""


@dataclass(frozen=True)
class Verdict:
    """Whether a statement holds, and the figures that say so."""

    holds: bool
    figures: str


Check = Callable[[Read], Verdict]


def all_of(*checks: Check) -> Check:
    """Every part has to hold; the figures are those of the parts that fail, or of all."""

    def check(read: Read) -> Verdict:
        found = [each(read) for each in checks]
        failed = [verdict for verdict in found if not verdict.holds]
        return Verdict(not failed, "; ".join(verdict.figures for verdict in (failed or found)))

    return check


def best(table: str, panel: str, row: str, rivals: Sequence[str], metrics: Sequence[str] = SCORES) -> Check:
    """The row has the largest value, in every metric."""

    def check(read: Read) -> Verdict:
        parts, holds = [], True
        for metric in metrics:
            own = read(table, panel, row, metric, None)
            rival = max(rivals, key=lambda name: read(table, panel, name, metric, None))
            other = read(table, panel, rival, metric, None)
            holds &= own >= other
            parts.append(f"{metric} {own:.1f}, best other {rival} {other:.1f}")
        return Verdict(holds, "; ".join(parts))

    return check


def higher(table: str, panel: str, row: str, others: Sequence[str], metric: str = "AC", by: float = 0.0) -> Check:
    """The row is above all the others, by more than `by`."""

    def check(read: Read) -> Verdict:
        own = read(table, panel, row, metric, None)
        values = {name: read(table, panel, name, metric, None) for name in others}
        told = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        return Verdict(all(own - value > by for value in values.values()), f"{panel}: {row} {own:.4g}, {told}")

    return check


def gap(table: str, panel: str, row: str, other: str, said: float, *, metric: str = "AC", within: float = 1.0) -> Check:
    """The row is above the other by what the paper says."""

    def check(read: Read) -> Verdict:
        found = read(table, panel, row, metric, None) - read(table, panel, other, metric, None)
        return Verdict(abs(found - said) <= within, f"{metric} {row} − {other}: {found:+.1f}, said {said:+.4g}")

    return check


def kernels_win(table: str, panel: str) -> Check:
    """Every linear method is below its kernel extension."""
    return all_of(*(higher(table, panel, kernel, [linear]) for linear, kernel in KERNEL_OF.items()))


def about(table: str, panel: str, row: str, x: float | None, said: Mapping[str, float], within: float) -> Check:
    """Values near those that the text names."""

    def check(read: Read) -> Verdict:
        found = {metric: read(table, panel, row, metric, x) for metric in said}
        told = ", ".join(f"{metric} {value:.1f} (said {said[metric]:g})" for metric, value in found.items())
        return Verdict(all(abs(found[metric] - said[metric]) <= within for metric in said), told)

    return check


def at_least(table: str, panel: str, row: str, places: Sequence[float], bounds: Mapping[str, float]) -> Check:
    """All values along a part of a curve are above the bounds."""

    def check(read: Read) -> Verdict:
        lows = {metric: min(read(table, panel, row, metric, x) for x in places) for metric in bounds}
        told = ", ".join(f"{metric} ≥ {low:.1f} (said {bounds[metric]:g})" for metric, low in lows.items())
        return Verdict(all(lows[metric] > bounds[metric] for metric in bounds), told)

    return check


def peak(table: str, sizes: Sequence[int], penalties: Sequence[float], size: int, penalty: float) -> Check:
    """The best place of the surface of accuracies."""

    def check(read: Read) -> Verdict:
        values = {(n, reg): read(table, "(a)", f"n_nonzero {n}", "AC", reg) for n in sizes for reg in penalties}
        n, reg = max(values, key=lambda place: values[place])
        told = f"best at λ = {reg:g}, η = {n} with {values[n, reg]:.1f}; λ = {penalty:g}, η = {size} has "
        return Verdict((n, reg) == (size, penalty), f"{told}{values[size, penalty]:.1f}")

    return check


def inside_beats_outside(table: str, inside: Sequence[float], outside: Sequence[float]) -> Check:
    """Every accuracy of one part of the curve (c) is above every one of the rest."""

    def check(read: Read) -> Verdict:
        low = min(read(table, "(c)", "KTRR", "AC", x) for x in inside)
        x = max(outside, key=lambda x: read(table, "(c)", "KTRR", "AC", x))
        high = read(table, "(c)", "KTRR", "AC", x)
        return Verdict(low > high, f"lowest inside {low:.1f}, highest outside {high:.1f} (η = {x:g})")

    return check


def leads(figure: str, panel: str, row: str, levels: Sequence[float], rivals: Sequence[str] = RIVALS) -> Check:
    """The row is the best at all levels."""

    def check(read: Read) -> Verdict:
        wins, told = 0, []
        for x in levels:
            own = read(figure, panel, row, "AC", x)
            rival = max(rivals, key=lambda name: read(figure, panel, name, "AC", x))
            other = read(figure, panel, rival, "AC", x)
            wins += own > other
            told.append(f"{x:g}: {own:.0f}, {rival} {other:.0f}")
        return Verdict(wins == len(levels), f"{panel}: best at {wins} of {len(levels)} levels ({'; '.join(told)})")

    return check


def better_on(figure: str, panel: str, worse: str, levels: Sequence[float]) -> Check:
    """All methods are better on one data set than on another, at all levels."""

    def check(read: Read) -> Verdict:
        rows = ("KTRR", *RIVALS)
        pairs = [(read(figure, panel, row, "AC", x), read(figure, worse, row, "AC", x)) for row in rows for x in levels]
        wins = sum(a > b for a, b in pairs)
        return Verdict(wins == len(pairs), f"{wins} of {len(pairs)} pairs")

    return check


def compared_levels(first: tuple[str, float], second: tuple[str, float], panel: str) -> Check:
    """Every method has a higher accuracy in the first figure and level than in the second."""

    def check(read: Read) -> Verdict:
        rows = ("KTRR", *RIVALS)
        worse = [
            r for r in rows if read(second[0], panel, r, "AC", second[1]) < read(first[0], panel, r, "AC", first[1])
        ]
        return Verdict(len(worse) == len(rows), f"{panel}: {len(worse)} of {len(rows)} methods")

    return check


def drops(figure: str, panel: str, rows: Sequence[str], start: float, end: float, by: float) -> Check:
    """The accuracy falls by more than so much between two levels."""

    def check(read: Read) -> Verdict:
        found = {row: read(figure, panel, row, "AC", start) - read(figure, panel, row, "AC", end) for row in rows}
        told = ", ".join(f"{row} {value:.0f}" for row, value in found.items())
        return Verdict(all(value > by for value in found.values()), f"{panel}, points lost: {told}")

    return check


def below(figure: str, panel: str, rows: Sequence[str], levels: Sequence[float], bound: float) -> Check:
    """No row is above a bound at these levels."""

    def check(read: Read) -> Verdict:
        values = {(row, x): read(figure, panel, row, "AC", x) for row in rows for x in levels}
        row, x = max(values, key=lambda place: values[place])
        return Verdict(values[row, x] < bound, f"highest: {row} {values[row, x]:.1f} at {x:g}")

    return check


def differs_from_all(read_p: Read, table: str, panel: str, rivals: Sequence[str], metrics: Sequence[str]) -> Check:
    """The rank-sum test finds the paper's method different from every rival in every metric (our runs only)."""

    def check(read: Read) -> Verdict:
        found = [read_p(table, panel, rival, metric, None) for metric in metrics for rival in rivals]
        different = sum(p < 0.05 for p in found)
        return Verdict(different == len(found), f"{different} of {len(found)} tests")

    return check
