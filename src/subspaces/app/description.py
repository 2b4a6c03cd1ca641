"""Description of a fit as one document ready for JSON, shared by command line, label files and reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def describe(
    estimator: Any,
    *,
    source: str,
    shape: tuple[int, ...],
    method: str | None = None,
    seconds: float | None = None,
    notes: Iterable[str] = (),
    y: Any = None,
    summary: Any = None,
    names: Sequence[Any] | None = None,
    skipped: Iterable[tuple[str, str]] = (),
    texts: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return a description of a run, without the labels and scores of single samples.

    Parameters
    ----------
    estimator : fitted clusterer
    source : where the samples came from
    shape : numbers of samples and features
    method : name of the method; left out, the estimator's class
    seconds : time of the fit; left out, the sum of the estimator's own timings
    notes : remarks on the data
    y : known classes of the samples, to score the labels with
    summary : result of `subspaces.engine.confidence.summarize`, for an entry per cluster
    names : of the samples, for the typical ones of each cluster; left out, their rows
    skipped : files that were left out, with the reason
    texts : of the samples, for the words that make each cluster

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import TRR
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> document = describe(TRR(2).fit(X), source="noise", shape=X.shape)
    >>> document["method"], document["n_samples"], document["n_clusters"]
    ('TRR', 40, 2)
    """
    from subspaces import __version__

    timings = plain(getattr(estimator, "timings_", {}))
    said = getattr(estimator, "verdict_", None)
    document = {
        **({} if said is None else {"verdict": said}),
        "version": __version__,
        "source": source,
        "n_samples": int(shape[0]),
        "n_features": int(shape[1]),
        "method": type(estimator).__name__ if method is None else method,
        "parameters": plain(estimator.get_params()),
        "n_clusters": int(estimator.n_clusters_ if hasattr(estimator, "n_clusters_") else len(set(estimator.labels_))),
        "n_components": plain(getattr(estimator, "n_components_", None)),
        "seconds": float(sum(timings.values())) if seconds is None else seconds,
        "timings": timings,
        "notes": list(notes),
    }
    if hasattr(estimator, "estimator_"):  # the front door says which method it took
        document["winner"] = type(estimator.estimator_).__name__
    selection, hinted = getattr(estimator, "selection_", None), bool(getattr(estimator, "_said", ()))
    if selection is not None and hinted:
        document["chosen"] = plain(estimator.estimator_.get_params())
        document["reason"] = "Setting and number of groups are those that follow what you know best."
    elif selection is not None:
        document["chosen"], document["reason"] = plain(selection.parameters), selection.reason
        if selection.runner_up is not None and selection.runner_up.is_as_good:
            document["runner_up"] = str(selection.runner_up)
        if selection.n_clusters is not None:
            count = selection.n_clusters
            document["n_clusters_range"], document["evidence"] = [count.low, count.high], count.evidence
            document["p_value_of_one_cluster"] = plain(count.p_value)
    if y is not None:
        from subspaces.metrics import clustering_scores

        document["scores"] = plain(clustering_scores(y, estimator.labels_))
    if left_out := [{"file": name, "reason": reason} for name, reason in skipped]:
        document["skipped"] = left_out
    if summary is not None:
        document["clusters"] = summary.as_rows()
        for row in document["clusters"]:
            row["exemplars"] = [plain(i if names is None else names[i]) for i in row["exemplars"]]
        if texts is not None:
            from subspaces.app.features.documents import cluster_words

            for row, words in zip(document["clusters"], cluster_words(texts, estimator.labels_), strict=True):
                row["words"] = words
    return document


def with_evidence(verdict: str, estimator: Any) -> str:
    """Return a verdict on a number of groups that was asked for, with a remark where chance makes their first split.

    The test is that of the tree (graphs of at most 400 samples), a tenth to a half of the time of a fit.
    """
    from subspaces.spectral.hierarchy import LEVEL

    if not getattr(estimator, "_is_quick", False) or estimator.n_clusters_ < 2 or getattr(estimator, "_said", ()):
        return verdict
    try:
        tree = estimator.tree_
    except (ValueError, MemoryError):  # the verdict is worth more than the remark
        return verdict
    is_chance = len(tree.p_value) > 0 and bool(tree.p_value[tree.split(1)] > LEVEL)
    return verdict.removesuffix(".") + "; nothing in the data says that there are groups." if is_chance else verdict


def plain(value: Any) -> Any:
    """Return a parameter or result as JSON can hold it.

    Examples
    --------
    >>> plain({1: (float("inf"), "a", int)})
    {'1': [None, 'a', "<class 'int'>"]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
