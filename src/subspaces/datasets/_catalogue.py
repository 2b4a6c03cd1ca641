"""The data sets: the files each may be in, where they come from, and how to describe them."""

from __future__ import annotations

from subspaces.datasets import _fetch, _formats
from subspaces.datasets._load import DataSet

CAI = "Deng Cai's collection, http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html and MLData.html there"
OURS = "a .npz holds X, y and, where X are multiples of it, scale"

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
    where=f"the .zip or the folder of its PNG images from {_fetch.COIL_MIRRORS[0]}coil-20/coil-20-proc.zip; the .mat "
    f"with fea and gnd from {CAI}; {OURS}",
    fetch=_fetch.fetch_coil20,
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
    where=f"the .zip or the folder of its PNG images from {_fetch.COIL_MIRRORS[0]}coil-100/coil-100.zip; the .mat with "
    f"fea and gnd from {CAI}; {OURS}",
    fetch=_fetch.fetch_coil100,
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
    f"fea and gnd from {CAI}; OpenML has it as number {_fetch.OPENML_USPS}; {OURS}",
    fetch=_fetch.fetch_usps,
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
    where=f"images and labels, train-labels-idx1-ubyte.gz beside them, from {_fetch.MNIST_MIRRORS[0]}; {OURS}",
    fetch=_fetch.fetch_mnist,
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
    fetch=_fetch.fetch_covtype,
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
    fetch=_fetch.fetch_orl,
)
