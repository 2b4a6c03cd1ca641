"""A cell of a table, for the tests of the reproduction."""

from __future__ import annotations


def a_cell(**changes):
    cell = {
        "kind": "cut",
        "points": {"name": "curves"},
        "method": "ktrr",
        "parameters": {"reg": 0.01, "n_nonzero": 8},
        "cuts": [{"name": "k-means", "restarts": 3, "init": "k-means++", "seeds": [0, 1]}],
        "version": "1",
        "code": 1,
    }
    return {**cell, **changes}
