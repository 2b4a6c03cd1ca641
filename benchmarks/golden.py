"""Results of every method, recorded from one commit and compared with another: nothing may change unseen.

    python benchmarks/golden.py record FILE [--real]     # labels, graphs, selection, predict, transform
    python benchmarks/golden.py compare FILE [--real]    # exit code 1 and a list where something differs

``--real`` adds the data sets of ``../shared/data``. Only public names are used, so that the file of an old commit can
be compared with any later one; a label must be equal, a number equal to the last digit (``--tolerance`` allows more).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

import subspaces
from subspaces import KTRR, LSR1, SSC, TRR

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
AUTO = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "assign_labels"), "auto")
GRAPH = [
    "KTRR",
    "TRR",
    "LSR1",
    "LSR2",
    "SSC",
    "KSSC",
    "EnSC",
    "SSCOMP",
    "LRR1",
    "LRR2",
    "LatLRR",
    "KLRR",
    "SMCE",
    "LSA",
    "TSC",
    "SC",
]
LARGE = ["EKTRR", "SSSC", "SLSR", "SLRR", "KASP", "NystromSC", "SEC", "AKK", "LSC", "USPEC"]


def union(n: int = 30) -> Any:
    """Noisy points of five subspaces."""
    rng = np.random.default_rng(7)
    bases = [np.linalg.qr(rng.standard_normal((12, 3)))[0] for _ in range(5)]
    X = np.vstack([rng.standard_normal((n, 3)) @ basis.T for basis in bases])
    return X + 0.05 * rng.standard_normal(X.shape)


def rings() -> Any:
    """Two noisy rings."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    return (1.0 + 2 * (np.arange(300) % 2))[:, None] * np.c_[np.cos(angle), np.sin(angle)] + 0.05 * rng.normal(
        size=(300, 2)
    )


SMALL: dict[str, tuple[Callable[[], Any], int]] = {
    "union": (union, 5),
    "rings": (rings, 2),
    "grid": (lambda: np.round(2 * np.random.default_rng(0).standard_normal((300, 5))), 6),
    "digits": (lambda: load_digits().data[:500], 10),
    "iris": (lambda: load_iris().data, 3),
    "wine": (lambda: load_wine().data, 3),
}


def small_cases() -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """Name, points and estimator of each fit on small data."""
    for data, (make, k) in SMALL.items():
        X = make()
        for name in GRAPH:
            yield f"{name}, {data}", X, lambda name=name, k=k: getattr(subspaces, name)(k)
        for name in LARGE:
            yield f"{name}, {data}", X, lambda name=name, k=k: getattr(subspaces, name)(k, n_landmarks=60)
        for kernel in [
            "exponential",
            "inverse_square",
            "inverse_distance",
            "quadratic",
            "cubic",
            "cosine",
            "linear",
            "correntropy",
        ]:
            yield f"KTRR {kernel}, {data}", X, lambda kernel=kernel, k=k: KTRR(k, kernel=kernel, reg=0.1)
        for graph in ("column", "mass", "row_space", "dscnet"):
            yield f"KTRR {graph}, {data}", X, lambda graph=graph, k=k: KTRR(k, graph=graph)
        for cut in ("cluster_qr", "discretize", "modularity"):
            yield f"KTRR {cut}, {data}", X, lambda cut=cut, k=k: KTRR(k, assign_labels=cut, scaling="unit")
        for solver in ("dense", "two_scale"):
            yield f"KTRR {solver}, {data}", X, lambda solver=solver, k=k: KTRR(k, solver=solver, connect=False)
        for rule in ("residual", "network"):
            yield f"KTRR {rule}, {data}", X, lambda rule=rule, k=k: KTRR(k, out_of_sample=rule)
        yield f"TRR low rank, {data}", X, lambda k=k: TRR(k, solver="low_rank", by="value", graph="column")
        yield f"LSR1 standard, {data}", X, lambda k=k: LSR1(k, scaling="standard", solver="dense")
        yield f"SSC affine, {data}", X, lambda k=k: SSC(k, affine=True)
        yield f"KTRR polynomial, {data}", X, lambda k=k: KTRR(k, kernel="polynomial", kernel_params={"degree": 2})
        yield f"KTRR bandwidth, {data}", X, lambda k=k: KTRR(k, bandwidth=3.0)
        yield f"KTRR free, {data}", X, lambda: KTRR(None, assign_labels="modularity")
        yield f"KTRR automatic, {data}", X, lambda k=k: KTRR(k, **AUTO)
        yield f"KTRR all automatic, {data}", X, lambda: KTRR("auto", **AUTO)
        yield f"TRR automatic, {data}", X, lambda k=k: TRR(k, reg="auto", n_nonzero="auto")
        yield f"KTRR float32, {data}", X.astype(np.float32), lambda k=k: KTRR(k)
    big = np.random.default_rng(1).standard_normal((2400, 3)) + 6 * np.eye(3)[np.arange(2400) % 3]
    yield "KTRR coarse, blobs", big, lambda: KTRR(3, solver="two_scale", spectral="coarse")


def real_cases() -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """Name, points and estimator of each fit on real data."""
    for file, n, cases in (
        ("yaleb_32x32", None, ("plain", "modularity", "automatic")),
        ("coil20_32x32", None, ("plain", "modularity", "automatic")),
        ("orl_32x32", None, ("plain", "modularity", "automatic", *GRAPH)),
        ("usps_9298", None, ("plain", "modularity", "automatic")),
        ("mnist_train", 20_000, ("plain", "modularity")),
    ):
        found = np.load(REAL / f"{file}.npz")
        X, y = found["X"][:n].astype(np.float64), found["y"][:n]
        k = len(np.unique(y))
        made: dict[str, Callable[[], Any]] = {
            "plain": lambda k=k: KTRR(k),
            "modularity": lambda k=k: KTRR(k, assign_labels="modularity", scaling="unit"),
            "automatic": lambda k=k: KTRR(k, **AUTO),
            **{name: lambda name=name, k=k: getattr(subspaces, name)(k) for name in GRAPH},
        }
        for case in cases:
            yield f"{case}, {file}", X, made[case]


def results(name: str, X: Any, make: Callable[[], Any]) -> dict[str, Any]:
    """Everything that a user reads of a fit, as arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X)
        rng = np.random.default_rng(0)
        few = X[rng.choice(len(X), min(60, len(X)), replace=False)]
        new = np.vstack([few[:20], few[20:40] * 1.03, (few[40:] + few[: len(few) - 40]) / 2]).astype(X.dtype)
        found = {"labels": model.labels_, "predict": model.predict(new)}
        W = getattr(model, "affinity_matrix_", None)
        if W is not None:
            W = W.tocsr()
            W.sort_indices()
            found |= {"W": W.data, "W places": W.indices, "components": model.n_components_}
            found |= {"isolated": model.isolated_, "transform": model.transform(new)}
            if getattr(model, "eigenvalues_", None) is not None:
                found |= {"eigenvalues": model.eigenvalues_, "embedding": model.embedding_}
        if getattr(model, "penalty_", None) is not None:
            found["penalty"] = model.penalty_
        selection = getattr(model, "selection_", None)
        if selection is not None:
            found["chosen"] = str(sorted(selection.parameters.items(), key=str))
            found["scores"] = np.array([trial.score for trial in selection.trials])
    return {f"{name} | {what}": np.asarray(value) for what, value in found.items()}


def difference(one: Any, two: Any, tolerance: float) -> str:
    """What differs between two arrays, in words; empty if nothing."""
    if one.shape != two.shape:
        return f"shape {one.shape} became {two.shape}"
    if one.dtype.kind in "iuUb":
        return "" if np.array_equal(one, two) else f"{np.count_nonzero(one != two)} of {one.size} differ"
    gap = float(np.nanmax(np.abs(one - two), initial=0)) / (float(np.nanmax(np.abs(one), initial=0)) or 1.0)
    same = np.array_equal(np.isnan(one), np.isnan(two)) and gap <= tolerance
    return "" if same else f"relative difference {gap:.1e}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    stored = dict(np.load(given.file)) if given.action == "compare" else {}
    found: dict[str, Any] = {}
    differing = 0
    for name, X, make in [*small_cases(), *(real_cases() if given.real else [])]:
        if given.only not in name:
            continue
        try:
            new = results(name, X, make)
        except Exception as error:  # what fails today must fail tomorrow
            new = {f"{name} | error": np.asarray(type(error).__name__)}
            print(f"{name}: {type(error).__name__}: {error}")
        found |= new
        for what, value in new.items() if given.action == "compare" else ():
            said = difference(stored[what], value, given.tolerance) if what in stored else "was not there"
            if said:
                differing += 1
                print(f"{what}: {said}", flush=True)
    if given.action == "record":
        np.savez_compressed(given.file, **found)
        print(f"{len(found)} results of {len({name.split(' | ')[0] for name in found})} fits in {given.file}")
        return 0
    missing = [name for name in stored if given.only in name and name not in found]
    if not given.real:
        missing = [name for name in missing if not any(part in name for part in ("_32x32", "usps", "mnist"))]
    print(f"{len(found)} results, {differing} differ, {len(missing)} are gone: {missing[:5]}")
    return int(bool(differing or missing))


if __name__ == "__main__":
    sys.exit(main())
