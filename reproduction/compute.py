"""A cell → its result: scores of every cut in percent, CPU seconds, and what a reader needs to judge them."""

from __future__ import annotations

import hashlib
import inspect
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measured import LIBRARY, SOURCE, code_hash
from reproduction.cells import Cell, Result
from reproduction.plan import Experiment, load_method
from subspaces import SubspaceClustering, datasets, registry
from subspaces.datasets.loaders import NAMED
from subspaces.engine.run import Cache, run
from subspaces.kernels.scaling import apply_scaling, fit_scaling
from subspaces.metrics import PAPER_SCORES, clustering_scores
from subspaces.spectral.assign import cut_embedding
from subspaces.utils.decompositions import svd
from subspaces.utils.progress import PLAIN, progress_to
from subspaces.utils.types import Array, Labels

IMAGE_SHAPES = {"yaleb": (32, 32), "coil20": (32, 32), "coil100": (32, 32), "orl": (32, 32)}
HOPKINS = "hopkins155"
"""Not one set of points but many, each clustered by itself: see `load_sequences`."""
CORRUPTION = ("corruption", "level", "noise_seed")
N_FACES = 16
"""Images beside the matrices of Fig. 2."""

# ------------------------------------------------------------------ samples


def data_needed(experiment: Experiment) -> dict[str, str]:
    """Return the titles of the data sets by name."""
    names = dict.fromkeys(panel["data"]["name"] for panel in experiment.panels)
    return {name: "Hopkins155" if name == HOPKINS else NAMED[name].title for name in names}


def needs_torch(experiment: Experiment) -> bool:
    """Tell whether any of the rows is a network."""
    asked = [{**experiment.protocol, **panel.get("protocol", {})} for panel in experiment.panels if panel["rows"]]
    return any(protocol.get("needs") == "torch" for protocol in asked)


def check_needs(experiment: Experiment, home: Path | None) -> None:
    """Refuse before anything is computed what cannot be: data that are not to be had, a missing PyTorch."""
    for name, title in data_needed(experiment).items():
        try:
            find_sequences(home) if name == HOPKINS else load_whole(name, home)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{experiment.name} needs {title}: {error}") from error
    if needs_torch(experiment):
        try:
            from subspaces.deep import DSCNet  # noqa: F401
        except ImportError as error:
            raise ImportError(f"{experiment.name} trains networks: {error}") from error


@lru_cache(maxsize=2)
def load_whole(name: str, home: Path | None, shape: tuple[int, int] | None = None) -> tuple[Array, Labels]:
    """Load a whole data set; kept, because neighbouring cells use the same one. `shape`: faces of another size."""
    if shape is not None:
        X, y = datasets.load_yaleb(image_shape=shape, data_home=home, return_X_y=True)
        return X, y
    return NAMED[name].load(home)


def find_sequences(home: Path | None) -> Path:
    """Find the archive of tracks: ``NAME_X`` (tracks × 2 · frames) and ``NAME_y`` (their motions) of every sequence."""
    path = datasets.get_data_home(home) / "hopkins155_part.npz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; it is no download, put an archive of NAME_X and NAME_y there")
    return path


def load_sequences(points: Mapping[str, Any], home: Path | None = None) -> list[tuple[Array, Labels]]:
    """Load tracks and motions of the sequences with as many ``motions`` as said, `prepared`."""
    with np.load(find_sequences(home), allow_pickle=False) as archive:
        names = sorted(name[:-2] for name in archive.files if name.endswith("_X"))
        sequences = [(archive[f"{name}_X"].astype(np.float64), archive[f"{name}_y"]) for name in names]
    found = [(prepared(X, points), y) for X, y in sequences if len(np.unique(y)) in points["motions"]]
    if not found:
        wanted = " or ".join(map(str, points["motions"]))
        raise ValueError(f"no sequence in {find_sequences(home)} has {wanted} motions")
    return found


def prepared(X: Array, points: Mapping[str, Any]) -> Array:
    """Return samples as the programs of some authors prepare them.

    With ``axes``, a number: by their coordinates along so many principal axes, not centred (LSR's programs); those of
    ``unit`` length have it before axes are left out. With ``constant``: with a further feature that is 1 everywhere.
    """
    if "axes" in points:
        _, _, axes = svd(X - X.mean(axis=0))
        X = X @ axes.T
        if points.get("unit"):
            X = X / np.linalg.norm(X, axis=1, keepdims=True)
        X = np.ascontiguousarray(X[:, : points["axes"]])
    return np.column_stack([X, np.ones(len(X))]) if points.get("constant") else X


def load_points(points: Mapping[str, Any], home: Path | None = None) -> tuple[Array, Labels]:
    """Load the samples that a cell describes.

    They have the ``name`` of a data set; optionally ``image_shape`` (of faces), ``first`` (so many classes),
    ``persons`` and ``group`` (so many classes each), ``per_class`` and ``draw`` (a random subset and its seed),
    ``corruption`` (``gaussian`` or ``salt_and_pepper``) with ``level`` and ``noise_seed``; then what `prepared` knows.
    """
    shape = points.get("image_shape")
    X, y = load_whole(points["name"], home, None if shape is None else tuple(shape))
    if "first" in points:
        X, y = X[y < points["first"]], y[y < points["first"]]
    if "persons" in points:
        chosen = y // points["persons"] == points["group"]
        X, y = X[chosen], y[chosen]
    if "per_class" in points:
        rows = datasets.balanced_subset(y, points["per_class"], random_state=points["draw"])
        X, y = X[rows], y[rows]
    if points.get("corruption") == "gaussian":
        X = datasets.add_gaussian_noise(X, points["level"], random_state=points["noise_seed"])
    elif points.get("corruption") == "salt_and_pepper":
        X = datasets.salt_and_pepper(X, points["level"] / 100, random_state=points["noise_seed"])
    elif points.get("corruption"):
        raise ValueError(f"corruption must be gaussian or salt_and_pepper; got {points['corruption']!r}")
    return prepared(X, points), y


# ------------------------------------------------------------------ results


def compute(cell: Cell, home: Path | None = None) -> Result:
    """Compute a cell; warnings become part of the result."""
    sequences = load_sequences(cell["points"], home) if cell["kind"] == "films" else []
    if sequences:  # all numbers of all sequences, to name them by
        X, y = np.concatenate([X.ravel() for X, _ in sequences]), np.concatenate([y for _, y in sequences])
    else:
        X, y = load_points(cell["points"], home)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if cell["kind"] == "samples":
            clean = {name: value for name, value in cell["points"].items() if name not in CORRUPTION}
            result = _samples(cell, X, load_points(clean, home)[0])
        else:
            result = _each_sequence(cell, sequences) if sequences else KINDS[cell["kind"]](cell, X, y)
    return {
        **result,
        "n": len(y),
        "classes": len(np.unique(y)),
        "points": hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()[:16],
        "cpu_seconds": round(time.process_time() - start, 3),
        "made_by": code_of(cell["method"]),
        "warnings": sorted({str(warning.message)[:200] for warning in caught}),
    }


@cache
def code_of(method: str) -> str:
    """Return commit and hash of the code that results of a method come from; other cells keep it with their numbers."""
    folders = (*LIBRARY, *["selection"] * (method == "automatic"), *["deep"] * (method in registry.names("deep")))
    text = " ".join(code_hash(SOURCE / folder) for folder in folders)
    text += Path(inspect.getfile(load_method(method))).read_text(encoding="utf-8") if ":" in method else ""
    asked = [shutil.which("git") or "true", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=SOURCE, capture_output=True, text=True).stdout.strip()
    return f"{commit} {hashlib.sha256(text.encode()).hexdigest()[:8]}".strip()


def _cut_often(cell: Cell, X: Array, y: Labels) -> Result:
    """Compute the graph and its embedding once, then every cut of every run: only the seeds of the cuts differ.

    t1 are the seconds from the data to the graph, t2 those of a whole clustering, one run of the first cut included.
    """
    k, components, t1, embedding = len(np.unique(y)), None, 0.0, 0.0
    if cell["method"] in registry.names("graph"):
        cut, components, t1, embedding = _by_engine(cell, X, k)
    else:
        cut = _without_graph(cell, X, k)
    scores, first_cut = {}, None
    for how in cell["cuts"]:
        found = []
        for seed in how["seeds"]:
            start = time.process_time()
            found.append(cut(how, seed))
            first_cut = time.process_time() - start if first_cut is None else first_cut
        scores[how["name"]] = _scores(y, found)
    t2 = t1 + embedding + (first_cut or 0.0)
    return {"scores": scores, "t1": round(t1, 4), "t2": round(t2, 4), "components": components}


Cut = Callable[[Mapping[str, Any], int], Labels]


def _by_engine(cell: Cell, X: Array, k: int) -> tuple[Cut, int, float, float]:
    """Go from data to embedding, kept for all cuts; count components and CPU seconds of graph and of embedding."""
    plan = registry.load(cell["method"])(n_clusters=k, n_init=1, **parameters(cell)).plan(X)
    cache = Cache(kernel=0, coefficients=0, cut=0)
    starts: dict[str, float] = {}

    def began(phase: str, *_: int | None) -> None:
        starts.setdefault(phase, time.process_time())

    with progress_to(began):
        found = run(plan, X, cache=cache, until="embedding")
    end = time.process_time()
    embedding = starts.get(PLAIN["embedding"], end)
    graph = embedding - starts.get(PLAIN["kernel"], embedding)

    def cut(how: Mapping[str, Any], seed: int) -> Labels:
        other = replace(plan, cut=replace(plan.cut, n_init=how["restarts"], init=how["init"]), seed=seed)
        labels = run(other, X, cache=cache).labels
        assert labels is not None
        return labels

    return cut, int(found.graph.n_components), graph, end - embedding


def _without_graph(cell: Cell, X: Array, k: int) -> Cut:
    """Return what stands beside the methods: one label for all samples, and k-means on the samples themselves."""
    if cell["method"] == "constant":
        return lambda how, seed: np.zeros(len(X), dtype=np.intp)
    points = apply_scaling(X, fit_scaling(X, parameters(cell).get("scaling")))
    return lambda how, seed: cut_embedding(points, k, n_init=how["restarts"], init=how["init"], seed=seed)


def _fit_often(cell: Cell, X: Array, y: Labels) -> Result:
    """Fit anew for every run: large, deep and automatic methods, whose seeds decide more than the cut."""
    k = len(np.unique(y))
    if cell["method"] in registry.names("deep"):
        X = (X / X.max()).astype(np.float32).reshape(len(X), *IMAGE_SHAPES[cell["points"]["name"]])
    found, seconds, chosen = [], [], []
    (how,) = cell["cuts"]
    for seed in how["seeds"]:
        start = time.process_time()
        if cell["method"] in ("constant", "k-means"):
            found.append(_without_graph(cell, X, k)(how, seed))
        else:
            model = make_model(cell["method"], parameters(cell), n_clusters=k, seed=seed)
            found.append(model.fit_predict(X))
            selection = getattr(model, "selection_", None)
            chosen.append(None if selection is None else str(selection.parameters))
        seconds.append(round(time.process_time() - start, 3))
    return {"scores": {how["name"]: {**_scores(y, found), "seconds": seconds}}, "chosen": chosen}


def make_model(name: str, settings: Mapping[str, Any], *, n_clusters: int, seed: int) -> Any:
    """Make an estimator for so many clusters."""
    cls: Any = SubspaceClustering if name == "automatic" else load_method(name)
    return cls(n_clusters=n_clusters, random_state=seed, **settings)


def _each_sequence(cell: Cell, sequences: Sequence[tuple[Array, Labels]]) -> Result:
    """Cluster every sequence by itself, with the seed of the cell: one score for each."""
    (how,) = cell["cuts"]
    (seed,) = how["seeds"]
    tables = []
    for X, y in sequences:
        k = len(np.unique(y))
        settings = {name: _times(value, k) for name, value in parameters(cell).items()}
        model = make_model(cell["method"], {**settings, "n_init": how["restarts"]}, n_clusters=k, seed=seed)
        tables.append(_scores(y, [model.fit_predict(X)]))
    return {"scores": {how["name"]: {short: [each[short][0] for each in tables] for short in PAPER_SCORES}}}


def _times(value: Any, k: int) -> Any:
    """Return a parameter; ``{"a cluster": 4}`` is four times the number of clusters."""
    return k * value["a cluster"] if isinstance(value, Mapping) and "a cluster" in value else value


def _coefficients(cell: Cell, X: Array, y: Labels) -> Result:
    """Return the coefficients before truncation and the similarities after it, for a picture."""
    plan = registry.load(cell["method"])(n_clusters=len(np.unique(y)), **parameters(cell)).plan(X)
    cache = Cache()
    found = run(replace(plan, canonical=False), X, cache=cache)
    assert found.labels is not None
    C, W = cache.find(plan.key("coefficients"))[0].dense(), found.graph.W.toarray()
    inside = 100 * float(W[y[:, None] == y[None]].sum() / W.sum())
    return {
        "scores": {cell["cuts"][0]["name"]: {**_scores(y, [found.labels]), "weight inside": [inside]}},
        "C": _rounded(abs(C)),
        "W": _rounded(W),
        "image": [_pixels(cell, X[row], X.max()) for row in range(0, len(X), -(-len(X) // N_FACES))],
    }


def _samples(cell: Cell, X: Array, clean: Array) -> Result:
    """Return the first image, damaged, and what the damage is over all of them."""
    noise, span = X - clean, float(np.ptp(clean))
    snr = 10 * np.log10(np.mean(clean**2) / np.mean(noise**2))
    changed = np.mean(np.abs(noise) > span / 10)
    scores = {"SNR (dB)": [round(float(snr), 4)], "changed (%)": [round(100 * float(changed), 4)]}
    return {"scores": {cell["cuts"][0]["name"]: scores}, "image": [_pixels(cell, X[0], clean.max())]}


def _pixels(cell: Cell, row: Array, white: float) -> list[list[int]]:
    """Return an image in 256 greys, upright; empty where the samples are no images."""
    shape = IMAGE_SHAPES.get(cell["points"]["name"])
    grey = np.clip(np.rint(255 * row / white), 0, 255).astype(int)
    return [] if shape is None else grey.reshape(shape).tolist()


def _picture(cell: Cell, X: Array, y: Labels) -> Result:
    """Return samples and labels, few enough to be kept."""
    model = registry.load(cell["method"])(n_clusters=len(np.unique(y)), **parameters(cell)).fit(X)
    return {**_fit_often(cell, X, y), "X": _rounded(X), "y": y.tolist(), "labels": model.labels_.tolist()}


KINDS = {"cut": _cut_often, "fit": _fit_often, "coefficients": _coefficients, "picture": _picture}
"""Ways to compute a cell."""


def parameters(cell: Cell) -> dict[str, Any]:
    """Return the estimator's parameters; none stands for None, and partition is what kept cells call assign_labels."""
    named = {"partition": "assign_labels"}
    return {named.get(name, name): None if value == "none" else value for name, value in cell["parameters"].items()}


def _scores(y: Labels, found: Iterable[Labels]) -> dict[str, list[float]]:
    tables = [clustering_scores(y, labels) for labels in found]
    return {short: [round(100 * table[long], 4) for table in tables] for short, long in PAPER_SCORES.items()}


def _rounded(values: Array) -> list[list[float]]:
    return [[float(f"{value:.4g}") for value in row] for row in values.tolist()]
