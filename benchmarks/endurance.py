"""A thousand fits in one process, whose memory must stay flat; and labels, the same on one thread and on two.

    python benchmarks/endurance.py                       # writes docs/trust_memory.png and results/endurance.json
    python benchmarks/endurance.py --fits 100 --trace    # shorter, with the lines that allocated what is left
    python benchmarks/endurance.py --threads             # a table: every estimator on 1 and 2 threads

Fits go round all methods (the deep ones every fortieth fit if PyTorch is there), on new points each time, with what
happens in a long session in between: new points labelled, a fit that fails, one that is interrupted, a plot. Resident
memory is read after a garbage collection every ten fits.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psutil

from subspaces import registry
from subspaces.datasets import make_subspaces

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "trust_memory.png"
RESULTS = HERE / "results" / "endurance.json"
N_CLUSTERS = 4
EVERY = 10
WARM_UP = 200
"""Fits before the slope is measured: every method has run several times, every library has its buffers."""
SHORT = {"image_shape": (6, 6), "channels": (4,), "epochs": 3, "pretrain_epochs": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--trace", action="store_true", help="trace allocations by line; slow")
    parser.add_argument("--threads", action="store_true", help="compare labels on one and two threads instead")
    parser.add_argument("--labels", action="store_true", help=argparse.SUPPRESS)  # what a child does for --threads
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.labels:
        print_labels()
    elif arguments.threads:
        compare_threads()
    else:
        endure(arguments.fits, arguments.trace)


def points(seed: int, n: int, noise: float = 0.1) -> Any:
    X, _ = make_subspaces(
        N_CLUSTERS, dimension=3, ambient=36, n_samples=-(-n // N_CLUSTERS), noise=noise, random_state=seed
    )
    return X[np.random.default_rng(seed).permutation(len(X))[:n]]


def shallow_methods() -> dict[str, Any]:
    """Classes of all others."""
    return {name: registry.load(name) for name in registry.names(*registry.SHALLOW)}


def deep_methods() -> dict[str, Any]:
    """The deep ones, with networks that train in a moment; empty without PyTorch."""
    if find_spec("torch") is None:
        return {}
    found = {}
    for name in registry.names("deep"):
        cls = registry.load(name)
        known = {field: value for field, value in SHORT.items() if field in cls().get_params()}
        found[name] = lambda cls=cls, known=known: cls(N_CLUSTERS, **known)
    return found


# ---------------------------------------------------------------- a thousand fits


def endure(n_fits: int, trace: bool) -> None:
    process, deep = psutil.Process(), list(deep_methods().values())
    makers = [lambda cls=cls: cls(n_clusters=N_CLUSTERS) for cls in shallow_methods().values()]
    curve: list[tuple[int, float, int, int]] = []
    if trace:
        tracemalloc.start()
    before = None
    for i in range(n_fits + 1):
        if i % EVERY == 0:
            gc.collect()
            curve.append((i, process.memory_info().rss / 1024, process.num_fds(), process.num_threads()))
        if trace and i == min(WARM_UP, n_fits // 2):
            before = tracemalloc.take_snapshot()
        session(i, deep[i // 40 % len(deep)] if deep and i % 40 == 39 else makers[i % len(makers)])
    if before is not None:
        for line in tracemalloc.take_snapshot().compare_to(before, "lineno")[:12]:
            print(line)
    summary = {"fits": n_fits, "deep": bool(deep), **slope(np.array(curve)), "curve": curve}
    print(json.dumps({name: value for name, value in summary.items() if name != "curve"}, indent=1))
    if n_fits >= 2 * WARM_UP and not trace:
        RESULTS.write_text(json.dumps(summary) + "\n")
        draw(np.array(curve), summary)


def session(i: int, make: Any) -> None:
    """One fit, and now and then what else happens."""
    rng = np.random.default_rng(i)
    X = points(i, int(rng.integers(200, 300)))
    model = make().fit(X)
    model.predict(X[:20] + 0.01)
    if i % 7 == 0:
        with suppress(ValueError):
            make().fit(np.full((50, 3), np.nan))
    if i % 11 == 0:
        with suppress(KeyboardInterrupt), interrupted():
            model.fit(X)
    if i % 13 == 0:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        from subspaces import KTRR, show

        show(KTRR(N_CLUSTERS).fit(X), X)
        plt.close("all")


@contextmanager
def interrupted() -> Iterator[None]:
    """Let a fit be interrupted where its labels would be known."""
    from subspaces.engine import landmark_run, stages

    stop = {"side_effect": KeyboardInterrupt}
    with mock.patch.object(stages, "cut", **stop), mock.patch.object(landmark_run, "label_of_most_copies", **stop):
        yield


def slope(curve: Any) -> dict[str, float]:
    """Growth in kB per fit after the warm-up: the median of all pairwise slopes, with its 95 % interval."""
    from scipy.stats import theilslopes

    late = curve[curve[:, 0] >= min(WARM_UP, curve[-1, 0] / 2)]
    found = theilslopes(late[:, 1], late[:, 0], alpha=0.95)
    return {
        "kB per fit": round(float(found.slope), 3),
        "low": round(float(found.low_slope), 3),
        "high": round(float(found.high_slope), 3),
        "MB after warm-up": round(float(late[0, 1]) / 1024, 1),
        "MB at the end": round(float(late[-1, 1]) / 1024, 1),
        "files after warm-up": int(late[0, 2]),
        "most files": int(late[:, 2].max()),
        "threads after warm-up": int(late[0, 3]),
        "most threads": int(late[:, 3].max()),
    }


def draw(curve: Any, summary: dict[str, Any]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.axvspan(0, WARM_UP, color="0.94", lw=0)
    ax.text(WARM_UP / 2, 0.06, "warm-up", transform=ax.get_xaxis_transform(), ha="center", color="0.4")
    ax.plot(curve[:, 0], curve[:, 1] / 1024, color="#0072B2", lw=1.5)
    ax.set(xlim=(0, curve[-1, 0]), ylim=(0, 1.15 * curve[:, 1].max() / 1024))
    ax.set(xlabel="fits in one process, all methods in turn", ylabel="resident memory, MB")
    interval = f"95 %: {summary['low']:+.2f} to {summary['high']:+.2f}"
    ax.set_title(
        f"{summary['kB per fit']:+.2f} kB per fit after the warm-up ({interval})", fontsize="medium", loc="left"
    )
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=130)


# ---------------------------------------------------------------- one thread and two


def variants() -> dict[str, Any]:
    """Every method, KTRR's other routes and cuts, and the deep methods."""
    from subspaces import KTRR

    auto = dict.fromkeys(("n_clusters", "kernel", "reg", "n_nonzero", "scaling", "assign_labels"), "auto")
    k = N_CLUSTERS
    return {
        **{name: lambda cls=cls: cls(n_clusters=k) for name, cls in shallow_methods().items()},
        "ktrr, automatic": lambda: KTRR(**auto),
        "ktrr, float32": lambda: KTRR(k),
        "ktrr, low rank": lambda: KTRR(k, kernel="quadratic", solver="low_rank"),
        "ktrr, two scales": lambda: KTRR(k, solver="two_scale"),
        "ktrr, coarse": lambda: KTRR(k, solver="two_scale", spectral="coarse"),
        "ktrr, correntropy": lambda: KTRR(k, kernel="correntropy"),
        **{
            f"ktrr, {cut}": lambda cut=cut: KTRR(k, assign_labels=cut)
            for cut in ("cluster_qr", "discretize", "modularity")
        },
        **{f"ktrr, {rule}": lambda rule=rule: KTRR(k, out_of_sample=rule) for rule in ("residual", "network")},
        **deep_methods(),
    }


def print_labels() -> None:
    """Labels and predictions of every estimator on noisy points, where the last digit decides, as hashes."""
    for name, make in variants().items():
        X = points(1, 700, noise=0.4).astype(np.float32 if "float32" in name else np.float64)
        model = make().fit(X[:600])
        parts = [model.labels_, model.predict(X[600:])]
        print(json.dumps([name, *(hashlib.sha256(part.tobytes()).hexdigest() for part in parts)]), flush=True)


def compare_threads() -> None:
    """One process with one thread beside one with two; a line as soon as both have the labels."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    command = [sys.executable, __file__, "--labels"]
    runs = [
        subprocess.Popen(command, env=os.environ | dict.fromkeys(names, n), stdout=subprocess.PIPE, text=True)
        for n in ("1", "2")
    ]
    print(f"{'estimator':22}{'same labels':>12}{'same predictions':>18}", flush=True)
    for one, two in zip(*(run.stdout or () for run in runs), strict=True):
        (name, *first), (_, *second) = json.loads(one), json.loads(two)
        same = ["yes" if a == b else "NO" for a, b in zip(first, second, strict=True)]
        print(f"{name:22}{same[0]:>12}{same[1]:>18}", flush=True)


if __name__ == "__main__":
    main()
