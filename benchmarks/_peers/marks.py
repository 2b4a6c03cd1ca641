"""The targets: what must be reached, what was measured, met or not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _peers.data import load
from _peers.measure import Function, in_child, measured
from _peers.methods import bare_closed_form, polynomial

FEATURES, CLUSTERS = 1024, 20

# ---------------------------------------------------------------- what a child measures


def dense_run(n: int, repeats: int) -> dict[str, Any]:
    """Floor and fit in turn, best CPU seconds of each."""
    from subspaces import KTRR

    warnings.simplefilter("ignore")
    X, seconds, legs = _wide_union(n), {"floor": np.inf, "fit": np.inf}, {}
    KTRR(CLUSTERS).fit(X[:: n // 400])  # imports and thread pools
    bare_closed_form(X[:400], CLUSTERS, 0)
    for _ in range(repeats):
        with measured() as floor:
            bare_closed_form(X, CLUSTERS, 0)
        with measured() as fit:
            model = KTRR(CLUSTERS).fit(X)
        legs = {leg: round(s, 2) for leg, s in model.timings_.items()}
        seconds = {"floor": min(seconds["floor"], floor.cpu), "fit": min(seconds["fit"], fit.cpu)}
    return {**seconds, "legs": legs}


def dense_memory(n: int) -> dict[str, Any]:
    """Peak of a fit above what the points and their copy in order take, in n × n items."""
    from subspaces import KTRR

    X = _wide_union(n)
    KTRR(CLUSTERS).fit(X[:: n // 400])
    with measured() as meter:
        KTRR(CLUSTERS).fit(X)
    return {"squares": (meter.mb * 2**20 - X.nbytes) / (n * n * X.itemsize)}


def restarts(seed: int) -> dict[str, Any]:
    """Extended Yale B, data to labels, 500 starts against one; their inertia against 500 independent ones."""
    from sklearn.cluster import KMeans

    from subspaces import KTRR

    X, y = load("yaleb", 0)
    k = len(np.unique(y))
    parameters: dict[str, Any] = {"scaling": "unit", "reg": 0.1, "random_state": seed}
    KTRR(k, n_init=3, **parameters).fit(X[::5])
    found: dict[str, float] = {}
    for n_init in (1, 500, 1, 500):
        with measured() as meter:
            model = KTRR(k, n_init=n_init, **parameters).fit(X)
        found[f"cpu {n_init}"] = min(found.get(f"cpu {n_init}", np.inf), meter.cpu)
    Y = model.embedding_
    inertia = sum(float(((Y[model.labels_ == c] - Y[model.labels_ == c].mean(axis=0)) ** 2).sum()) for c in range(k))
    with measured() as meter:
        independent = KMeans(k, n_init=500, random_state=seed, max_iter=1000).fit(Y)
    return {**found, "inertia": inertia, "independent": float(independent.inertia_), "cpu independent": meter.cpu}


def large_memory(data: str) -> dict[str, Any]:
    """Peak of the routes without an n × n array, in units of H, once the finished graph is taken off."""
    from subspaces import KTRR
    from subspaces.representation.two_scale import N_LANDMARKS

    warnings.simplefilter("ignore")
    X, y = load(data, 0)
    k = len(np.unique(y))

    def run(points: np.ndarray) -> Any:
        if data.startswith("hard"):
            return polynomial(points, k, 0)
        return KTRR(k, assign_labels="modularity", solver="two_scale").fit(points)

    run(X[:: len(X) // 1000])
    with measured() as meter:
        model = run(X)
    W = model.affinity_matrix_
    columns = model.kernel_.n_features_out(X.shape[1]) if model.solver_ == "low_rank" else N_LANDMARKS
    size = len(X) * int(columns or 0) * 8 / 2**20
    graph = (W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / 2**20
    return {"mb": meter.mb, "H": size, "graph": graph, "solver": model.solver_}


def digits_run(seed: int) -> dict[str, Any]:
    """The setting of ours that is for digits: unit rows, ten coefficients, modularity."""
    return _scored("digits", seed, scaling="unit", n_nonzero=10, assign_labels="modularity")


def uos_run(seed: int) -> dict[str, Any]:
    """Linear subspaces, many points, few features: TRR."""
    return _scored("uos10000", seed, method="trr")


def hard_run(data: str, seed: int) -> dict[str, Any]:
    """Intersecting subspaces: KTRR with a polynomial kernel."""
    return _scored(data, seed, method="polynomial")


def _scored(data: str, seed: int, method: str = "ktrr", **parameters: Any) -> dict[str, Any]:
    from subspaces import KTRR, TRR
    from subspaces.metrics import accuracy

    X, y = load(data, seed)
    k = len(np.unique(y))

    def run(points: np.ndarray) -> Any:
        if method == "polynomial":
            return polynomial(points, k, seed)
        return (TRR if method == "trr" else KTRR)(k, random_state=seed, **parameters).fit(points)

    warnings.simplefilter("ignore")
    run(X[:: len(X) // 400])
    with measured() as meter:
        model = run(X)
    return {"ac": 100 * accuracy(y, model.labels_), "cpu": meter.cpu, "mb": meter.mb, "legs": model.timings_}


def _wide_union(n: int) -> np.ndarray:
    from subspaces.datasets import make_subspaces

    return make_subspaces(CLUSTERS, 5, FEATURES, n // CLUSTERS, noise=0.01, random_state=0)[0]


# ---------------------------------------------------------------- the targets


Run = tuple[Function, dict[str, Any]]


@dataclass(frozen=True)
class Mark:
    """A target: the child runs it needs, and what they must show."""

    target: str
    runs: list[Run]
    judge: Callable[[list[dict[str, Any]]], tuple[str, bool]]


def _scores(ac: float, cpu: float, mb: float = np.inf) -> Callable[[list[dict[str, Any]]], tuple[str, bool]]:
    """All runs' mean accuracy and median CPU seconds against the target."""

    def judge(rows: list[dict[str, Any]]) -> tuple[str, bool]:
        found = [row["ac"] for row in rows]
        seconds, most = float(np.median([row["cpu"] for row in rows])), max(row["mb"] for row in rows)
        said = f"{np.mean(found):.2f} % ({min(found):.2f} to {max(found):.2f}), {seconds:.2f} CPU s, {most:.0f} MB"
        return said, round(float(np.mean(found)), 2) >= ac and seconds <= cpu and most <= mb

    return judge


def _near_floor(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    row = rows[0]
    ratio = row["fit"] / row["floor"]
    return f"{row['fit']:.2f} / {row['floor']:.2f} CPU s = {ratio:.2f} ×", ratio <= 1.5


def _restarts(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    ratio = max(row["cpu 500"] / row["cpu 1"] for row in rows)
    said = [f"{row['inertia']:.3f} against {row['independent']:.3f}" for row in rows]
    slower = rows[0]["cpu independent"]
    good = all(row["inertia"] <= row["independent"] * (1 + 1e-6) for row in rows)
    return f"{ratio:.2f} ×; inertia {', '.join(said)} ({slower:.1f} CPU s)", ratio <= 3 and good


def _squares(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    found = [row["squares"] for row in rows]
    return ", ".join(f"{value:.2f}" for value in found) + " n²", max(found) <= 0.6


def _threefold(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    row = rows[0]
    ratio = (row["mb"] - row["graph"]) / row["H"]
    return f"{row['mb']:.0f} MB, H {row['H']:.0f}, graph {row['graph']:.0f}: {ratio:.2f} H + graph", ratio <= 3


def _seeds(function: Function, n: int = 3, **keywords: Any) -> list[Run]:
    return [(function, {"seed": seed, **keywords}) for seed in range(n)]


MARKS: dict[str, Mark] = {
    "hard2000": Mark("≥ 98.5 % in ≤ 1 CPU s", _seeds(hard_run, 5, data="hard2000"), _scores(98.5, 1)),
    "hard10000": Mark("≥ 98 % in ≤ 5 CPU s and ≤ 300 MB", _seeds(hard_run, data="hard10000"), _scores(98, 5, 300)),
    "uos10000": Mark("100 % in ≤ 3 CPU s", _seeds(uos_run), _scores(100, 3)),
    "digits": Mark("≥ 95.2 % in ≤ 1 CPU s", _seeds(digits_run), _scores(95.2, 1)),
    "restarts": Mark(
        "500 starts ≤ 3 × one start on Extended Yale B, inertia ≤ scikit-learn's 500", _seeds(restarts, 2), _restarts
    ),
    "dense5000": Mark("data to labels ≤ 1.5 × floor, n = 5,000", [(dense_run, {"n": 5000, "repeats": 2})], _near_floor),
    "dense10000": Mark(
        "data to labels ≤ 1.5 × floor, n = 10,000", [(dense_run, {"n": 10_000, "repeats": 1})], _near_floor
    ),
    "memory-dense": Mark(
        "≤ 0.6 n² items beside a copy of the points, n = 5,000 and 10,000",
        [(dense_memory, {"n": n}) for n in (5000, 10_000)],
        _squares,
    ),
    "memory-low-rank": Mark("≤ 3 H + graph, hard10000", [(large_memory, {"data": "hard10000"})], _threefold),
    "memory-two-scale": Mark("≤ 3 H + graph, uos100000", [(large_memory, {"data": "uos100000"})], _threefold),
}


_HEAD = (
    "# Targets, measured",
    "",
    "Written by `python benchmarks/peers.py --marks`; see [Where the time goes](../speed.md).",
    "",
)


def measure(names: list[str], page: Path, limits: dict[str, int]) -> None:
    """Measure the marks named (all if none is), print the table and, where all were measured, write it."""
    lines = ["| mark | target | measured | met |", "|---|---|---|---|"]
    print(*lines, sep="\n", flush=True)
    done: dict[str, dict[str, Any]] = {}  # runs that two marks share are made once
    for name in names or MARKS:
        mark = MARKS[name]
        rows = []
        for function, keywords in mark.runs:
            key = f"{function.__name__} {keywords}"
            if key not in done:
                done[key] = in_child(function, keywords, **limits)
            rows.append(done[key])
        bad = [row["failed"] for row in rows if "failed" in row]
        said, met = (bad[0], False) if bad else mark.judge(rows)
        lines.append(f"| {name} | {mark.target} | {said} | {'yes' if met else '**no**'} |")
        print(lines[-1], flush=True)
    if not names:
        page.parent.mkdir(exist_ok=True)
        page.write_text("\n".join([*_HEAD, *lines]) + "\n")
