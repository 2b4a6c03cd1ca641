"""The data sets: the files each may be in, how stable public sources offer them, and how to describe them.

Each ``fetch_`` function leaves its files in the folder it is given.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sklearn.datasets

from subspaces.datasets import _formats
from subspaces.datasets._formats import Points
from subspaces.datasets._load import FETCH_ERRORS, DataSet

CAI = "Deng Cai's collection, http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html and MLData.html there"
OURS = "a .npz holds X, y and, where X are multiples of it, scale"

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


def fetch_mnist(folder: Path) -> Points:
    """MNIST's training set, the original files."""
    images, _ = (_download(MNIST_MIRRORS, name, folder, sha256) for name, sha256 in MNIST_SHA256.items())
    return _formats.read_mnist(images)


def fetch_coil20(folder: Path) -> Points:
    """COIL-20 from its home; no checksum is published, so the images are counted instead."""
    _formats.require_pillow("COIL's PNG images")
    points = _formats.read_coil20(_download(COIL_MIRRORS, "coil-20/coil-20-proc.zip", folder))
    return _complete(points, n_objects=20)


def fetch_coil100(folder: Path) -> Points:
    """COIL-100 from its home (131 MB)."""
    _formats.require_pillow("COIL's PNG images")
    points = _formats.read_coil100(_download(COIL_MIRRORS, "coil-100/coil-100.zip", folder, COIL100_SHA256))
    return _complete(points, n_objects=100)


def fetch_usps(folder: Path) -> Points:
    """USPS from OpenML, where class k + 1 is the digit k."""
    # liac-arff is scikit-learn's own parser; the other one needs pandas
    usps = sklearn.datasets.fetch_openml(
        data_id=OPENML_USPS, data_home=str(folder), as_frame=False, parser="liac-arff", n_retries=1
    )
    X, labels = np.asarray(usps.data, dtype=np.float64), np.asarray(usps.target).astype(int) - 1
    return _formats.points_of(_formats.unit_interval(X), labels)


def fetch_covtype(folder: Path) -> Points:
    """Covtype as scikit-learn fetches it, in UCI's order; its values are small whole numbers."""
    covtype = sklearn.datasets.fetch_covtype(data_home=str(folder), shuffle=False, n_retries=1)
    return _formats.points_of(covtype.data.astype(np.int16), covtype.target)


def fetch_orl(folder: Path) -> Points:
    """The Olivetti faces of scikit-learn: the same 400 photographs as ORL, but cut and sized 64 × 64 by others."""
    faces = sklearn.datasets.fetch_olivetti_faces(data_home=str(folder), n_retries=1)
    return _formats.points_of(np.rint(_formats.block_means(faces.images * 255, 2)).astype(np.uint8), faces.target + 1)


def _download(mirrors: tuple[str, ...], name: str, folder: Path, sha256: str | None = None) -> Path:
    """One file from the first mirror that has it whole."""
    for mirror in mirrors[:-1]:
        try:
            return Path(sklearn.datasets.fetch_file(mirror + name, folder=folder, sha256=sha256, n_retries=1))
        except FETCH_ERRORS:
            continue
    return Path(sklearn.datasets.fetch_file(mirrors[-1] + name, folder=folder, sha256=sha256, n_retries=1))


def _complete(points: Points, n_objects: int) -> Points:
    counts = np.bincount(points.y)
    if len(counts) != n_objects or not (counts == 72).all():
        raise ValueError(
            f"the archive holds {counts.sum()} images of {len(counts)} objects, not 72 of each of {n_objects}"
        )
    return points


_YALEB = """\
Extended Yale B: frontal faces of 38 persons under 64 directions of light (59 to 64 usable images a person), grey
levels 0 to 255. A person's images without noise and shadow lie near a subspace of dimension 9.

K. Lee, J. Ho, D. Kriegman, Acquiring linear subspaces for face recognition under variable lighting, IEEE TPAMI 27
(2005). For research use.
"""

YALEB_32 = DataSet(
    title="Extended Yale B (32 x 32)",
    files={
        "yaleb_32x32.npz": _formats.read_arrays,
        "YaleB_32x32.mat": _formats.read_matlab_images,
    },
    n_features=1024,
    image_shape=(32, 32),
    description=_YALEB + "2414 images cut and sized 32 × 32 by D. Cai, the version of the paper.\n",
    where=f"the .mat with fea and gnd is in {CAI}; {OURS}",
)

YALEB_48 = DataSet(
    title="Extended Yale B (48 x 42)",
    files={"yaleb_48x42.npz": _formats.read_arrays, "YaleBCrop025.mat": _formats.read_yaleb_crop},
    n_features=2016,
    image_shape=(48, 42),
    description=_YALEB + "Sized 48 × 42, the version of SSC and of the deep methods.\n",
    where=f"the .mat with Y comes with the programs of SSC and DSC-Net; {OURS}",
)

COIL20 = DataSet(
    title="COIL-20",
    files={
        "coil20_32x32.npz": _formats.read_arrays,
        "COIL20.mat": _formats.read_matlab_images,
        "coil-20-proc.zip": _formats.read_coil20,
        "coil-20-proc": _formats.read_coil20,
    },
    n_features=1024,
    image_shape=(32, 32),
    description="""\
COIL-20: 20 objects on a turntable, 72 views each, 5 degrees apart; 1440 images, ordered by object and then view. The
processed images of 128 × 128 pixels, reduced to 32 × 32 by means of 4 × 4 blocks, grey levels in [0, 1].

S. A. Nene, S. K. Nayar, H. Murase, Columbia Object Image Library (COIL-20), report CUCS-005-96 (1996).
For research use.
""",
    where=f"the .zip or the folder of its PNG images from {COIL_MIRRORS[0]}coil-20/coil-20-proc.zip; the .mat "
    f"with fea and gnd from {CAI}; {OURS}",
    fetch=fetch_coil20,
)

COIL100 = DataSet(
    title="COIL-100",
    files={
        "coil100_32x32.npz": _formats.read_arrays,
        "COIL100.mat": _formats.read_matlab_images,
        "coil-100.zip": _formats.read_coil100,
        "coil-100": _formats.read_coil100,
    },
    n_features=1024,
    image_shape=(32, 32),
    description="""\
COIL-100: 100 objects on a turntable, 72 views each, 5 degrees apart; 7200 images, ordered by object and then angle. The
colour images of 128 × 128 pixels as grey levels 0 to 255 (0.299 R + 0.587 G + 0.114 B), reduced to 32 × 32 by means of
4 × 4 blocks.

S. A. Nene, S. K. Nayar, H. Murase, Columbia Object Image Library (COIL-100), report CUCS-006-96 (1996).
For research use.
""",
    where=f"the .zip or the folder of its PNG images from {COIL_MIRRORS[0]}coil-100/coil-100.zip; the .mat with "
    f"fea and gnd from {CAI}; {OURS}",
    fetch=fetch_coil100,
)

USPS = DataSet(
    title="USPS",
    files={
        "usps_9298.npz": _formats.read_usps_arrays,
        "USPS.mat": _formats.read_usps_arrays,
        "zip.train.gz": _formats.read_usps_text,
        "zip.train": _formats.read_usps_text,
    },
    n_features=256,
    image_shape=(16, 16),
    description="""\
USPS: 9298 handwritten digits from envelopes, 16 × 16 pixels with values in [0, 1] (0 is paper). From zip.train and
zip.test the 7291 training images come first, then the 2007 test images; class k is the digit k.

J. J. Hull, A database for handwritten text recognition research, IEEE TPAMI 16 (1994).
""",
    where="zip.train.gz and zip.test.gz together, from the data of The Elements of Statistical Learning; the .mat with "
    f"fea and gnd from {CAI}; OpenML has it as number {OPENML_USPS}; {OURS}",
    fetch=fetch_usps,
)

MNIST = DataSet(
    title="MNIST (training set)",
    files={
        "mnist_train.npz": _formats.read_arrays,
        "train-images-idx3-ubyte.gz": _formats.read_mnist,
        "train-images-idx3-ubyte": _formats.read_mnist,
        "train-images.idx3-ubyte": _formats.read_mnist,
    },
    n_features=784,
    image_shape=(28, 28),
    description="""\
MNIST: the 60000 handwritten digits of the training set in their original order, 28 × 28 pixels, grey levels 0 to 255
(0 is paper); class k is the digit k.

Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proc. IEEE 86
(1998).
""",
    where=f"images and labels, train-labels-idx1-ubyte.gz beside them, from {MNIST_MIRRORS[0]}; {OURS}",
    fetch=fetch_mnist,
)

COVTYPE = DataSet(
    title="Covtype",
    files={
        "covtype.npz": _formats.read_arrays,
        "covtype.data.gz": _formats.read_covtype_text,
        "covtype.data": _formats.read_covtype_text,
    },
    n_features=54,
    description="""\
Forest CoverType: 581012 cells of forest of 30 × 30 m, 54 attributes of the terrain, 7 kinds of trees, in UCI's order
and unscaled (the paper scales each attribute to [0, 1]). The classes are very unequal: 2747 to 283301 cells.

J. A. Blackard, D. J. Dean, Comparative accuracies of artificial neural networks and discriminant analysis in predicting
forest cover types from cartographic variables, Computers and Electronics in Agriculture 24 (1999).
""",
    where=f"covtype.data.gz from https://archive.ics.uci.edu/dataset/31/covertype; {OURS}",
    fetch=fetch_covtype,
)

ORL = DataSet(
    title="ORL",
    files={
        "orl_32x32.npz": _formats.read_arrays,
        "ORL_32x32.mat": _formats.read_matlab_images,
    },
    n_features=1024,
    image_shape=(32, 32),
    description="""\
ORL (also AT&T or Olivetti) faces: 40 persons, 10 photographs each, 32 × 32 pixels, grey levels 0 to 255. The files were
cut and sized by D. Cai; where they are missing, scikit-learn's Olivetti faces are fetched, the same photographs cut
differently and sized 64 × 64, and reduced by means of 2 × 2 blocks. Results on the two need not agree.

F. S. Samaria, A. C. Harter, Parameterisation of a stochastic model for human face identification, WACV (1994).
""",
    where=f"the .mat with fea and gnd is in {CAI}; {OURS}",
    fetch=fetch_orl,
)
