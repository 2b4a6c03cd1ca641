"""The number that the modularity cut finds: communities as they are, and joined where they are not distinct.

    SUBSPACES_DATA=folder python benchmarks/communities.py          # KTRR's default graph of every set, a few minutes

A threshold is judged by the share of sets whose number comes within 10 % of the number of classes, then by the mean
adjusted Rand index; "left out" is what the threshold scores that all other families of sets ask for. The tables go to
docs/measured/communities.json.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import measured
from _automatic.sets import Set, all_sets
from _number.sets import family_of
from subspaces import KTRR
from subspaces.spectral.partition import cut_by_modularity, distinct_communities

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
SHARES = (0.0, 0.7, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2)
"""Of chance's edges, from which two communities are one; 0 stands for communities as they are."""
HEAD = "| within 10 %, within 30 %, ARI | sets | as found | half of chance | left out |\n|---|---:|---:|---:|---:|"


def judged(data: Set) -> np.ndarray:
    """Within 10 %, within 30 % and ARI (of the best reference) for every share, one row each."""
    model = KTRR(None, assign_labels="modularity", random_state=0).fit(data.X)
    W = sparse.csr_array(model.affinity_matrix_)
    known = np.asarray(W.sum(axis=1)).ravel() > 0
    W, references = W[known][:, known], data.references[:, known]
    found, rows = cut_by_modularity(W), []
    for share in SHARES:
        labels = distinct_communities(W, found, share) if share else found
        off = min(abs(int(labels.max()) + 1 - k) / k for k in data.numbers)
        ari = max(adjusted_rand_score(y[y > 0], labels[y > 0]) for y in references)
        rows.append([off <= 0.1 + 1e-9, off <= 0.3 + 1e-9, ari])
    return np.array(rows, dtype=float)


def best(scores: np.ndarray) -> int:
    """The share that most sets ask for."""
    mean = scores.mean(axis=0)
    return int(np.lexsort((mean[:, 2], mean[:, 0]))[-1])


def cell(rows: np.ndarray) -> str:
    within, nearly, ari = rows.mean(axis=0)
    return f"{within:.0%}, {nearly:.0%}, {ari:.3f}"


def main() -> None:
    warnings.simplefilter("ignore")
    scores, kinds, families = [], [], []
    for data in all_sets(FOLDER):
        scores.append(judged(data))
        kinds.append(data.kind)
        families.append(family_of(data))
        print(data.name, *(f"{share}: {row[2]:.3f}" for share, row in zip(SHARES, scores[-1], strict=True)), flush=True)
    table, kind, family = np.array(scores), np.array(kinds), np.array(families)
    chosen = np.array([best(table[family != one]) for one in family])
    left_out = table[np.arange(len(table)), chosen]
    half = SHARES.index(0.5)
    lines = [HEAD]
    for name in [*dict.fromkeys(kinds), "all"]:
        part = np.full(len(kind), True) if name == "all" else kind == name
        cells = (cell(table[part, 0]), cell(table[part, half]), cell(left_out[part]))
        lines.append(f"| {name} | {int(part.sum())} | {' | '.join(cells)} |")
    asked = ", ".join(f"{SHARES[i]:g} ({int((chosen == i).sum())} sets)" for i in np.unique(chosen))
    lines += ["", f"What the others ask for: {asked}.", "", "| share of chance | all sets |", "|---:|---:|"]
    lines += [f"| {share:g} | {cell(table[:, i])} |" for i, share in enumerate(SHARES)]
    with measured.kept("communities"):
        print(*lines, sep="\n")


if __name__ == "__main__":
    main()
