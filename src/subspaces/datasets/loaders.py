"""The data sets of the paper and of its deep competitors: found in a folder or fetched from stable public sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import sklearn.datasets
from sklearn.utils import Bunch, check_random_state

from subspaces.datasets import _formats, synthetic
from subspaces.datasets._formats import Points
from subspaces.datasets.synthetic import Seed, positive
from subspaces.utils.atomic import remove_leftovers, unfinished, write_atomically
from subspaces.utils.distances import unknown_name
from subspaces.utils.files import FileError, user_cache
from subspaces.utils.types import Array, Labels

Folder = str | PathLike[str] | None
F = TypeVar("F", bound=Callable[..., object])
Loaded = Any
"""A Bunch (scikit-learn has no types), or the samples and their labels."""

FETCH_ERRORS = (OSError, ValueError, HTTPException)  # a source is down, changed or damaged
VARIABLE = "SUBSPACES_DATA"  # of the environment: the folder of the data sets

CAI = "Deng Cai's collection, http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html and MLData.html there"

MNIST_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
}
COIL_MIRRORS = (
    "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/",
    "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/",
)
COIL100_SHA256 = "fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7"
OPENML_USPS = 41082


@dataclass(frozen=True)
class DataSet:
    """Describe a data set: the files it may be in, how to fetch it, and its documentation.

    `files` gives name (in any case) and reader of each file it may be in, most preferred first; the first is our own
    format. `where` says where a person finds one of them. `fetch` downloads into a folder and returns the samples; None
    where no public source exists.
    """

    title: str
    files: Mapping[str, Callable[[Path], Points]]
    n_features: int
    description: str
    where: str
    image_shape: tuple[int, int] | None = None
    fetch: Callable[[Path], Points] | None = None


def get_data_home(data_home: Folder = None) -> Path:
    """Return the folder in which the loaders look for data sets and keep what they fetch.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder, which need not exist. By default the one that the environment variable ``SUBSPACES_DATA`` names,
        else ``subspaces`` in the user's cache: ``~/.cache`` (or ``XDG_CACHE_HOME``), ``~/Library/Caches`` on macOS,
        ``%LOCALAPPDATA%`` on Windows.

    Examples
    --------
    >>> from subspaces.datasets import get_data_home
    >>> get_data_home("faces").name
    'faces'
    """
    named = data_home or os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else user_cache()


def _load(
    dataset: DataSet,
    *,
    data_home: Folder = None,
    return_X_y: bool = False,
    first: int | None = None,
    per_class: int | None = None,
    random_state: Seed = None,
    dtype: npt.DTypeLike = np.float64,
    download_if_missing: bool = True,
    n_images: int | None = None,
) -> Loaded:
    """Load any data set; rows are chosen before values are converted, so a subset costs no memory of the whole."""
    if np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be a floating type such as numpy.float32; got {np.dtype(dtype)}")
    points, source = find(dataset, get_data_home(data_home), download_if_missing)
    if points.X.shape[1] != dataset.n_features:
        problem = f"has {points.X.shape[1]} features; {dataset.title} has {dataset.n_features}"
        raise FileError(source, f"{problem}. Put the right file in its place")
    rows = _chosen_rows(points, first, per_class, random_state, n_images)
    X = points.X[rows]
    X = (X if points.scale is None else X * points.scale).astype(dtype, copy=False)
    y = points.y[rows]
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        target_names=points.classes[:first],
        image_shape=dataset.image_shape,
        DESCR=dataset.description,
        filename=str(source),
    )


def _chosen_rows(
    points: Points, first: int | None, per_class: int | None, random_state: Seed, n_images: int | None
) -> Array:
    """Return the rows of the first samples, of the first classes among them, of a balanced subset of those."""
    rows: Array = np.arange(len(points.y))[: None if n_images is None else positive("n_images", n_images)]
    if first is not None:
        if positive("first", first) > len(points.classes):
            raise ValueError(f"first must be at most the number of classes, {len(points.classes)}; got {first}")
        rows = rows[points.y[rows] < first]
    if per_class is not None:
        rows = rows[balanced_subset(points.y[rows], per_class, random_state=random_state)]
    return rows


def balanced_subset(y: npt.ArrayLike, per_class: int, *, random_state: Seed = None) -> Labels:
    """Choose the same number of samples of every class at random.

    The paper's USPS and MNIST experiments draw 200 a class.

    Parameters
    ----------
    y : labels
    per_class : samples of each class; no class may have fewer
    random_state : seed of the choice

    Returns
    -------
    array of shape (n_classes * per_class,), indices of the chosen samples, ascending

    Examples
    --------
    >>> from subspaces.datasets import balanced_subset
    >>> chosen = balanced_subset([0, 0, 0, 1, 1, 1, 1], 2, random_state=0)
    >>> [int((chosen < 3).sum()), int((chosen >= 3).sum())]
    [2, 2]
    """
    labels = np.asarray(y)
    positive("per_class", per_class)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) and counts.min() < per_class:
        smallest = int(np.argmin(counts))
        problem = f"class {classes[smallest]} has only {counts[smallest]} samples"
        raise ValueError(f"per_class must be at most the size of the smallest class; got {per_class} and {problem}")
    # In random order, then stably by class: the first of each class are a random choice of it.
    shuffled = check_random_state(random_state).permutation(len(labels))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.cumsum(counts) - counts
    return np.sort(by_class[(starts[:, None] + np.arange(per_class)).ravel()]).astype(np.intp, copy=False)


# ------------------------------------------------------------------ find and fetch


def find(dataset: DataSet, home: Path, download_if_missing: bool) -> tuple[Points, Path]:
    """Return the samples and the file they came from."""
    present = {path.name.lower(): path for path in sorted(home.iterdir())} if home.is_dir() else {}
    for name, read in dataset.files.items():
        if name.lower() in present:
            path = present[name.lower()]
            return read(path), path
    if dataset.fetch is None:
        raise FileNotFoundError(_missing(dataset, home, "no public source offers it for download"))
    if not download_if_missing:
        raise FileNotFoundError(_missing(dataset, home, "download_if_missing is False"))
    try:
        return fetch_to(dataset, dataset.fetch, home)
    except FETCH_ERRORS as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileNotFoundError(_missing(dataset, home, f"fetching it failed: {reason}")) from error


def _missing(dataset: DataSet, home: Path, reason: str) -> str:
    return (
        f"{dataset.title} is not in {home}, and {reason}. Put {' or '.join(dataset.files)} there "
        f"({dataset.where}; a .npz holds X, y and perhaps scale, a factor of X), or name the folder that holds it by "
        f"data_home or the environment variable {VARIABLE}."
    )


def fetch_to(dataset: DataSet, fetch: Callable[[Path], Points], home: Path) -> tuple[Points, Path]:
    """Fetch into a temporary folder and keep one ``.npz``: a broken download leaves nothing behind."""
    home.mkdir(parents=True, exist_ok=True)
    remove_leftovers(home)
    with unfinished(home / "fetch") as folder:
        folder.mkdir()
        points = fetch(folder)
    arrays: dict[str, Any] = {"X": points.X, "y": np.array(points.classes, dtype=np.int16)[points.y]}
    arrays |= {} if points.scale is None else {"scale": points.scale}
    path = home / next(iter(dataset.files))
    with write_atomically(path) as stream:
        np.savez_compressed(stream, **arrays)
    return points, path


def _download(mirrors: tuple[str, ...], name: str, folder: Path, sha256: str | None = None) -> Path:
    """Download one file from the first mirror that has it whole."""
    *others, last = (mirror + name for mirror in mirrors)
    fetch = partial(sklearn.datasets.fetch_file, folder=folder, sha256=sha256, n_retries=1)
    for address in others:
        with suppress(*FETCH_ERRORS):
            return Path(fetch(address))
    return Path(fetch(last))


def _fetch_mnist(folder: Path) -> Points:
    images, _ = (_download(MNIST_MIRRORS, name, folder, sha256) for name, sha256 in MNIST_SHA256.items())
    return _formats.read_mnist(images)


def _fetch_coil(name: str, read: Callable[[Path], Points], n_objects: int, sha256: str | None, folder: Path) -> Points:
    _formats.require_pillow()
    points = read(_download(COIL_MIRRORS, name, folder, sha256))
    counts = np.bincount(points.y)  # of COIL-20 no checksum is published
    if len(counts) != n_objects or not (counts == 72).all():
        raise ValueError(
            f"the archive holds {counts.sum()} images of {len(counts)} objects, not 72 of each of {n_objects}"
        )
    return points


def _fetch_usps(folder: Path) -> Points:
    # liac-arff is scikit-learn's own parser; the other one needs pandas
    usps = sklearn.datasets.fetch_openml(
        data_id=OPENML_USPS, data_home=str(folder), as_frame=False, parser="liac-arff", n_retries=1
    )
    digits = np.asarray(usps.target).astype(int) - 1  # OpenML's class k + 1 is the digit k
    return _formats.points_of(_formats.unit_interval(np.asarray(usps.data, dtype=np.float64)), digits)


def _fetch_covtype(folder: Path) -> Points:
    covtype = sklearn.datasets.fetch_covtype(data_home=str(folder), shuffle=False, n_retries=1)
    return _formats.points_of(covtype.data.astype(np.int16), covtype.target)  # its values are small integers


# ------------------------------------------------------------------ the data sets

_YALEB = """\
Frontal faces of 38 persons under 64 directions of light (59 to 64 usable images a person), grey levels 0 to 255. A
person's images without noise and shadow lie near a subspace of dimension 9. No stable public source exists.

K. Lee, J. Ho, D. Kriegman, Acquiring linear subspaces for face recognition under variable lighting, IEEE TPAMI 27
(2005). For research use. 2414 images, cut and sized {}.
"""

YALEB_32 = DataSet(
    title="Extended Yale B (32 x 32)",
    files={"yaleb_32x32.npz": _formats.read_arrays, "YaleB_32x32.mat": _formats.read_matlab_images},
    n_features=1024,
    image_shape=(32, 32),
    description=_YALEB.format("32 × 32 by D. Cai, the version of the paper"),
    where=f"the .mat with fea and gnd is in {CAI}",
)

YALEB_48 = DataSet(
    title="Extended Yale B (48 x 42)",
    files={"yaleb_48x42.npz": _formats.read_arrays, "YaleBCrop025.mat": _formats.read_yaleb_crop},
    n_features=2016,
    image_shape=(48, 42),
    description=_YALEB.format("48 × 42, the version of SSC and of the deep methods"),
    where="the .mat with Y comes with the programs of SSC and DSC-Net",
)

COIL20 = DataSet(
    title="COIL-20",
    files={
        "coil20_32x32.npz": _formats.read_arrays,
        "COIL20.mat": _formats.read_matlab_images,
        "coil-20-proc.zip": _formats.read_coil20,
    },
    n_features=1024,
    image_shape=(32, 32),
    description="""\
20 objects on a turntable, 72 views each, 5 degrees apart; 1440 images, ordered by object and then view. The processed
images of 128 × 128 pixels (read with Pillow), reduced to 32 × 32 by means of 4 × 4 blocks, grey levels in [0, 1].

S. A. Nene, S. K. Nayar, H. Murase, Columbia Object Image Library (COIL-20), report CUCS-005-96 (1996).
For research use.
""",
    where=f"the .zip of its PNG images from {COIL_MIRRORS[0]}coil-20/coil-20-proc.zip; the .mat "
    f"with fea and gnd from {CAI}",
    fetch=partial(_fetch_coil, "coil-20/coil-20-proc.zip", _formats.read_coil20, 20, None),
)

COIL100 = DataSet(
    title="COIL-100",
    files={
        "coil100_32x32.npz": _formats.read_arrays,
        "COIL100.mat": _formats.read_matlab_images,
        "coil-100.zip": _formats.read_coil100,
    },
    n_features=1024,
    image_shape=(32, 32),
    description="""\
100 objects on a turntable, 72 views each, 5 degrees apart; 7200 images, ordered by object and then angle. The colour
images of 128 × 128 pixels (131 MB, read with Pillow) as grey levels 0 to 255 (0.299 R + 0.587 G + 0.114 B), reduced to
32 × 32 by means of 4 × 4 blocks.

S. A. Nene, S. K. Nayar, H. Murase, Columbia Object Image Library (COIL-100), report CUCS-006-96 (1996).
For research use.
""",
    where=f"the .zip of its PNG images from {COIL_MIRRORS[0]}coil-100/coil-100.zip; the .mat with "
    f"fea and gnd from {CAI}",
    fetch=partial(_fetch_coil, "coil-100/coil-100.zip", _formats.read_coil100, 100, COIL100_SHA256),
)

USPS = DataSet(
    title="USPS",
    files={"usps_9298.npz": _formats.read_usps, "USPS.mat": _formats.read_usps},
    n_features=256,
    image_shape=(16, 16),
    description="""\
9298 handwritten digits from envelopes, 16 × 16 pixels with values in [0, 1] (0 is paper), the 7291 training images
first; class k is the digit k. The paper takes 200 of each at random.

J. J. Hull, A database for handwritten text recognition research, IEEE TPAMI 16 (1994).
""",
    where=f"the .mat with fea and gnd from {CAI}; OpenML has it as number {OPENML_USPS}",
    fetch=_fetch_usps,
)

MNIST = DataSet(
    title="MNIST (training set)",
    files={
        "mnist_train.npz": _formats.read_arrays,
        "train-images-idx3-ubyte.gz": _formats.read_mnist,
        "train-images-idx3-ubyte": _formats.read_mnist,
    },
    n_features=784,
    image_shape=(28, 28),
    description="""\
The 60000 handwritten digits of the training set in their original order, 28 × 28 pixels, grey levels 0 to 255 (0 is
paper); class k is the digit k. The paper takes 200 of each digit from the first 10000:
``load_mnist(n_images=10000, per_class=200)``.

Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proc. IEEE 86
(1998).
""",
    where=f"images and labels, train-labels-idx1-ubyte.gz beside them, from {MNIST_MIRRORS[0]}",
    fetch=_fetch_mnist,
)

COVTYPE = DataSet(
    title="Covtype",
    files={"covtype.npz": _formats.read_arrays},
    n_features=54,
    description="""\
581012 cells of forest of 30 × 30 m, 54 attributes of the terrain, 7 kinds of trees, in UCI's order and unscaled (the
paper scales each attribute to [0, 1]). The classes are very unequal: 2747 to 283301 cells.

J. A. Blackard, D. J. Dean, Comparative accuracies of artificial neural networks and discriminant analysis in predicting
forest cover types from cartographic variables, Computers and Electronics in Agriculture 24 (1999).
""",
    where="scikit-learn fetches it from UCI",
    fetch=_fetch_covtype,
)

ORL = DataSet(
    title="ORL",
    files={"orl_32x32.npz": _formats.read_arrays, "ORL_32x32.mat": _formats.read_matlab_images},
    n_features=1024,
    image_shape=(32, 32),
    description="""\
Faces (also called AT&T or Olivetti) of 40 persons, 10 photographs each, 32 × 32 pixels, grey levels 0 to 255. The files
were cut and sized by D. Cai; scikit-learn's Olivetti faces are the same photographs, cut differently.

F. S. Samaria, A. C. Harter, Parameterisation of a stochastic model for human face identification, WACV (1994).
""",
    where=f"the .mat with fea and gnd is in {CAI}",
)


# ------------------------------------------------------------------ public loaders

_DOC = """Load {title}.

{description}
Read from {files}.

Parameters
----------
{own}data_home : folder with the data sets; see :func:`get_data_home` for the default
return_X_y : return only the samples and their classes
first : keep only the samples of the first so many classes
per_class : keep only so many samples of each class, chosen at random; see :func:`balanced_subset`
random_state : seed of the choice of `per_class`
dtype : floating type of the samples
download_if_missing : fetch the data set over the network, and keep it in `data_home`, if it is not there

Returns
-------
Bunch, or (data, target) with `return_X_y`
    ``data`` (n_samples, n_features), ``target`` (codes 0, 1, ... in the order of the source's own labels),
    ``target_names`` (those labels), ``image_shape`` (``data[i].reshape(image_shape)`` is upright; None for
    data that are not images), ``DESCR``, ``filename`` (the file it was read from).

Raises
------
FileNotFoundError
    If the data set is neither in the folder nor can be fetched; the text says what to put where.
FileError
    If its file is damaged or holds something else.
"""


def _documented(load: F, dataset: DataSet, own: str = "") -> F:
    """Document a loader by what is known of its data set; `own` describes parameters that others have not."""
    files = ", ".join(f"``{name}``" for name in dataset.files)
    load.__doc__ = _DOC.format(title=dataset.title, description=dataset.description, files=files, own=own)
    return load


def _loader(dataset: DataSet, own: str = "") -> Callable[..., Loaded]:
    return _documented(lambda **options: _load(dataset, **options), dataset, own)


def load_yaleb(*, image_shape: tuple[int, int] = (32, 32), **options: Any) -> Loaded:
    """Load the Extended Yale B faces."""
    dataset = {(32, 32): YALEB_32, (48, 42): YALEB_48}.get(image_shape)
    if dataset is None:
        raise ValueError(f"image_shape must be (32, 32) or (48, 42); got {image_shape!r}")
    return _load(dataset, **options)


_OF_YALEB = (
    "image_shape : (32, 32) as in the paper, or (48, 42) as in SSC and the deep methods (``YaleBCrop025.mat``)\n"
)
_OF_MNIST = "n_images : keep only the first so many images, before `first` and `per_class` choose among them\n"
_documented(load_yaleb, YALEB_32, _OF_YALEB)
load_mnist, load_usps, load_orl = _loader(MNIST, _OF_MNIST), _loader(USPS), _loader(ORL)
load_coil20, load_coil100, load_covtype = _loader(COIL20), _loader(COIL100), _loader(COVTYPE)


# ------------------------------------------------------------------ by name


class Named(NamedTuple):
    """A data set with a short name; `needs_files` if it is read from a folder or fetched."""

    title: str
    load: Callable[[Path | None], tuple[Array, Labels]]
    needs_files: bool = True


def _made(make: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[Path | None], Any]:
    return lambda home: make(*arguments, **options)


def _read(loader: Callable[..., Loaded], **options: Any) -> Callable[[Path | None], Any]:
    return lambda home: loader(data_home=home, return_X_y=True, **options)


NAMED: dict[str, Named] = {
    "yaleb": Named("Extended Yale B", _read(load_yaleb)),
    "coil20": Named("COIL20", _read(load_coil20)),
    "coil100": Named("COIL100", _read(load_coil100)),
    "orl": Named("ORL", _read(load_orl)),
    "usps": Named("USPS", _read(load_usps)),
    "mnist": Named("MNIST", _read(load_mnist, n_images=10_000)),  # the images from which the paper draws
    "covtype": Named("Covtype", _read(load_covtype, dtype=np.float32)),
    "digits": Named("digits of scikit-learn", _made(sklearn.datasets.load_digits, return_X_y=True), False),
    "curves": Named("three curves", _made(synthetic.make_three_curves, 100, noise=0.01, random_state=0), False),
    **{
        name: Named(f"made-up {name}", _made(synthetic.make_subspaces, **union, random_state=0), False)
        for name, union in synthetic.BENCHMARKS.items()
    },
}
"""Every data set that has a name; ``mnist`` is its first 10,000 images."""


def load_named(name: str, data_home: Folder = None) -> tuple[Array, Labels]:
    """Load samples and classes of a data set by its name.

    From files, which are fetched where they can be: yaleb, coil20, coil100, orl, usps, mnist (the first 10,000 images)
    and covtype. Without files: digits, curves, uos2000, uos10000, hard2000 and hard10000.

    Examples
    --------
    >>> X, y = load_named("digits")
    >>> X.shape
    (1797, 64)
    """
    if name not in NAMED:
        raise ValueError(unknown_name("name", name, tuple(NAMED)))
    return NAMED[name].load(None if data_home is None else Path(data_home))
