"""KTRR of more points than fit in one process: memory of every process, time on 1 and 2 workers, accuracy, growth.

    python benchmarks/shards.py make 1e7 --scratch DIR      # points in Parquet, their classes beside them
    python benchmarks/shards.py run 1e7 two --scratch DIR   # how: memory, here, one, two (workers of 2 GB each)
    python benchmarks/shards.py ektrr 1e7 two --scratch DIR
    python benchmarks/shards.py covtype two --scratch DIR
    python benchmarks/shards.py page                        # tables and plot of docs/distributed.md

Every run is a process of its own and a line of ``results/shards.jsonl``. The points: ten curved pieces of dimension
3 that share 8 of 32 dimensions, so that they come close and cross, with noise in all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "shards.jsonl"
DOCS = Path(__file__).parents[1] / "docs"
K, INNER, M, NOISE, BEND = 10, 8, 32, 0.2, 0.4
CHUNK = 250_000
WORKERS = {"one": 1, "two": 2}


def pieces(n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Chunk `number` of the points, and the piece that each lies on."""
    shape = np.random.default_rng(0)
    A, b = BEND * shape.normal(size=(K, INNER, 3)), shape.uniform(0, 2 * np.pi, size=(K, INNER))
    B = np.linalg.qr(shape.normal(size=(M, INNER)))[0]
    rng = np.random.default_rng([1, number])
    y, t = rng.integers(0, K, n), rng.uniform(-1, 1, (n, 3))
    Z = np.sin(np.einsum("nij,nj->ni", A[y], t) + b[y])
    return (Z @ B.T + NOISE * rng.standard_normal((n, M), dtype=np.float32)).astype(np.float32), y


def make(n: int, scratch: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = scratch / f"points-{n}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    classes = []
    for number, start in enumerate(range(0, n, CHUNK)):
        X, y = pieces(min(CHUNK, n - start), number)
        table = pyarrow.table({f"x{i}": X[:, i] for i in range(M)})
        pyarrow.parquet.write_table(table, folder / f"part-{number:05d}.parquet", compression="none")
        classes.append(y.astype(np.int8))
    np.save(scratch / f"classes-{n}.npy", np.concatenate(classes))


def used() -> dict[str, float]:
    """Peak memory and CPU seconds of the process that calls it."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {"peak_mb": own.ru_maxrss / 1024, "cpu": own.ru_utime + own.ru_stime}


def run(kind: str, n: int, how: str, scratch: Path, address: str | None) -> None:
    """One run; the checkpoint is measured and removed."""
    from subspaces import EKTRR, KTRR
    from subspaces.distributed import connect, fit_predict

    name = f"{kind}-{n}" if kind == "covtype" else f"{n}"
    truth = np.load(scratch / f"classes-{name}.npy")
    source, checkpoint = scratch / f"points-{name}.parquet", scratch / f"checkpoint-{kind}-{n}-{how}"
    settings: dict[str, Any] = {"n_clusters": 7, "scaling": "minmax"} if kind == "covtype" else {"n_clusters": K}
    if kind == "ktrr":
        settings["assign_labels"] = "modularity"
    estimator = (EKTRR if kind == "ektrr" else KTRR)(**settings)
    start, row = time.perf_counter(), {"kind": kind, "n": n, "how": how, "workers": []}
    if how == "memory":
        import pandas as pd

        labels = estimator.fit_predict(pd.read_parquet(source).to_numpy())
    else:
        out = {"checkpoint": checkpoint, "output": scratch / f"labels-{kind}-{n}-{how}.npy"}
        if how == "here":
            labels = fit_predict(estimator, source, client="here", **out)
        else:
            local = {} if address else {"n_workers": WORKERS[how], "memory": WORKERS[how] * 2 * 2**30}
            with connect(address, **local) as client:
                labels = fit_predict(estimator, source, client=client, **out)
                row["workers"] = list(client.run(used).values())
    row |= {"wall": time.perf_counter() - start, "caller": used(), "timings": dict(estimator.timings_)}
    row |= scores(truth, np.asarray(labels)) | {"load": os.getloadavg()[1]}
    if checkpoint.exists():
        row["files"] = {
            kind.name.split("-")[0]: sum(f.stat().st_size for f in kind.rglob("*.np*")) for kind in checkpoint.iterdir()
        }
        row["blocks"] = len(list(checkpoint.glob("graph-*/rows-*")))
        shutil.rmtree(checkpoint)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    print(json.dumps(row, indent=1))


def scores(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    from subspaces.metrics import accuracy, normalized_mutual_info

    return {"ac": 100 * accuracy(truth, labels), "nmi": 100 * normalized_mutual_info(truth, labels)}


def make_covtype(scratch: Path) -> int:
    import pandas as pd

    from subspaces.datasets import load_covtype

    X, y = load_covtype(return_X_y=True, dtype=np.float32)
    folder = scratch / f"points-covtype-{len(X)}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(X), CHUNK)):
        frame = pd.DataFrame(X[start : start + CHUNK], columns=[f"x{i}" for i in range(X.shape[1])])
        frame.to_parquet(folder / f"part-{number}.parquet", compression=None)
    np.save(scratch / f"classes-covtype-{len(X)}.npy", y)
    return len(X)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "run", "ektrr", "covtype", "page"])
    parser.add_argument("given", nargs="*")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir(), "subspaces-shards"))
    parser.add_argument("--address", help="of a scheduler whose workers have 2 GB each; otherwise they are started")
    given = parser.parse_args()
    if given.what == "page":
        from shards_page import write_page

        write_page([json.loads(line) for line in RESULTS.read_text().splitlines()], DOCS)
    elif given.what == "make":
        make(int(float(given.given[0])), given.scratch)
    elif given.what == "covtype":
        run("covtype", make_covtype(given.scratch), given.given[0], given.scratch, given.address)
    else:
        kind = "ktrr" if given.what == "run" else "ektrr"
        run(kind, int(float(given.given[0])), given.given[1], given.scratch, given.address)


if __name__ == "__main__":
    sys.exit(main())
