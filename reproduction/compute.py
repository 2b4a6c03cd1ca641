"""A cell → its result: scores of every cut in percent, CPU seconds, and what a reader needs to judge them."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.data import IMAGE_SHAPES, load_films, load_points
from reproduction.entries import Cell, Result
from reproduction.own import make_model
from subspaces import registry
from subspaces.engine.run import Cache, Journey, run
from subspaces.metrics import PAPER_SCORES, clustering_scores
from subspaces.numerics.types import Array, Labels
from subspaces.partition import cut_embedding
from subspaces.scaling import apply_scaling, fit_scaling

CORRUPTION = ("corruption", "level", "noise_seed")
N_FACES = 16
"""Images beside the matrices of Fig. 2."""


def compute(cell: Cell, home: Path | None = None) -> Result:
    """Compute a cell; warnings become part of the result."""
    films = load_films(cell["points"], home) if cell["kind"] == "films" else []
    X, y = _joined(films) if films else load_points(cell["points"], home)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if cell["kind"] == "samples":
            clean = {name: value for name, value in cell["points"].items() if name not in CORRUPTION}
            result = _samples(cell, X, load_points(clean, home)[0])
        elif films:
            result = _each_film(cell, films)
        else:
            result = KINDS[cell["kind"]](cell, X, y)
    return {
        **result,
        "n": len(y),
        "classes": len(np.unique(y)),
        "points": hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()[:16],
        "cpu_seconds": round(time.process_time() - start, 3),
        "warnings": sorted({str(warning.message)[:200] for warning in caught}),
    }


def _cut_often(cell: Cell, X: Array, y: Labels) -> Result:
    """The graph and its embedding once, then every cut of every run: only the seeds of the cuts differ.

    t1 are the seconds from the data to the graph, t2 those of a whole clustering, one run of the first cut included.
    """
    k = len(np.unique(y))
    seconds: dict[str, float] = {}
    cut, journey = (_by_engine if cell["method"] in registry.names("graph") else _without_graph)(cell, X, k, seconds)
    scores, first_cut = {}, None
    for how in cell["cuts"]:
        found = []
        for seed in how["seeds"]:
            start = time.process_time()
            labels = cut(how, seed)
            first_cut = time.process_time() - start if first_cut is None else first_cut
            found.append(labels)
        scores[how["name"]] = _scores(y, found)
    t1 = sum(seconds.get(stage, 0.0) for stage in ("kernel", "coefficients", "graph"))
    t2 = t1 + seconds.get("embedding", 0.0) + (first_cut or 0.0)
    components = None if journey is None else int(journey.graph.n_components)
    return {"scores": scores, "t1": round(t1, 4), "t2": round(t2, 4), "components": components}


Cut = Callable[[Mapping[str, Any], int], Labels]


def _by_engine(cell: Cell, X: Array, k: int, seconds: dict[str, float]) -> tuple[Cut, Journey]:
    """Data → graph → embedding, kept for all cuts; adds the CPU seconds of each stage."""
    plan = registry.load(cell["method"])(n_clusters=k, n_init=1, **parameters(cell)).plan(X)
    cache = Cache(kernel=0, coefficients=0, cut=0)

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        start = time.process_time()
        yield
        seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - start

    journey = run(plan, X, cache=cache, listen=timed, until="embedding")

    def cut(how: Mapping[str, Any], seed: int) -> Labels:
        other = replace(plan, cut=replace(plan.cut, n_init=how["restarts"], init=how["init"]), seed=seed)
        labels = run(other, X, cache=cache).labels
        assert labels is not None
        return labels

    return cut, journey


def _without_graph(cell: Cell, X: Array, k: int, seconds: dict[str, float]) -> tuple[Cut, None]:
    """What stands beside the methods: one label for all points, and k-means on the points themselves."""
    if cell["method"] == "constant":
        return lambda how, seed: np.zeros(len(X), dtype=np.intp), None
    points = apply_scaling(X, fit_scaling(X, parameters(cell).get("scaling")))
    return lambda how, seed: cut_embedding(points, k, n_init=how["restarts"], init=how["init"], seed=seed), None


def _fit_often(cell: Cell, X: Array, y: Labels) -> Result:
    """Everything anew for every run: large, deep and automatic methods, whose seeds decide more than the cut."""
    k = len(np.unique(y))
    settings = parameters(cell)
    if cell["method"] in registry.names("deep"):
        X = (X / X.max()).astype(np.float32).reshape(len(X), *IMAGE_SHAPES[cell["points"]["name"]])
    found, seconds, chosen = [], [], []
    (how,) = cell["cuts"]
    for seed in how["seeds"]:
        start = time.process_time()
        if cell["method"] in ("constant", "k-means"):
            found.append(_without_graph(cell, X, k, {})[0](how, seed))
        else:
            model = make_model(cell["method"], settings, n_clusters=k, seed=seed)
            found.append(model.fit_predict(X))
            selection = getattr(model, "selection_", None)
            chosen.append(None if selection is None else str(selection.parameters))
        seconds.append(round(time.process_time() - start, 3))
    return {"scores": {how["name"]: {**_scores(y, found), "seconds": seconds}}, "chosen": chosen}


def _joined(films: Sequence[tuple[Array, Labels]]) -> tuple[Array, Labels]:
    """All numbers of all sequences, to name them by."""
    return np.concatenate([X.ravel() for X, _ in films]), np.concatenate([y for _, y in films])


def _each_film(cell: Cell, films: Sequence[tuple[Array, Labels]]) -> Result:
    """Every sequence by itself, with the seed of the cell: one score for each."""
    (how,) = cell["cuts"]
    (seed,) = how["seeds"]
    tables = []
    for X, y in films:
        k = len(np.unique(y))
        settings = {name: _times(value, k) for name, value in parameters(cell).items()}
        model = make_model(cell["method"], {**settings, "n_init": how["restarts"]}, n_clusters=k, seed=seed)
        tables.append(_scores(y, [model.fit_predict(X)]))
    return {"scores": {how["name"]: {short: [each[short][0] for each in tables] for short in PAPER_SCORES}}}


def _times(value: Any, k: int) -> Any:
    """A parameter; ``{"a cluster": 4}`` is four times the number of clusters."""
    return k * value["a cluster"] if isinstance(value, Mapping) and "a cluster" in value else value


def _coefficients(cell: Cell, X: Array, y: Labels) -> Result:
    """The coefficients before truncation and the similarities after it, for a picture."""
    plan = registry.load(cell["method"])(n_clusters=len(np.unique(y)), **parameters(cell)).plan(X)
    cache = Cache()
    journey = run(replace(plan, canonical=False), X, cache=cache)
    assert journey.labels is not None
    found, _ = cache.find(plan.key("coefficients"))
    W = journey.graph.W.toarray()
    inside = W[y[:, None] == y[None]].sum() / W.sum()
    how = cell["cuts"][0]
    return {
        "scores": {how["name"]: {**_scores(y, [journey.labels]), "weight inside": [100 * float(inside)]}},
        "C": _rounded(abs(found.dense())),
        "W": _rounded(W),
        "image": [_pixels(cell, X[row], X.max()) for row in range(0, len(X), -(-len(X) // N_FACES))],
    }


def _samples(cell: Cell, X: Array, clean: Array) -> Result:
    """The first image, damaged, and what the damage is over all of them."""
    noise, span = X - clean, float(np.ptp(clean))
    snr = 10 * np.log10(np.mean(clean**2) / np.mean(noise**2))
    changed = np.mean(np.abs(noise) > span / 10)
    scores = {"SNR (dB)": [round(float(snr), 4)], "changed (%)": [round(100 * float(changed), 4)]}
    return {"scores": {cell["cuts"][0]["name"]: scores}, "image": [_pixels(cell, X[0], clean.max())]}


def _pixels(cell: Cell, row: Array, white: float) -> list[list[int]]:
    """An image in 256 greys, upright; empty where the points are no images."""
    shape = IMAGE_SHAPES.get(cell["points"]["name"])
    grey = np.clip(np.rint(255 * row / white), 0, 255).astype(int)
    return [] if shape is None else grey.reshape(shape).tolist()


def _picture(cell: Cell, X: Array, y: Labels) -> Result:
    """Points and labels, few enough to be kept."""
    result = _fit_often(cell, X, y)
    model = registry.load(cell["method"])(n_clusters=len(np.unique(y)), **parameters(cell)).fit(X)
    return {**result, "X": _rounded(X), "y": y.tolist(), "labels": model.labels_.tolist()}


KINDS: dict[str, Callable[[Cell, Array, Labels], Result]] = {
    "cut": _cut_often,
    "fit": _fit_often,
    "coefficients": _coefficients,
    "picture": _picture,
}
"""Ways to compute a cell."""


def parameters(cell: Cell) -> dict[str, Any]:
    """The estimator's parameters; TOML has no None, so the word none stands for it."""
    return {name: None if value == "none" else value for name, value in cell["parameters"].items()}


def _scores(y: Labels, found: Iterable[Labels]) -> dict[str, list[float]]:
    tables = [clustering_scores(y, labels) for labels in found]
    return {short: [round(100 * table[long], 4) for table in tables] for short, long in PAPER_SCORES.items()}


def _rounded(values: Array) -> list[list[float]]:
    return [[float(f"{value:.4g}") for value in row] for row in values.tolist()]
