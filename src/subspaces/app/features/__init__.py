"""Vectors of pictures and texts, made before anything else.

A *spec* says how: ``"pixels"``, ``"efficientnet"``, ``"tfidf"``, ``"sentences"``, a path to a
``.npy`` of vectors, or a function. :func:`as_extractor` makes an object of it, :func:`vectors_of` applies it, and
vectors that take a network are kept in the user's cache folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from os import PathLike, fspath
from typing import Any

from subspaces.app.features.extractor import Extractor, FromFile, Function, Shape
from subspaces.app.files.dataset import Dataset
from subspaces.utils.types import Array

__all__ = ["EXTRACTORS", "Extractor", "Features", "as_extractor", "featured", "fit_extractor", "vectors_of"]

Features = str | PathLike[str] | Callable[[Any], Any] | Extractor
"""Values of ``features=``."""

EXTRACTORS: dict[str, tuple[str, str]] = {
    "pixels": ("pixels", "Pixels"),
    "efficientnet": ("networks", "EfficientNet"),
    "tfidf": ("documents", "Tfidf"),
    "sentences": ("documents", "Sentences"),
}
"""Module and class of each spec."""


def as_extractor(features: Features) -> Extractor:
    """Return the extractor that a spec means.

    Examples
    --------
    >>> as_extractor("tfidf").title
    'tfidf'
    """
    if isinstance(features, Extractor):
        return features
    if not isinstance(features, str | PathLike):
        if callable(features):
            return Function(features)
        raise TypeError(f"features must be a text, a path, a function or an extractor; got {features!r}.")
    spec = fspath(features)
    if spec.lower().endswith(".npy"):
        return FromFile(spec)
    if spec not in EXTRACTORS:
        known = ", ".join(EXTRACTORS)
        raise ValueError(f"features must be one of {known}, a .npy file of vectors or a function; got {spec!r}.")
    module, name = EXTRACTORS[spec]
    made: Extractor = getattr(import_module(f"{__name__}.{module}"), name)()
    return made


def fit_extractor(features: Features, X: Any, image_shape: Shape = None) -> tuple[Extractor, Array]:
    """Return the extractor with everything settled that X decides, and the vectors of X, shape (n, m)."""
    extractor = as_extractor(features)
    items = extractor.items(X, image_shape)
    extractor = extractor.fit(items)
    return extractor, extractor(items)


def vectors_of(X: Any, features: Features, image_shape: Shape = None) -> Array:
    """Return vectors of pictures (or of whatever the extractor takes), shape (n, m).

    Parameters
    ----------
    X : list of paths, array (n, height, width) or (n, height, width, 3), or rows of pixels with `image_shape`
    features : see :mod:`subspaces.app.features`
    image_shape : height and width (and 3) of rows of pixels
    """
    return fit_extractor(features, X, image_shape)[1]


def featured(data: Dataset, features: Features, is_fitted: bool = False) -> Dataset:
    """Return a dataset of images or texts with vectors as its samples; pixels and texts stay beside them, to be shown.

    Pictures of a folder are read again, in colour and at the size that the extractor wants. An extractor that
    `is_fitted` treats these items as those it was fitted to.
    """
    extractor, shape, pixels = as_extractor(features), None, None
    X: Any = data.texts
    if X is None:
        if data.image_shape is None:
            raise ValueError(f"features are made of images, and {data.source} holds none.")
        X, shape, pixels = data.X, data.image_shape, data.X
        if data.is_image_folder:
            X, shape = [data.source / str(name) for name in data.ids or ()], None
    items = extractor.items(X, shape)
    extractor = extractor if is_fitted else extractor.fit(items)
    return replace(data, X=extractor(items), pixels=pixels, features=extractor)
