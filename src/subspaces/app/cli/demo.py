"""``subspaces demo``: the handwritten digits of scikit-learn, clustered by four methods side by side."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import tell


def demo(
    output: Annotated[Path, options.output("-o --output", "FOLDER", "Folder for the files; left out, demo.")] = Path(
        "demo"
    ),
    seed: options.SeedOption = None,
    debug: options.DebugOption = False,
) -> None:
    """Cluster handwritten digits with four methods and compare them.

    The 1797 digits come with scikit-learn. No method sees the true digits; they only score the results.

    Writes labels.csv and digits.png to the folder, replacing what an earlier demo left there.
    """
    import pandas as pd
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import normalize

    from subspaces.app.files import FileError
    from subspaces.inspection.plots import show
    from subspaces.metrics import score_table
    from subspaces.utils.atomic import write_atomically, write_text

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(output, f"the folder cannot be made ({error.strerror}); choose another with -o") from None
    typer.echo("Clustering 1797 handwritten digits of 8 x 8 pixels into 10 groups takes a few seconds ...\n")
    digits = load_digits()
    models = _fitted(normalize(digits.data), seed or 0)
    labels = {name: model.labels_ for name, model in models.items()}
    table = score_table(digits.target, labels)
    write_text(output / "labels.csv", pd.DataFrame({"digit": digits.target, **labels}).to_csv(index_label="row"))
    best = max((name for name in models if name.startswith("KTRR")), key=lambda name: table.rows[name]["accuracy"])
    figure = Figure(figsize=(12.8, 11.2), layout="constrained")
    show(models[best], digits.data.max() - digits.data, image_shape=(8, 8), figure=figure)  # dark on light, as written
    figure.suptitle(f"Handwritten digits, clustered without their labels by {best}", fontsize=14)
    with write_atomically(output / "digits.png") as stream:
        figure.savefig(stream, format="png", dpi=120)
    share = {name: f"{100 * scores['accuracy']:.0f} %" for name, scores in table.rows.items()}
    others = f"k-means {share['k-means']} and a constant label {share['constant label']}"
    typer.echo(f"{best}, puts {share[best]} of the images with their own digit; {others}.\n\n{table}\n")
    tell(f"Labels of every method: {output / 'labels.csv'}", f"Picture of {best}: {output / 'digits.png'}")
    tell("Your own data: subspaces cluster FILE (a table, or a folder of images)")


def _fitted(X: Any, seed: int) -> dict[str, Any]:
    from sklearn.cluster import KMeans, SpectralClustering

    from subspaces import KTRR

    neighbours: dict[str, Any] = {"affinity": "nearest_neighbors", "n_neighbors": 10}
    models = {
        "k-means": KMeans(10, n_init=20, random_state=seed),
        "spectral clustering (10 neighbours)": SpectralClustering(10, **neighbours, n_init=20, random_state=seed),
        "KTRR, cut by k-means": KTRR(10, assign_labels="kmeans", random_state=seed),
        "KTRR, cut by modularity": KTRR(10, assign_labels="modularity", random_state=seed),
    }
    with warnings.catch_warnings():
        # the neighbour graph of the digits falls apart; scikit-learn connects it and says so
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        return {name: model.fit(X) for name, model in models.items()}
