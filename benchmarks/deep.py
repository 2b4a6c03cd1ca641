"""Deep methods beside shallow ones, every coefficient matrix treated alike, with published figures.

    pip install subspaces[deep]
    SUBSPACES_DATA=folder python benchmarks/deep.py                            # everything, resumes where it stopped
    python benchmarks/deep.py --data coil20 --methods dscnet-l2 --seeds 0 1    # a part
    python benchmarks/deep.py --table                                          # Markdown of what has been run

Each method gives one matrix C per seed; every C then goes through the same treatments (`TREATMENTS`), with and without
DSC-Net's post-processing. DSC-Net's settings are the published ones per data set; the number of epochs is fixed. A cell
runs in a process of its own, so that its peak memory is its own. Methods with the same autoencoder share its
pre-training through the checkpoints: the first of them to run has its time. Finished cells are lines of
``benchmarks/results/deep.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import measured
from subspaces import KTRR, SSC, TRR, EnSC
from subspaces.engine.plan import Plan
from subspaces.engine.run import FitResult, run
from subspaces.metrics import clustering_scores
from subspaces.representation.coefficients import Coefficients

FOLDER = Path(os.environ.get("SUBSPACES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RESULTS = Path(__file__).resolve().parent / "results" / "deep.jsonl"
CHECKPOINTS = RESULTS.parent / "deep_checkpoints"
SEEDS = (0, 1, 2)
NOTE = """AC / NMI in percent, mean over seeds, with the standard deviation of AC. † the graph had more components than
clusters: its repair (`connect=True`) decides there, not the treatment. Automatic: clusters found in brackets. CPU
seconds of the first fit, training and graph; MB: its peak memory above what the process held before."""

DATA: dict[str, dict[str, Any]] = {  # what all networks of a data set share, then the published post-processing
    "coil20": {
        "network": {"pretrain_epochs": 70},
        "post": {"subspace_dim": 12, "share": 0.04, "power": 8},
    },
    "orl": {
        "network": {"channels": (3, 3, 5), "pretrain_epochs": 600},
        "post": {"subspace_dim": 3, "share": 0.2, "power": 1},
    },
    "yaleb10": {
        "network": {"pretrain_epochs": 100},
        "post": {"subspace_dim": 10, "share": 0.4, "power": 3.5},
    },
}
# DSC-Net's weights are for pixels up to 255 on faces: with the largest pixel m scaled to 1, λ₁ becomes λ₁/m²
DSC = {
    "coil20": {"norm_weight": 0.5, "error_weight": 75.0, "epochs": 30},
    "orl": {"norm_weight": 1.0, "error_weight": 0.2, "epochs": 700},
    "yaleb10": {"norm_weight": 1.0, "error_weight": 0.01, "epochs": 300},
}
GAME = {"coil20": 30, "orl": 100, "yaleb10": 60}
CLOSED_FORM = {"coil20": 30, "orl": 200, "yaleb10": 100}

TREATMENTS: dict[str, dict[str, Any]] = {
    "post": {"graph": "dscnet", "assign_labels": "discretize"},  # as published
    "post, k-means": {"graph": "dscnet"},
    "all of C": {"graph": "column", "n_nonzero": None},
    "η = 5": {"graph": "symmetric", "n_nonzero": 5},
    "η = 5, modularity": {"graph": "symmetric", "n_nonzero": 5, "assign_labels": "modularity"},
    "automatic": {"graph": "symmetric", "n_nonzero": 5, "assign_labels": "modularity", "n_clusters": None},
}

PUBLISHED = {  # AC / NMI; docs of the methods say where from
    "dscnet-l2": {
        "coil20": "94.9 (others 89.2 to 91.0)",
        "orl": "86.0 (others 84.5 to 85.5)",
        "yaleb10": "98.4",
    },
    "dscnet-l1": {"coil20": "94.4", "orl": "85.8", "yaleb10": "97.8"},
    "dasc": {"coil20": "96.4 / 96.9", "orl": "88.3 / 93.2"},
    "aessc": {"coil20": "87.1 / 89.9", "orl": "75.6 / 85.6"},
    "ktrr": {"coil20": "90.3 / 94.7"},
}

SHALLOW: dict[str, Any] = {
    "ktrr": lambda k: KTRR(k, scaling="unit"),
    "ktrr, reg 10": lambda k: KTRR(k, reg=10.0),
    "trr": lambda k: TRR(k, scaling="unit"),
    "ssc": lambda k: SSC(k),
    "ensc": lambda k: EnSC(k, scaling="unit"),
}
RIDGE = {"": {}, "reg 10": {"reg": 10.0}, "linear": {"kernel": "linear", "reg": 0.1}}  # variants of the two KTRR nets
DEEP = (
    *("dscnet-l2", "dscnet-l1", "dasc", "structae", "aessc"),
    *("aektrr", "aektrr, reg 10", "aektrr, linear", "ktrrnet", "ktrrnet, reg 10", "ktrrnet, linear"),
)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels; the largest pixel is 1."""
    file = {"coil20": "coil20_32x32", "orl": "orl_32x32", "yaleb10": "yaleb_48x42"}[name]
    archive = np.load(FOLDER / f"{file}.npz")
    X, y = archive["X"].astype(np.float32), archive["y"]
    if name == "yaleb10":
        chosen = np.isin(y, np.unique(y)[:10])
        X, y = X[chosen], y[chosen]
    return (X / X.max()).reshape(len(X), *archive["image_shape"]), y


def model(data: str, method: str, k: int, seed: int) -> Any:
    if method in SHALLOW:
        return SHALLOW[method](k).set_params(random_state=seed)
    from subspaces import deep

    name, _, variant = method.partition(", ")
    common = {
        "n_clusters": k,
        "random_state": seed,
        "tol": None,
        "checkpoints": CHECKPOINTS,
        **DATA[data]["network"],
    }
    if name == "structae":
        return deep.StructAE(**{**common, "pretrain_epochs": 100, "channels": None})
    if name == "aessc":
        return deep.AESSC(**common)
    if name == "aektrr":
        return deep.AEKTRR(**common, **RIDGE[variant])
    if name == "ktrrnet":
        return deep.KTRRNet(**common, **RIDGE[variant], epochs=CLOSED_FORM[data])
    dsc = dict(DSC[data])
    dsc["norm_weight"] /= {"coil20": 1, "orl": 255**2, "yaleb10": 255**2}[data]
    dsc["graph_params"] = DATA[data]["post"]
    if name == "dasc":
        return deep.DASC(**common, **dsc, adversarial_epochs=GAME[data])
    return deep.DSCNet(**common, **dsc, norm=name.removeprefix("dscnet-"))


def cell(data: str, method: str, seed: int) -> dict[str, Any]:
    """Train or solve once, then treat C in every way."""
    X, y = load(data)
    k = len(np.unique(y))
    estimator = model(data, method, k, seed)
    kept: list[Coefficients] = []

    def keeping(plan: Plan, X: Any, **options: Any) -> FitResult:
        def represent(*seen: Any) -> Coefficients:
            kept.append(plan.represent(*seen))
            return kept[-1]

        return run(replace(plan, represent=represent, canonical=False), X, **options)

    before, wall, cpu = psutil.Process().memory_info().rss, time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit_by(X if method in DEEP else X.reshape(len(X), -1), keeping)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    losses = getattr(estimator, "losses_", {})
    return {
        "data": data,
        "method": method,
        "seed": seed,
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(wall, 1),
        "memory_mb": round((peak - before) / 2**20),
        "losses": {stage: [len(values), values[0], values[-1]] for stage, values in losses.items()},
        "treatments": {name: treat(kept[0], y, k, seed, DATA[data]["post"], **how) for name, how in TREATMENTS.items()},
    }


def treat(coefficients: Coefficients, y: np.ndarray, k: int, seed: int, post: Any, **how: Any) -> dict[str, Any]:
    if how["graph"] == "dscnet":
        how["graph_params"] = post
    rows = np.arange(len(y), dtype=np.float32)[:, None]  # what the points are does not matter any more
    plan = KTRR(**{"n_clusters": k, "random_state": seed, "n_nonzero": None, **how}, solver="dense").plan(rows)
    plan = replace(plan, source="points", represent=lambda source, context: coefficients, canonical=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(plan, rows)
    scores = clustering_scores(y, found.labels)
    return {
        "ac": round(100 * scores["accuracy"], 2),
        "nmi": round(100 * scores["nmi"], 2),
        "components": found.graph.n_components,
        "clusters": found.n_clusters,
    }


def finished() -> dict[tuple[str, str, int], dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return {(row["data"], row["method"], row["seed"]): row for row in rows}


def table() -> str:
    """One row per data set and method: mean ± standard deviation over seeds, AC / NMI of every treatment."""
    done = finished()
    lines = ["| data | method | seeds | " + " | ".join(TREATMENTS) + " | published | CPU s | MB |"]
    lines.append("|---" * (len(TREATMENTS) + 6) + "|")
    for data in DATA:
        for method in (*DEEP, *SHALLOW):
            rows = [row for (d, m, _), row in done.items() if (d, m) == (data, method)]
            if not rows:
                continue
            cells = [summary([row["treatments"][name] for row in rows], name) for name in TREATMENTS]
            seconds, memory = (np.mean([row[name] for row in rows]) for name in ("cpu_seconds", "memory_mb"))
            published = PUBLISHED.get(method, {}).get(data, "")
            row = [data, method, str(len(rows)), *cells, published, f"{seconds:.0f}", f"{memory:.0f}"]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", NOTE])


def summary(results: list[dict[str, Any]], treatment: str) -> str:
    accuracies, nmis = ([result[name] for result in results] for name in ("ac", "nmi"))
    spread = f" ± {np.std(accuracies):.1f}" if len(results) > 1 else ""
    if treatment == "automatic":
        mark = f" ({np.mean([result['clusters'] for result in results]):.0f})"
    else:
        mark = "†" if any(result["components"] > result["clusters"] for result in results) else ""
    return f"{np.mean(accuracies):.1f}{spread} / {np.mean(nmis):.1f}{mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--methods", nargs="*", default=[*DEEP, *SHALLOW], choices=[*DEEP, *SHALLOW])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--cell", action="store_true", help="run one cell here and print it")
    arguments = parser.parse_args()
    if arguments.table:
        with measured.kept("deep", folders=(*measured.LIBRARY, "deep")):
            print(table())
        return
    if arguments.cell:
        print(json.dumps(cell(arguments.data[0], arguments.methods[0], arguments.seeds[0])))
        return
    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        for seed in arguments.seeds:
            for method in arguments.methods:
                if (data, method, seed) in finished():
                    continue
                choice = ["--data", data, "--methods", method, "--seeds", str(seed)]
                run = subprocess.run([sys.executable, __file__, "--cell", *choice], stdout=subprocess.PIPE, text=True)
                if run.returncode:
                    print("failed:", *choice, flush=True)
                    continue
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(run.stdout)
                row = json.loads(run.stdout)
                scores = {name: (result["ac"], result["nmi"]) for name, result in row["treatments"].items()}
                print(data, method, seed, scores, row["cpu_seconds"], row["memory_mb"], flush=True)


if __name__ == "__main__":
    main()
