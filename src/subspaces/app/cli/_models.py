"""``--save``: a fitted model in a file."""

from __future__ import annotations

from pathlib import Path

from subspaces.app.cli._outputs import Run


def check_save(path: Path | None, source: Path, force: bool, features: str | None) -> None:
    """Refuse a model that could not be written, before it is fitted."""
    if path is None:
        return
    from subspaces.app.files import check_output
    from subspaces.app.files.models import SUFFIX, check_features, check_model_library

    check_output(path, force=force, source=source, suffixes=(SUFFIX,), what="model")
    check_model_library(path)
    if features is not None and ":" in features:  # the only ones that a model may not hold
        from subspaces.app.features import as_extractor

        check_features(path, as_extractor(features))


def save(path: Path | None, run: Run) -> list[str]:
    """Write the model; one line for people."""
    if path is None or run.data is None:
        return []
    from subspaces.app.files.models import Reading, save_model

    save_model(path, run.estimator, Reading.of(run.data))
    return [f"model written to {path}; subspaces predict {path} NEW labels new points"]
