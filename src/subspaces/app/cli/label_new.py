"""``subspaces predict``: labels for new points, by a model that ``subspaces cluster --save`` wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import one_line
from subspaces.app.cli._features import features_of_model, new_vectors
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._outputs import sizes_of
from subspaces.utils.progress import phase, shown
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files import Dataset
    from subspaces.app.files.models import Reading

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help='Model (.skops) that "subspaces cluster --save" wrote.')
]
LabelsOption = Annotated[
    Path | None,
    options.output("-o --output", "FILE", "File for the labels: .csv, .tsv, .xlsx, .parquet, .json or .npy."),
]


VectorsOption = Annotated[
    str | None,
    options.data(
        "--features",
        "FILE",
        "A .npy with a vector for each new image, for a model of images that was fitted to vectors of a file; other "
        "models know how to look at images.",
    ),
]


def predict(
    model: ModelArgument,
    file: options.FilesArgument,
    id_: options.IdOption = None,
    ignore: options.IgnoreOption = None,
    array: options.ArrayOption = None,
    header: options.HeaderOption = None,
    decimal: options.DecimalOption = None,
    missing: options.MissingOption = "error",
    text: options.TextOption = None,
    features: VectorsOption = None,
    output: LabelsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Label the points of FILE with the clusters of MODEL.

    New points are read as those of the model were: images in its size and colours, of a table the columns that it had,
    by their names where there are names.

    Example: subspaces predict model.skops new/ -o labels.csv
    """
    from subspaces.app.files import check_output, write_labels
    from subspaces.app.files.models import load_model

    inputs = Inputs.of(file)
    if output is not None:
        check_output(output, force=force, source=inputs.main)
    options_of_reading: dict[str, Any] = {"id": id_, "array": array, "header": header, "decimal": decimal}
    options_of_reading |= {"missing": missing, "text": text, "ignore": ignore or ()}
    with shown(not (quiet or as_json)):
        with phase("Reading the model"):
            estimator, reading = load_model(model)
        extractor = features_of_model(features, reading)
        data = _read(inputs, reading, options_of_reading, partial(new_vectors, extractor=extractor))
        with phase("Labelling the points"):
            labels = estimator.predict(data.X)
    if output is not None:
        write_labels(output, labels, **data.table, force=force)
    if as_json:
        document = {"model": str(model), "source": inputs.title, **data.places, "cluster": labels.tolist()}
        typer.echo(json.dumps(document, allow_nan=False))
    elif not quiet:
        _say(inputs.title, labels.tolist(), data, output)


def _read(inputs: Inputs, reading: Reading, given: dict[str, Any], look: Callable[[Dataset], Dataset]) -> Dataset:
    """New points, read as those of the model were, and looked at as those were."""
    from subspaces.app.files import FileError, read_table
    from subspaces.app.files.reading import has_columns

    shape = reading.image_shape
    if shape is not None:
        data = read_table(inputs.source, **given, image_size=(shape[0], shape[1]), color=len(shape) == 3, min_images=1)
    else:
        names = reading.feature_names if all(map(has_columns, inputs.files)) else None
        data = read_table(inputs.source, **given, columns=names)
        if reading.feature_names and not data.feature_names and data.texts is None:
            note = "there are no names of columns: they are taken in the order of the model's"
            data = replace(data, notes=(*data.notes, note))
    data = look(data)
    if data.X.shape[1] != reading.n_features:
        found = f"its points have {counted(data.X.shape[1], 'value')}, those of the model {reading.n_features}"
        raise FileError(inputs.title, f"{found}; name a file like the one that the model was fitted on")
    return data


def _say(title: str, labels: list[int], data: Dataset, output: Path | None) -> None:
    typer.echo(one_line(f"{title}: {counted(len(labels), 'point')} in {counted(len(set(labels)), 'cluster')}"))
    typer.echo(f"points in each cluster: {sizes_of(labels)}")
    for note in data.notes:
        typer.echo(f"note: {one_line(note)}")
    told = f"labels written to {output}" if output is not None else "no file written; -o labels.csv saves the labels"
    typer.echo(one_line(told))
