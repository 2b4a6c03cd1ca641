"""Find where arrays live: in NumPy, or in another library of the array API and on its device (PyTorch on a GPU).

Scikit-learn's switch decides: without ``sklearn.set_config(array_api_dispatch=True)`` everything is NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.externals import array_api_compat
from sklearn.utils._array_api import _convert_to_numpy, get_namespace_and_device

from subspaces.utils.types import Array


class Place(NamedTuple):
    """Name a library of the array API, and one of its devices."""

    xp: Any
    device: Any

    def send(self, values: Array) -> Any:
        """Copy a NumPy array there."""
        return self.xp.asarray(np.ascontiguousarray(values), device=self.device)

    def fetch(self, values: Any) -> Array:
        """Copy an array from there to NumPy."""
        return np.asarray(_convert_to_numpy(values, self.xp))


_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def place_of(X: Any) -> Place | None:
    """Return where X lives, if computations are to follow it; None means NumPy."""
    if not get_config()["array_api_dispatch"] or isinstance(X, np.ndarray):
        return None
    if not array_api_compat.is_array_api_obj(X) or array_api_compat.is_lazy_array(X):
        return None
    if array_api_compat.is_pydata_sparse_array(X):
        return None
    xp, _, device = get_namespace_and_device(X)
    return None if array_api_compat.is_numpy_namespace(xp) else Place(xp, device)


@contextmanager
def computing_at(place: Place | None) -> Iterator[None]:
    """Let plans made within compute there what can be computed there."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


def current_place() -> Place | None:
    """Return the place set by :func:`computing_at`."""
    return _PLACE.get()


def like(X: Any, values: Array) -> Any:
    """Return a result in the library and on the device of the samples it belongs to."""
    place = place_of(X)
    return values if place is None else place.send(values)
