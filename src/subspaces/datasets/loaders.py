"""The data sets of the paper and of its deep competitors, one function each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from subspaces.datasets import _catalogue
from subspaces.datasets._load import DataSet, Folder, Loaded, Seed, load

F = TypeVar("F", bound=Callable[..., object])

_PARAMETERS = """data_home : path-like, default=None
        Folder with the data sets; see :func:`get_data_home` for the default.
    return_X_y : bool, default=False
        Whether to return only the points and their classes.
    first : int, default=None
        Only the points of the first so many classes.
    per_class : int, default=None
        Only so many points of each class, chosen at random; see :func:`balanced_subset`.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of `per_class`.
    dtype : data type, default=numpy.float64
        Floating type of the points.
    download_if_missing : bool, default=True
        Whether to fetch the data set over the network, and keep it in `data_home`, if it is not there."""

_RETURNS = """Bunch, or (data, target) with `return_X_y`
        ``data`` (n_samples, n_features), ``target`` (codes 0, 1, ... in the order of the source's own labels),
        ``target_names`` (those labels), ``image_shape`` (``data[i].reshape(image_shape)`` is upright; None for
        data that are not images), ``DESCR``, ``filename`` (the file it was read from).

    Raises
    ------
    FileNotFoundError
        If the data set is neither in the folder nor to be had; the text says what to put where.
    FileError
        If its file is damaged or holds something else."""

_DOC = """{text}

    Parameters
    ----------
    {parameters}

    Returns
    -------
    {returns}
    """


def _documented(function: F) -> F:
    """Fill in what all loaders have in common."""
    if function.__doc__ is not None:  # python -OO
        function.__doc__ = function.__doc__.format(parameters=_PARAMETERS, returns=_RETURNS)
    return function


class Loader(Protocol):
    """A loader with the parameters that all have."""

    def __call__(
        self,
        *,
        data_home: Folder = None,
        return_X_y: bool = False,
        first: int | None = None,
        per_class: int | None = None,
        random_state: Seed = None,
        dtype: npt.DTypeLike = np.float64,
        download_if_missing: bool = True,
    ) -> Loaded:
        """The data set."""


def _loader(name: str, dataset: DataSet, text: str) -> Loader:
    """The loader of a data set that has no parameters of its own; `text` says what it is and where it is read from."""

    def loader(
        *,
        data_home: Folder = None,
        return_X_y: bool = False,
        first: int | None = None,
        per_class: int | None = None,
        random_state: Seed = None,
        dtype: npt.DTypeLike = np.float64,
        download_if_missing: bool = True,
    ) -> Loaded:
        return load(dataset, data_home, return_X_y, first, per_class, random_state, dtype, download_if_missing)

    loader.__name__ = loader.__qualname__ = name
    loader.__doc__ = _DOC.format(text=text, parameters=_PARAMETERS, returns=_RETURNS)
    return loader


@_documented
def load_yaleb(
    *,
    image_shape: tuple[int, int] = (32, 32),
    data_home: Folder = None,
    return_X_y: bool = False,
    first: int | None = None,
    per_class: int | None = None,
    random_state: Seed = None,
    dtype: npt.DTypeLike = np.float64,
    download_if_missing: bool = True,
) -> Loaded:
    """Load the Extended Yale B faces: 2414 images of 38 persons under changing light.

    Read from ``yaleb_32x32.npz`` or ``YaleB_32x32.mat``, or for 48 × 42 pixels ``yaleb_48x42.npz`` or
    ``YaleBCrop025.mat``. No stable public source exists.

    Parameters
    ----------
    image_shape : (32, 32) or (48, 42), default=(32, 32)
        Size of the images: that of the paper, or that of SSC and the deep methods.
    {parameters}

    Returns
    -------
    {returns}
    """
    versions = {(32, 32): _catalogue.YALEB_32, (48, 42): _catalogue.YALEB_48}
    dataset = versions.get(image_shape)
    if dataset is None:
        raise ValueError(f"image_shape must be (32, 32) or (48, 42); got {image_shape!r}")
    return load(dataset, data_home, return_X_y, first, per_class, random_state, dtype, download_if_missing)


@_documented
def load_mnist(
    *,
    n_images: int | None = None,
    data_home: Folder = None,
    return_X_y: bool = False,
    first: int | None = None,
    per_class: int | None = None,
    random_state: Seed = None,
    dtype: npt.DTypeLike = np.float64,
    download_if_missing: bool = True,
) -> Loaded:
    """Load the training set of MNIST: 60000 handwritten digits, 28 × 28 pixels, grey levels 0 to 255.

    The paper takes 200 of each digit from the first 10000: ``load_mnist(n_images=10000, per_class=200)``.

    Read from ``mnist_train.npz`` or the original idx files, packed or not; fetched as those files.

    Parameters
    ----------
    n_images : int, default=None
        Only the first so many images, before `first` and `per_class` choose among them.
    {parameters}

    Returns
    -------
    {returns}
    """
    dataset = _catalogue.MNIST
    return load(dataset, data_home, return_X_y, first, per_class, random_state, dtype, download_if_missing, n_images)


load_coil20 = _loader(
    "load_coil20",
    _catalogue.COIL20,
    """Load COIL-20: 1440 images of 20 objects on a turntable, 32 × 32 pixels in [0, 1].

    Read from ``coil20_32x32.npz``, ``COIL20.mat``, or the original ``coil-20-proc.zip`` or its folder (PNG images,
    read with Pillow), which are reduced by means of 4 × 4 blocks; fetched from Columbia University.""",
)

load_coil100 = _loader(
    "load_coil100",
    _catalogue.COIL100,
    """Load COIL-100: 7200 images of 100 objects on a turntable, 32 × 32 pixels, grey levels 0 to 255.

    Read from ``coil100_32x32.npz``, ``COIL100.mat``, or the original ``coil-100.zip`` or its folder (PNG images, read
    with Pillow), which are made grey and reduced by means of 4 × 4 blocks; fetched from Columbia University
    (131 MB).""",
)

load_usps = _loader(
    "load_usps",
    _catalogue.USPS,
    """Load USPS: 9298 handwritten digits, 16 × 16 pixels in [0, 1]. The paper takes 200 of each at random.

    Read from ``usps_9298.npz``, ``USPS.mat``, or ``zip.train.gz`` and ``zip.test.gz``; fetched from OpenML.""",
)

load_covtype = _loader(
    "load_covtype",
    _catalogue.COVTYPE,
    """Load Covtype: 581012 cells of forest, 54 unscaled attributes, 7 kinds of trees.

    Read from ``covtype.npz`` or UCI's ``covtype.data.gz``; fetched by scikit-learn.""",
)

load_orl = _loader(
    "load_orl",
    _catalogue.ORL,
    """Load the ORL faces: 400 images of 40 persons, 32 × 32 pixels, grey levels 0 to 255.

    Read from ``orl_32x32.npz`` or ``ORL_32x32.mat``. Where neither is, scikit-learn's Olivetti faces are fetched: the
    same photographs, cut differently and reduced from 64 × 64 pixels by means of 2 × 2 blocks.""",
)
