"""All results at hand by name, ours and the paper's: what sentences and verdicts on the page are computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from reproduction.statistics import Record

Results = Mapping[str, Sequence[Record]]
"""Records by the name of their experiment."""

NEAR = 0.3
"""Points of a score that count as the same number."""


class MissingResultError(LookupError):
    """A number that was not run, or that the paper does not print."""


class Place(NamedTuple):
    """Where a number stands."""

    experiment: str
    panel: str
    row: str
    metric: str
    x: float | None


Read = Callable[[str, str, str, str, "float | None"], float]
"""Experiment, panel, row, metric, x → the number; MissingResultError where there is none."""


def reader(results: Results, side: str) -> Read:
    """Numbers by their places: `side` is ``mean`` (ours), ``paper``, ``p`` or ``paper_sd``."""
    index: dict[Place, Record] = {}
    for name, records in results.items():
        for record in records:
            index.setdefault(Place(name, record.panel, record.row, record.metric, record.x), record)  # the first cut

    def read(experiment: str, panel: str, row: str, metric: str, x: float | None = None) -> float:
        record = index.get(Place(experiment, panel, row, metric, x))
        value = None if record is None else getattr(record, side)
        if value is None:
            raise MissingResultError(f"{experiment}, {panel}, {row}, {metric}")
        return float(value)

    return read


def rows_of_the_paper(results: Results, experiment: str, panel: str) -> list[str]:
    """Rows that the paper has in a panel, in order."""
    found = [r.row for r in results.get(experiment, ()) if r.panel == panel and r.paper is not None]
    return list(dict.fromkeys(found))


def reaches(found: Sequence[Record]) -> bool:
    """Whether the paper's number is in the range of our runs, all cuts of the graph together."""
    low = min(record.low for record in found if record.low is not None)
    high = max(record.high for record in found if record.high is not None)
    printed = found[0].paper
    return printed is not None and low - NEAR <= printed <= high + NEAR


def compared(records: Sequence[Record], skip: Sequence[str]) -> dict[Place, list[Record]]:
    """Places where both have a number, metrics to skip left out, with the records of all cuts of each."""
    places: dict[Place, list[Record]] = {}
    for record in records:
        if record.difference is not None and record.low is not None and record.metric not in skip:
            places.setdefault(Place("", record.panel, record.row, record.metric, record.x), []).append(record)
    return places
