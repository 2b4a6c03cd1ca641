"""The data sets that stable public sources offer; each function leaves its files in the folder it is given."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path

import numpy as np
import sklearn.datasets

from subspaces.datasets._formats import (
    Points,
    block_means,
    points_of,
    read_coil20,
    read_coil100,
    read_mnist,
    require_pillow,
    unit_interval,
)

FETCH_ERRORS = (OSError, ValueError, HTTPException)
"""What scikit-learn's fetchers and our readers raise when a source is down, changed or damaged."""

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
    return read_mnist(images)


def fetch_coil20(folder: Path) -> Points:
    """COIL-20 from its home; no checksum is published, so the images are counted instead."""
    require_pillow("COIL's PNG images")
    points = read_coil20(_download(COIL_MIRRORS, "coil-20/coil-20-proc.zip", folder))
    return _complete(points, n_objects=20)


def fetch_coil100(folder: Path) -> Points:
    """COIL-100 from its home (131 MB)."""
    require_pillow("COIL's PNG images")
    points = read_coil100(_download(COIL_MIRRORS, "coil-100/coil-100.zip", folder, COIL100_SHA256))
    return _complete(points, n_objects=100)


def fetch_usps(folder: Path) -> Points:
    """USPS from OpenML, where class k + 1 is the digit k."""
    # liac-arff is scikit-learn's own parser; the other one needs pandas
    usps = sklearn.datasets.fetch_openml(
        data_id=OPENML_USPS, data_home=str(folder), as_frame=False, parser="liac-arff", n_retries=1
    )
    return points_of(unit_interval(np.asarray(usps.data, dtype=np.float64)), np.asarray(usps.target).astype(int) - 1)


def fetch_covtype(folder: Path) -> Points:
    """Covtype as scikit-learn fetches it, in UCI's order; its values are small whole numbers."""
    covtype = sklearn.datasets.fetch_covtype(data_home=str(folder), shuffle=False, n_retries=1)
    return points_of(covtype.data.astype(np.int16), covtype.target)


def fetch_orl(folder: Path) -> Points:
    """The Olivetti faces of scikit-learn: the same 400 photographs as ORL, but cut and sized 64 × 64 by others."""
    faces = sklearn.datasets.fetch_olivetti_faces(data_home=str(folder), n_retries=1)
    return points_of(np.rint(block_means(faces.images * 255, 2)).astype(np.uint8), faces.target + 1)


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
