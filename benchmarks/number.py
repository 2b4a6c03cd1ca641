"""The number of clusters: weights fitted to labelled sets, judged on families of sets that were left out.

    SUBSPACES_DATA=folder python benchmarks/number.py --more folder           # features, fit, table, constants
    python benchmarks/number.py --more folder --write                         # writes src/subspaces/selection/fitted.py
    python benchmarks/number.py --drills 100                                  # one piece, two or many subspaces
    python benchmarks/number.py --rivals --more folder                        # the table with rivals beside

Features are kept in benchmarks/results/number and not computed again. Everything printed about "left out" was computed
with weights that saw no set of the same family.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import measured
from _automatic.sets import Set, all_sets
from _number import drills, fit, nulls, rivals
from subspaces.selection import count
from subspaces.selection.candidates import AUTO, tried_on
from subspaces.selection.graphs import Candidate, Method, candidates_of
from subspaces.utils.process import one_thread, quiet

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
STORE = HERE.parent / "results" / "number"
FITTED = HERE.parents[1] / "src" / "subspaces" / "selection" / "fitted.py"
GIVEN = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "affine", "assign_labels"), AUTO)


def evidence(graphs: list[Candidate], n_features: int, references: np.ndarray) -> dict[str, np.ndarray]:
    """Features of the splits and of the levels of one set, and what is true of each split."""
    free = [np.maximum(graph.communities, 0) for graph in graphs]
    deciding = count.most_supported(graphs)
    chosen, own = [graphs[i] for i in deciding], [free[i] for i in deciding]
    candidates, agreement, separation, border = count._judged_numbers(chosen, 0, count._FINE)
    pieces = count.fine_pieces(chosen[0].W)
    tree = count.merged([graph.W for graph in chosen], pieces)
    together = count._kept_together(tree, pieces, own)
    return {
        "split": count.split_features(tree, together, n_features),
        "true": np.array([fit.split_truth(tree, pieces, y) for y in references]),
        "merges": tree.merges,
        "sizes": tree.sizes,
        "candidates": candidates,
        "agreement": agreement,
        "separation": separation,
        "border": border,
        "numbers": np.array(sorted({int(y.max()) for y in references})),
    }


def features_of(data: Set) -> dict[str, Any]:
    """As :func:`evidence`, kept in a file."""
    file = STORE / f"{data.name.replace('/', '__')}.npz"
    if not file.exists():
        tried = tried_on(data.X, GIVEN, neighbors=True)
        with quiet(), one_thread("blas"):
            found = evidence(candidates_of(data.X, tried, Method()), data.X.shape[1], data.references)
        STORE.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **found)
    with np.load(file) as arrays:
        return {**arrays, "name": data.name, "kind": fit.kind_of(data), "family": data.family}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path, help="folder of NAME.npz with X and y, and INDEX.csv with family")
    parser.add_argument("--write", action="store_true", help="write the weights fitted to all sets into the package")
    parser.add_argument("--rivals", action="store_true", help="eigengap, HDBSCAN, Leiden, silhouette and gap beside")
    parser.add_argument("--drills", type=int, help="only so many draws of data that are one piece, or two, or many")
    parser.add_argument("--kinds", nargs="*", default=(), help="of the drills: these only")
    arguments = parser.parse_args()
    if arguments.drills:
        with measured.kept("number_drills", folders=measured.SEARCH):
            return drills.print_table(arguments.drills, arguments.kinds, print)
    warnings.simplefilter("ignore")
    data = [*all_sets(FOLDER, arguments.more), *nulls.draws()]
    fit.read_index(arguments.more)
    rows = [features_of(one) for one in data]
    left_out = fit.left_out(rows)
    with measured.kept("number", folders=measured.SEARCH):
        fit.print_table(left_out)
    if arguments.rivals:
        with measured.kept("number_rivals", folders=measured.SEARCH):
            rivals.print_table(data, left_out, STORE)
    if arguments.write:
        FITTED.write_text(fit.as_module(*fit.fitted(rows), fit.mass_for(left_out)))


if __name__ == "__main__":
    main()
