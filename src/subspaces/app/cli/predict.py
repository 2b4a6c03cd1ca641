"""``subspaces predict``: labels for new samples, by a model that ``subspaces cluster --save`` wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import tell
from subspaces.app.cli._features import features_of_model, new_vectors
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._options import Reading
from subspaces.app.cli._outputs import sizes_of
from subspaces.utils.progress import phase, shown
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files import Dataset
    from subspaces.app.files.models import Reading as ModelReading

LABELS = "File for the labels beside the columns of FILE: .csv, .tsv, .xlsx, .parquet or .npy (labels only)."


_NEARLY = 1e-6  # rounding of single precision


@options.reads_files
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help='Model (.skops) that "subspaces cluster --save" wrote.')
    ],
    file: options.FilesArgument,
    reading: Reading,
    output: Annotated[Path | None, options.output("-o --output", "FILE", LABELS)] = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Label the samples of FILE with the clusters of MODEL.

    New samples are read as those of the model were: images in its size and colours, of a table the columns that it had,
    by their names where there are names. --features is only for a model of vectors of a file: those of the new images.

    Example: subspaces predict model.skops new/ -o labels.csv
    """
    from subspaces.app.files import check_output, write_labels
    from subspaces.app.files.models import load_model
    from subspaces.app.groups import groups_of, table_of

    reading.no_settings()
    inputs = Inputs.of(file)
    if output is not None:
        check_output(output, force=force, source=inputs.main)
    with shown(not (quiet or as_json)):
        with phase("Reading the model"):
            estimator, known = load_model(model)
        extractor = features_of_model(reading.features, known)
        data = new_vectors(_read(inputs, known, reading.given), extractor)
        if data.X.shape[1] != known.n_features:
            from subspaces.app.files import FileError

            found = f"its points have {counted(data.X.shape[1], 'value')}, those of the model {known.n_features}"
            raise FileError(inputs.title, f"{found}; name a file like the one that the model was fitted on")
        with phase("Labelling the points"):
            labels = estimator.predict(data.X)
            columns = {} if output is None and not as_json else _how_sure(estimator, data.X, labels)
    if output is not None:
        table = table_of(data, groups_of(data, labels, getattr(estimator, "class_names_", None)))
        write_labels(output, labels, columns=columns, **table, force=force)
    if as_json:
        document = {"model": str(model), "source": inputs.title, **data.places, "cluster": labels.tolist(), **columns}
        typer.echo(json.dumps(document, allow_nan=False))
    elif not quiet:
        _say(inputs.title, labels.tolist(), data, columns, output)


def _how_sure(estimator: Any, X: Any, labels: Any) -> dict[str, Any]:
    """Return what is known of each label; only its name where the method keeps no samples to compare with.

    Together with the memberships a constant is asked for, which fades with the distance as they do: by it is known how
    far a point is from the samples it is compared with, 1 for the usual distance.
    """
    import numpy as np

    from subspaces.engine.confidence import UNSURE

    names = getattr(estimator, "class_names_", {})
    found = {"name": [str(names.get(label, "")) for label in labels.tolist()]} if names else {}
    predictor: Any = getattr(estimator, "_predictor", None)
    if not hasattr(predictor, "memberships"):
        return found
    k, rows = estimator.n_clusters_, np.arange(len(labels))
    known = np.column_stack([estimator.membership_, np.full(len(estimator.labels_), 2.0)])
    sure = np.array(predictor.memberships(estimator._validated_new(X), known, estimator.affinity_matrix_))
    near = (sure[:, k] - 1 / k) / (2 - 1 / k)
    confidence, sure[rows, labels] = sure[rows, labels], -1
    second = np.where(k > 1, sure[:, :k].argmax(axis=1), -1).tolist()
    return found | {
        "confidence": confidence.tolist(),
        "second_cluster": [None if label < 0 else label for label in second],
        "doubtful": (confidence < UNSURE).tolist(),
        "fits_nowhere": (near < 1 - _NEARLY).tolist(),
    }


def _read(inputs: Inputs, known: ModelReading, given: dict[str, Any]) -> Dataset:
    """Return new samples, read as those of the model were."""
    from subspaces.app.files import read_table
    from subspaces.app.files.reading import has_columns

    shape = known.image_shape
    if shape is not None:
        as_those = {"image_size": (shape[0], shape[1]), "color": len(shape) == 3, "min_images": 1}
        return read_table(inputs.source, **{**given, **as_those})
    names = known.feature_names if all(map(has_columns, inputs.files)) else None
    data = read_table(inputs.source, **given, columns=names)
    if known.feature_names and not data.feature_names and data.texts is None:
        note = "there are no names of columns: they are taken in the order of the model's"
        return replace(data, notes=(*data.notes, note))
    return data


def _say(title: str, labels: list[int], data: Dataset, columns: dict[str, Any], output: Path | None) -> None:
    tell(f"{title}: {counted(len(labels), 'point')} in {counted(len(set(labels)), 'cluster')}")
    tell(f"points in each cluster: {sizes_of(labels)}")
    if data.y is not None and (data.y >= 0).any():
        import numpy as np

        from subspaces.metrics import score_table

        known = data.y >= 0
        typer.echo(f"\n{score_table(data.y[known], {'predicted': np.asarray(labels)[known]})}\n")
    if "fits_nowhere" in columns:
        doubtful, nowhere = (sum(columns[name]) for name in ("doubtful", "fits_nowhere"))
        tell(f"{doubtful} doubtful; {counted(nowhere, 'fits', 'fit')} nowhere: unlike all points of the model")
    tell(*(f"note: {note}" for note in data.notes))
    tell("no file written; -o labels.csv saves the labels" if output is None else f"labels written to {output}")
