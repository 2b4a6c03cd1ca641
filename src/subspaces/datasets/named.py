"""Data sets by name: what :func:`subspaces.compare` and ``python -m reproduction`` know them by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn.datasets

from subspaces.datasets import loaders, synthetic
from subspaces.datasets._load import Folder
from subspaces.utils.distances import unknown_name
from subspaces.utils.types import Array, Labels

Points = tuple[Array, Labels]


class Named(NamedTuple):
    """A data set.

    Attributes
    ----------
    title : for people
    load : from the folder of data sets, or None for the usual one, to points and classes
    needs_files : whether it is read from a folder or fetched; the others come with the package and its libraries
    """

    title: str
    load: Callable[[Path | None], Points]
    needs_files: bool = True


def _benchmark(name: str, home: Path | None) -> Points:
    return synthetic.make_benchmark(name, random_state=0)


NAMED: dict[str, Named] = {
    "yaleb": Named("Extended Yale B", lambda home: loaders.load_yaleb(data_home=home, return_X_y=True)),
    "coil20": Named("COIL20", lambda home: loaders.load_coil20(data_home=home, return_X_y=True)),
    "coil100": Named("COIL100", lambda home: loaders.load_coil100(data_home=home, return_X_y=True)),
    "orl": Named("ORL", lambda home: loaders.load_orl(data_home=home, return_X_y=True)),
    "usps": Named("USPS", lambda home: loaders.load_usps(data_home=home, return_X_y=True)),
    # the paper draws from the first 10,000 training images
    "mnist": Named("MNIST", lambda home: loaders.load_mnist(data_home=home, return_X_y=True, n_images=10_000)),
    "covtype": Named("Covtype", lambda home: loaders.load_covtype(data_home=home, return_X_y=True, dtype=np.float32)),
    "digits": Named("digits of scikit-learn", lambda home: sklearn.datasets.load_digits(return_X_y=True), False),
    "curves": Named("three curves", lambda home: synthetic.make_three_curves(100, noise=0.01, random_state=0), False),
    **{name: Named(f"made-up {name}", partial(_benchmark, name), False) for name in synthetic.BENCHMARKS},
}
"""Every data set that has a name; ``mnist`` is its first 10,000 images."""


def load_named(name: str, data_home: Folder = None) -> Points:
    """Points and classes of a data set by its name.

    From files, which are fetched where they can be: yaleb, coil20, coil100, orl, usps, mnist (the first 10,000 images)
    and covtype. From nothing: digits, curves, uos2000, uos10000, hard2000 and hard10000.

    Parameters
    ----------
    name : str
    data_home : path-like, default=None
        Folder with the data sets; see :func:`get_data_home` for the default.

    Returns
    -------
    X, y : points and classes

    Examples
    --------
    >>> X, y = load_named("digits")
    >>> X.shape
    (1797, 64)
    """
    if name not in NAMED:
        raise ValueError(unknown_name("name", name, tuple(NAMED)))
    return NAMED[name].load(None if data_home is None else Path(data_home))
