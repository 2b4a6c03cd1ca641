"""``subspaces demo``: the handwritten digits of scikit-learn, clustered by four methods side by side."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import one_line, program
from subspaces.app.description import plain

N_SAMPLES = 12
"""Images that the picture shows of each cluster."""


class Run(NamedTuple):
    """One method's result."""

    labels: Any
    seconds: float
    model: Any


def demo(
    output: options.FolderOption = Path("demo"),
    seed: options.SeedOption = None,
    as_json: options.JsonOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Cluster handwritten digits with four methods and compare them.

    The 1797 digits come with scikit-learn. No method sees the true digits; they only score the results.

    Writes labels.csv and digits.png to the folder, replacing what an earlier demo left there.
    """
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import normalize

    from subspaces import __version__
    from subspaces.app.files import FileError
    from subspaces.utils.atomic import write_atomically, write_text

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(output, f"the folder cannot be made ({error.strerror}); choose another with -o") from None
    if not as_json:
        typer.echo("Clustering 1797 handwritten digits of 8 x 8 pixels into 10 groups takes a few seconds ...\n")
    digits = load_digits()
    runs = run_methods(normalize(digits.data), seed or 0)
    scores = score(digits.target, runs)

    write_text(output / "labels.csv", _labels_table(digits.target, runs))
    best = max((name for name in runs if name.startswith("KTRR")), key=lambda name: scores[name]["AC"])
    files = [output / "labels.csv"]
    if find_spec("matplotlib") is not None:
        files.append(output / "digits.png")
        with write_atomically(files[-1]) as stream:
            draw(stream, digits.images, digits.target, runs[best], best)
    if as_json:
        document = {"version": __version__, "scores": scores, "pictured": best}
        parameters = plain(runs[best].model.get_params())
        typer.echo(json.dumps({**document, "parameters": parameters, "files": list(map(str, files))}, allow_nan=False))
        return
    others = " and ".join(f"{name} {scores[name]['AC']:.0f} %" for name in ("k-means", "one label for all"))
    typer.echo(f"{best}, puts {scores[best]['AC']:.0f} % of the images with their own digit; {others}.\n")
    typer.echo(format_table(scores))
    typer.echo("\nAC accuracy, NMI mutual information, ARI adjusted Rand index, F pairwise F-score, all in percent.")
    typer.echo(one_line(f"Labels of every method: {files[0]}"))
    if len(files) > 1:
        typer.echo(one_line(f"Picture of {best}: {files[1]}"))
    else:
        typer.echo('No picture: it needs matplotlib (pip install "subspaces[app]").')
    typer.echo(one_line(f"Your own data: {program()} cluster FILE (a table, or a folder of images)"))


def run_methods(X: Any, seed: int) -> dict[str, Run]:
    """Cluster the same points with every method, timed."""
    from sklearn.cluster import KMeans, SpectralClustering

    from subspaces import KTRR

    methods: dict[str, Callable[[], Any]] = {
        "k-means": lambda: KMeans(10, n_init=20, random_state=seed),
        "spectral clustering (10 neighbours)": lambda: SpectralClustering(
            10, affinity="nearest_neighbors", n_neighbors=10, n_init=20, random_state=seed
        ),
        "KTRR, cut by k-means": lambda: KTRR(10, assign_labels="kmeans", random_state=seed),
        "KTRR, cut by modularity": lambda: KTRR(10, assign_labels="modularity", random_state=seed),
    }
    runs = {}
    for name, make in methods.items():
        model = make()
        start = perf_counter()
        with warnings.catch_warnings():
            # The neighbour graph of the digits falls apart; scikit-learn connects it and says so.
            warnings.filterwarnings("ignore", message="Graph is not fully connected")
            model.fit(X)
        runs[name] = Run(model.labels_, perf_counter() - start, model)
    return runs


def score(truth: Any, runs: dict[str, Run]) -> dict[str, dict[str, float]]:
    """Scores in percent and seconds of every method, after those of giving all points one label."""
    import numpy as np

    from subspaces.metrics import PAPER_SCORES, clustering_scores

    everything = {"one label for all": Run(np.zeros_like(truth), 0.0, None), **runs}
    table = {}
    for name, run in everything.items():
        found = clustering_scores(truth, run.labels)
        table[name] = {short: 100 * found[long] for short, long in PAPER_SCORES.items()} | {"seconds": run.seconds}
    return table


def format_table(scores: dict[str, dict[str, float]]) -> str:
    """Align the scores under their names."""
    width = max(map(len, scores))
    columns = list(next(iter(scores.values())))
    lines = [" " * width + "".join(f"{column:>9}" for column in columns)]
    for name, row in scores.items():
        cells = [f"{value:9.{2 if column == 'seconds' else 1}f}" for column, value in row.items()]
        lines.append(name.ljust(width) + "".join(cells))
    return "\n".join(lines)


def _labels_table(truth: Any, runs: dict[str, Run]) -> str:
    from subspaces.app.files.writing import write_rows

    columns = [truth.tolist(), *(run.labels.tolist() for run in runs.values())]
    text = io.StringIO()
    write_rows(text, [("row", "digit", *runs), *zip(range(len(truth)), *columns, strict=True)])
    return text.getvalue()


def draw(stream: BinaryIO, images: Any, truth: Any, run: Run, method: str) -> None:
    """Draw sample images of each cluster beside the graph that was cut, as PNG."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from subspaces.inspection.plots import AffinityDisplay, GalleryDisplay

    names, majority = _by_majority(truth, run.labels)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    steps = [np.linspace(0, len(rows) - 1, min(N_SAMPLES, len(rows))).astype(int) for rows in members]
    shown = [rows[step] for rows, step in zip(members, steps, strict=True)]

    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    samples, graph = figure.subplots(1, 2, width_ratios=(1.2, 1))
    ink = images.max() - images.reshape(len(images), -1)  # dark on light, as written
    GalleryDisplay.from_predictions(
        ink, names, image_shape=images.shape[1:], exemplars=shown, framed=truth != majority, ax=samples
    )
    samples.set_title("Images of each cluster; framed: not the digit most of the cluster shows", fontsize=11)
    samples.set_xlabel("digit that most of the cluster shows, size of the cluster")
    AffinityDisplay.from_predictions(run.model.affinity_matrix_, names, ax=graph)
    graph.set_title("The graph that was cut, images ordered by cluster", fontsize=11)
    figure.suptitle(f"Handwritten digits, clustered without their labels by {method}", fontsize=14)
    figure.savefig(stream, format="png", dpi=120)


def _by_majority(truth: Any, labels: Any) -> tuple[Any, Any]:
    """Name and digit of each point's cluster: the digit that most of it shows; a second one of that digit is "3b"."""
    import numpy as np

    clusters, codes = np.unique(labels, return_inverse=True)
    digits = np.array([np.bincount(truth[codes == k]).argmax() for k in range(len(clusters))])
    before = [int((digits[:k] == digits[k]).sum()) for k in range(len(clusters))]
    names = [f"{digit}{chr(ord('a') + seen) if seen else ''}" for digit, seen in zip(digits, before, strict=True)]
    return np.array(names)[codes], digits[codes]
