"""Which cases of a parametrised test run by default; the others are marked `full`.

A product of parameters is covered, not enumerated: every value of every axis occurs, in combinations drawn by the
test's name. An axis that runs through the methods, or is as long, gives a fifth of its values, the next fifth to the
next test of the file. Of seeds the first is enough. Pairs listed in one parametrisation are one axis: all of them stay.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from zlib import crc32

import pytest

from subspaces import registry

FEW, MANY = 6, 12
"""Of so few methods all are taken; of more values than the second number a share, whatever they are."""

SHARE = 5
"""Every so-manieth method occurs in a test; the next test of the file takes the following ones."""

METHODS = {name for entry in registry.METHODS for name in (entry.name, entry.class_name)} | {"Method"}
"""Names and classes of the methods, and what the contract of the representations is written for."""


def mark_full(items: list[pytest.Item]) -> None:
    """Mark the cases that the default run leaves out."""
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    turn: Counter[str] = Counter()
    for name, cases in tests.items():
        file = name.partition("::")[0]
        turn[file] += 1
        if len(cases) > 1:
            kept = set(covering([axes(case) for case in cases], crc32(file.encode()) + turn[file], name))
            for i, case in enumerate(cases):
                if i not in kept:
                    case.add_marker("full")


def covering(cases: list[dict[str, tuple[str, bool]]], turn: int, name: str) -> list[int]:
    """Few of the cases, with every value of every axis among them (of methods a share, of seeds the first)."""
    wanted = set()
    for axis in dict.fromkeys(axis for case in cases for axis in case):
        values = list(dict.fromkeys(case[axis][0] for case in cases if axis in case))
        methods = len(values) > FEW and all(case[axis][1] for case in cases if axis in case)
        long = len(values) > MANY and "," not in axis and axis not in ("check", "page")
        if axis in ("rng", "seed"):
            values = values[:1]
        elif methods or long:
            values = values[turn % SHARE :: SHARE]
        wanted.update((axis, value) for value in values)
    order = list(range(len(cases)))
    Random(name).shuffle(order)
    kept = []
    for least in range(max(map(len, cases)), 0, -1):  # first the cases that bring the most new values
        for i in order:
            new = wanted.intersection((axis, value) for axis, (value, _) in cases[i].items())
            if len(new) >= least:
                kept.append(i)
                wanted -= new
    return kept


def axes(case: pytest.Function) -> dict[str, tuple[str, bool]]:
    """For every axis of the product, the value of a case and whether it is a method."""
    values = case.callspec.params
    groups = [names(mark.args[0]) for mark in case.iter_markers("parametrize")]
    if {"estimator", "check"} <= set(values):  # scikit-learn lists the pairs, but they are a product
        groups = [["estimator"], ["check"]]
    grouped = {name for group in groups for name in group}
    groups += [[name] for name in values if name not in grouped]  # fixtures
    return {
        ",".join(group): (repr([key(values[name]) for name in group]), len(group) == 1 and is_method(values[group[0]]))
        for group in groups
        if set(group) <= set(values)
    }


def names(argument: str | list[str] | tuple[str, ...]) -> list[str]:
    return [name.strip() for name in argument.split(",")] if isinstance(argument, str) else list(argument)


def key(value: object) -> str:
    """Equal for equal values: also for the functions that scikit-learn wraps anew for every estimator."""
    value = value.func if isinstance(value, partial) else value
    name = getattr(value, "__qualname__", "<")
    return repr(value) if "<" in name else name


def is_method(value: object) -> bool:
    return (value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)) in METHODS
