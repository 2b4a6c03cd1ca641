"""Who is told of the stages of a run, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from subspaces.utils.progress import phase

Listener = Callable[[str], AbstractContextManager[None]]
"""Called with the name of a stage; gives a context in which it runs."""

PLAIN = {
    "kernel": "Comparing the points",
    "coefficients": "Representing each point by others",
    "graph": "Making the graph",
    "embedding": "Embedding the graph",
    "cut": "Cutting the graph",
    "landmarks": "Choosing landmarks",
    "codes": "Placing the points among landmarks",
    "assign_labels": "Grouping the points",
    "eigenvectors": "Comparing the landmarks",
    "sample": "Taking a sample",
    "cluster": "Clustering the sample",
    "train": "Training on the sample",
    "classify": "Labelling the other points",
    "extension": "Labelling the other points",
    "start": "Making a start",
    "passes": "Moving points between clusters",
}
"""What a stage does, for people."""


def unwatched(stage: str) -> AbstractContextManager[None]:
    """Tell nobody of a stage."""
    return nullcontext()


class Timer:
    """Tells a listener of each stage and adds up its seconds."""

    def __init__(self, listen: Listener | None = None) -> None:
        self.listen = listen or unwatched
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage; it may come in several parts."""
        start = time.perf_counter()
        with self.listen(name), phase(PLAIN.get(name, name.capitalize())):
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
