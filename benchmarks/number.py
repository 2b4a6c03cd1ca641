"""The number of clusters: the rule beside plain ones on sets with labels, its ranges, and what it says of noise.

    SUBSPACES_DATA=folder nice python benchmarks/number.py
    python benchmarks/number.py --more folder                          # with your own NAME.npz (X, y)
    python benchmarks/number.py --part 0/2                             # only computes every second set

No label is looked at by any rule. At most `MOST` samples of a set are taken. Tables go to docs/measured/number*.json;
what was found on a set is kept in benchmarks/results/number and not computed again. At the end the CPU time of all sets
is said.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import measured
from _automatic.sets import Set, some
from _number.sets import family_of, known, noise
from subspaces import KTRR, SubspaceClustering

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
STORE = HERE.parent / "results" / "number"
RULES = {
    "ours": "**SubspaceClustering**",
    "plain": "one plain KTRR, modularity",
    "natural": "median natural number, then the search",
    "hdbscan": "HDBSCAN",
    "given": "the number given",
}
MOST = 600
"""Samples of a set, so that all of them take some ten minutes."""
Row = dict[str, Any]


def row_of(data: Set, family: str) -> Row:
    """What every rule finds on one set; kept in a file."""
    file = STORE / f"{data.name.replace('/', '__')}.json"
    if not file.exists():
        STORE.mkdir(parents=True, exist_ok=True)
        start = time.process_time()
        found = found_on(Set(data.name, *some(data.X, data.references, MOST)))
        file.write_text(json.dumps(found | {"seconds": time.process_time() - start}))
    return json.loads(file.read_text()) | {"name": data.name, "family": family, "numbers": data.numbers}


def found_on(data: Set) -> Row:
    model = SubspaceClustering().fit(data.X)
    found = model.selection_.n_clusters
    row: Row = {name: getattr(found, name) for name in ("estimate", "low", "high", "evidence")}
    row |= {"confidence": float(model.confidence_.mean()), "purity": purity(data, model.labels_)}
    row["ours"] = scored(data, model.labels_)
    if data.numbers == [1]:
        return row
    wide = data.kind == "images, spectra, genes"
    plain = KTRR(None, assign_labels="modularity", reg=0.1, n_nonzero=5 if wide else 20,
                 scaling="unit" if wide else "standard").fit(data.X)  # fmt: skip
    natural = SubspaceClustering(max(1, round(float(np.median(found.natural))))).fit(data.X)
    dense = HDBSCAN(copy=True).fit(data.X if wide else StandardScaler().fit_transform(data.X))
    given = [scored(data, SubspaceClustering(k).fit(data.X).labels_) for k in data.numbers]
    row |= {"plain": scored(data, plain.labels_), "natural": scored(data, natural.labels_)}
    return row | {"hdbscan": scored(data, dense.labels_), "given": max(given, key=lambda pair: pair[1])}


def scored(data: Set, labels: np.ndarray) -> tuple[int, float]:
    """Number of clusters and adjusted Rand index, of the reference that suits best; noise does not count."""
    index = [adjusted_rand_score(y[y > 0], labels[y > 0]) for y in data.references]
    return max(1, len(set(labels.tolist()) - {-1})), float(max(index))


def purity(data: Set, labels: np.ndarray) -> float:
    """Share of the samples that have the class most frequent in their cluster."""
    shares = []
    for y in data.references:
        pairs = np.zeros((labels.max() + 1, y.max() + 1))
        np.add.at(pairs, (labels[y > 0], y[y > 0]), 1.0)
        shares.append(pairs.max(axis=1).sum() / pairs.sum())
    return float(max(shares))


def off(row: Row, k: int) -> float:
    """|log| of the ratio to the nearest number of classes."""
    return float(np.abs(np.log(k / np.array(row["numbers"]))).min())


def within(row: Row, k: int, share: float) -> bool:
    return any(abs(k - true) <= share * true + 1e-9 for true in row["numbers"])


def by_family(rows: list[Row]) -> dict[str, list[Row]]:
    families = dict.fromkeys(row["family"] for row in rows)
    return {family: [row for row in rows if row["family"] == family] for family in families} | {"all": rows}


def rules_table(rows: list[Row]) -> None:
    print("| within 10 %, within 30 %, mean log ratio, ARI | sets | " + " | ".join(RULES.values()) + " |")
    print("|---" * (2 + len(RULES)) + "|")
    for family, part in by_family(rows).items():
        cells = []
        for rule in RULES:
            ks, index = [row[rule][0] for row in part], np.mean([row[rule][1] for row in part])
            near = [np.mean([within(*pair, share) for pair in zip(part, ks, strict=True)]) for share in (0.1, 0.3)]
            far = np.mean([off(*pair) for pair in zip(part, ks, strict=True)])
            counted = f"{near[0]:.0%}, {near[1]:.0%}, {far:.2f}, " if rule != "given" else ""
            cells.append(f"{counted}{index:.3f}")
        print(f"| {family} | {len(part)} | " + " | ".join(cells) + " |")


def ranges_table(rows: list[Row]) -> None:
    print("| family | range holds the number | median high / low | confidence − purity | gap, steady, none |")
    print("|---|---|---|---|---|")
    for family, part in by_family(rows).items():
        holds = np.mean([any(row["low"] <= k <= row["high"] for k in row["numbers"]) for row in part])
        wide = np.median([row["high"] / row["low"] for row in part])
        sure = np.mean([row["confidence"] - row["purity"] for row in part])
        print(f"| {family} | {holds:.0%} | {wide:.2f} | {sure:+.3f} | {verdicts(part)} |")


def verdicts(rows: list[Row]) -> str:
    how_often = Counter(row["evidence"] for row in rows)
    return ", ".join(str(how_often[evidence]) for evidence in ("gap", "steady", "none"))


def noise_table(rows: list[Row]) -> None:
    print("| one piece | draws | gap, steady, none | most often, if not one |\n|---|---|---|---|")
    for kind, part in by_family(rows).items():
        wrong = Counter(row["estimate"] for row in part if row["estimate"] > 1)
        print(f"| {kind} | {len(part)} | {verdicts(part)} | {', '.join(str(k) for k, _ in wrong.most_common(3))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path, help="folder of NAME.npz with X and y")
    parser.add_argument("--part", default="0/1", help="i/n: compute only every n-th set, for processes side by side")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    number, parts = map(int, arguments.part.split("/"))
    sets = [*((family_of(data), data) for data in known(FOLDER, arguments.more)), *noise(1)]
    rows = [row_of(data, family) for i, (family, data) in enumerate(sets) if i % parts == number]
    pieces, real = ([row for row in rows if (row["numbers"] == [1]) == one] for one in (True, False))
    tables = (("", rules_table, real), ("_ranges", ranges_table, real), ("_noise", noise_table, pieces))
    if parts == 1:
        for name, table, part in tables:
            with measured.kept(f"number{name}", folders=measured.SEARCH):
                table(part)
    print(f"{sum(row['seconds'] for row in rows):.0f} s of CPU time")


if __name__ == "__main__":
    main()
