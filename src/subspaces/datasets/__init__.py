"""Data sets of the paper, synthetic data with known classes, corruption and completion."""

from __future__ import annotations

from subspaces.datasets.corruption import add_gaussian_noise, salt_and_pepper
from subspaces.datasets.cubes import make_cube
from subspaces.datasets.loaders import (
    balanced_subset,
    get_data_home,
    load_coil20,
    load_coil100,
    load_covtype,
    load_mnist,
    load_named,
    load_orl,
    load_usps,
    load_yaleb,
)
from subspaces.datasets.motion import load_motion, make_motions
from subspaces.datasets.synthetic import (
    make_spheres,
    make_subspaces,
    make_three_curves,
)

__all__ = [
    "add_gaussian_noise",
    "balanced_subset",
    "get_data_home",
    "load_coil20",
    "load_coil100",
    "load_covtype",
    "load_mnist",
    "load_motion",
    "load_named",
    "load_orl",
    "load_usps",
    "load_yaleb",
    "make_cube",
    "make_motions",
    "make_spheres",
    "make_subspaces",
    "make_three_curves",
    "salt_and_pepper",
]
