"""SubspaceClustering beside plain rivals, on data of every kind.

    SUBSPACES_DATA=folder python benchmarks/automatic.py               # everything; an hour
    python benchmarks/automatic.py --sets digits made/cells            # some of it
    python benchmarks/automatic.py --more folder                       # with your own NAME.npz (X, y)
    python benchmarks/automatic.py --cost                              # search over plain fit at n = 2,000
    python benchmarks/automatic.py --seeds 5                           # every seed of five on the sets of the paper
    python benchmarks/automatic.py --large                             # MNIST, all 60,000, and Covtype, all 581,012

Prints Markdown and writes docs/measured/automatic.json. The number of clusters is given to everybody. Rows are kept in
benchmarks/results/automatic and not computed again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import measured
from _automatic import peers
from _automatic.sets import Set, all_sets
from subspaces import KTRR, SubspaceClustering, datasets
from subspaces.metrics import accuracy, adjusted_rand
from subspaces.selection import choose

HERE = Path(__file__).resolve()
BESIDE = HERE.parents[2] / "shared" / "data"
FOLDER = Path(os.environ.get("SUBSPACES_DATA", BESIDE))
STORE = HERE.parent / "results" / "automatic"
Row = dict[str, Any]


def row_of(data: Set, k: int) -> Row:
    """SubspaceClustering, plain KTRR and the rivals on one set; what fails scores nothing; kept in a file."""
    file = STORE / f"{data.name.replace('/', '__')}-{k}.json"
    if not file.exists():
        found = choose(data.X, n_clusters=k, graph="auto", affine="auto", neighbors=True, keep_partitions=True)
        references = data.references[:, found.searched]
        (ac, ari), *others = (scored(references, labels, k) for labels in (found.labels, *found.partitions))
        rivals = {"KTRR, defaults": scored(data.references, KTRR(k).fit(data.X).labels_, k)}
        for title, points in peers.variants(data.X).items():
            for name, method in peers.METHODS.items():
                try:
                    rivals[name + title] = scored(data.references, method(points, k), k)
                except (ValueError, ArithmeticError, TypeError):
                    rivals[name + title] = (0.0, 0.0)
        STORE.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"ac": ac, "ari": ari, "best": max(ac for ac, _ in others), "rivals": rivals}))
    return json.loads(file.read_text()) | {"name": data.name, "k": k, "kind": data.kind}


def scored(references: np.ndarray, labels: np.ndarray, k: int) -> tuple[float, float]:
    """Accuracy and adjusted Rand index, the best over the references with k classes; noise does not count."""
    rows = [
        (accuracy(y[y > 0], labels[y > 0]), adjusted_rand(y[y > 0], labels[y > 0])) for y in references if y.max() == k
    ]
    return max(ac for ac, _ in rows), max(ari for _, ari in rows)


def main_table(rows: list[Row]) -> None:
    """Mean accuracy by kind, and how often the front door is behind the best rival of each set."""
    names = [name for name in rows[0]["rivals"] if not name.startswith("one label for all, ")]
    kinds = ["plane", "table", "images, spectra, genes", "motion", "made"]
    print("| | " + " | ".join(f"{kind} ({sum(r['kind'] == kind for r in rows)})" for kind in kinds) + " | all |")
    print("|---" * (len(kinds) + 2) + "|")

    def line(title: str, value: Callable[[Row], float]) -> None:
        parts = [[value(r) for r in rows if r["kind"] == kind] for kind in kinds]
        print(f"| {title} | " + " | ".join(f"{100 * np.mean(p):.1f}" if p else "" for p in parts), end="")
        print(f" | {100 * np.mean([value(r) for r in rows]):.1f} |")

    line("**SubspaceClustering**", lambda r: r["ac"])
    for name in names:
        line(name, lambda r, name=name: r["rivals"][name][0])
    line("best rival of each set", best_rival)
    line("best candidate of each set, by labels", lambda r: r["best"])
    real = [r for r in rows if r["kind"] != "made" and r["kind"] != "plane"]
    behind = np.array([best_rival(r) - r["ac"] for r in real])
    level, near = np.mean(behind <= 1e-9), np.mean(behind <= 0.05)
    print(f"\nReal sets: at least as good as the best rival on {level:.0%} of {len(real)}, no more than 5 points below "
          f"on {near:.0%}, worst {100 * behind.max():.1f} points below.")  # fmt: skip


def best_rival(row: Row) -> float:
    return max(score for name, (score, _) in row["rivals"].items() if not name.startswith("KTRR"))


def gagolews_table(rows: list[Row]) -> None:
    """Mean adjusted Rand index over the 51 sets beside the published partitions."""
    file = FOLDER / "gagolews_v1_peers.csv"
    ours = {(r["name"].partition("/")[2], r["k"]): r for r in rows if r["name"].startswith("gagolews/")}
    if not ours or not file.exists():
        return
    table: dict[str, dict[tuple[str, int], float]] = {}
    with file.open() as stream:
        for line in csv.DictReader(stream):
            key = f"{line['battery']}/{line['set']}", int(line["k"])
            table.setdefault(line["method"], {})[key] = float(line["ari"])
    table["SubspaceClustering"] = {key: 100 * r["ari"] for key, r in ours.items()}
    table["KTRR, defaults"] = {key: 100 * r["rivals"]["KTRR, defaults"][1] for key, r in ours.items()}
    sets = sorted({name for name, _ in ours})
    means = {}
    for method, found in table.items():
        best = [max((v for (name, _), v in found.items() if name == wanted), default=np.nan) for wanted in sets]
        if np.isfinite(best).all():
            means[method] = float(np.mean(best))
    order = sorted(means, key=lambda method: -means[method])
    print(f"\nGagolewski's {len(sets)} sets, mean adjusted Rand index (best labelling), {len(means)} methods:")
    shown = dict.fromkeys([*order[:5], "KTRR, defaults"])
    print(", ".join(f"{order.index(m) + 1}. {m} {means[m]:.1f}" for m in shown) + ".")
    plain = table["KTRR, defaults"]
    lower = {key: v - plain[key] for key, v in table["SubspaceClustering"].items() if v < plain[key] - 3}
    print(
        "More than 3 points below plain KTRR: "
        + (", ".join(f"{n} ({k}) {d:+.1f}" for (n, k), d in lower.items()) or "none")
        + "."
    )


def cost() -> None:
    """The front door over a plain fit, each the fastest of three, in one run."""
    X = np.asarray(
        datasets.load_mnist(return_X_y=True, n_images=10_000, per_class=200, random_state=0, data_home=FOLDER)[0], float
    )
    KTRR(10).fit(X)
    for title, clock in (("wall", time.perf_counter), ("CPU", time.process_time)):
        plain = timed(clock, lambda: KTRR(10).fit(X), 5)
        print(f"{title}: plain fit {plain:.2f} s")
        for effort in ("fast", "balanced", "thorough"):
            for k in (10, None):
                seconds = timed(clock, lambda effort=effort, k=k: SubspaceClustering(k, effort=effort).fit(X), 2)
                print(f"  {effort}, n_clusters={k}: {seconds:.2f} s, {seconds / plain:.1f} plain fits")


def timed(clock: Callable[[], float], call: Callable[[], Any], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = clock()
        call()
        found.append(clock() - start)
    return min(found)


def seeds(n_seeds: int) -> None:
    """Accuracy of every seed on the sets of the paper, whole."""
    home = {"data_home": FOLDER, "return_X_y": True}
    loaders: dict[str, Callable[[], Any]] = {
        "Extended Yale B": lambda: datasets.load_yaleb(**home),
        "COIL20": lambda: datasets.load_coil20(**home),
        "ORL": lambda: datasets.load_orl(**home),
        "USPS": lambda: datasets.load_usps(per_class=200, random_state=0, **home),
        "MNIST": lambda: datasets.load_mnist(n_images=10_000, per_class=200, random_state=0, **home),
        "COIL100": lambda: datasets.load_coil100(**home),
    }
    for name, load in loaders.items():
        X, y = load()
        X, k = np.asarray(X, float), len(np.unique(y))
        found = [100 * accuracy(y, SubspaceClustering(k, random_state=s).fit(X).labels_) for s in range(n_seeds)]
        print(f"| {name} | {' '.join(f'{ac:.1f}' for ac in found)} |", flush=True)


def large() -> None:
    """Many points, nothing set but the number, or not even that."""
    X, y = datasets.load_mnist(return_X_y=True, data_home=FOLDER)
    Z = np.asarray(X, dtype=np.float32) / 255
    from sklearn.decomposition import PCA

    cases = {"MNIST, 50 components": (PCA(50, random_state=0).fit_transform(Z), y), "MNIST, pixels": (Z, y)}
    C, c = datasets.load_covtype(return_X_y=True, data_home=FOLDER)
    cases["Covtype"] = np.asarray(C, dtype=np.float32), c
    for name, (points, truth) in cases.items():
        for k in (len(np.unique(truth)), None):
            start = time.perf_counter()
            model = SubspaceClustering(k).fit(points)
            ac, ari = accuracy(truth, model.labels_), adjusted_rand(truth, model.labels_)
            found = f"{model.n_clusters_} | {100 * ac:.1f} | {ari:.3f} | {time.perf_counter() - start:.0f} s"
            print(f"| {name} | {k} | {found} | {model.estimator_!r} |".replace("\n", " "), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", help="names, or beginnings of names")
    parser.add_argument("--more", type=Path, help="folder of NAME.npz with X and y")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--part", default="0/1", help="i/n: compute only every n-th set, for processes side by side")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.cost or arguments.seeds or arguments.large:
        for asked, call in (
            (arguments.cost, cost),
            (arguments.seeds, lambda: seeds(arguments.seeds)),
            (arguments.large, large),
        ):
            if asked:
                call()
        return
    number, parts = map(int, arguments.part.split("/"))
    rows = []
    for i, data in enumerate(all_sets(FOLDER, arguments.more)):
        if i % parts == number and (arguments.sets is None or data.name.startswith(tuple(arguments.sets))):
            rows += [row_of(data, k) for k in data.numbers]
    if parts == 1:
        with measured.kept("automatic", folders=measured.SEARCH):
            main_table(rows)
        gagolews_table(rows)


if __name__ == "__main__":
    main()
