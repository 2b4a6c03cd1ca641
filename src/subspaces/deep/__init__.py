"""Deep methods: an autoencoder finds the codes in which points represent each other. Needs PyTorch.

Install it with ``pip install subspaces[deep]``. Nothing else of the package imports PyTorch, and neither does this
module before one of its classes is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

DEEP = {
    "dscnet": "DSCNet",
    "dasc": "DASC",
    "structae": "StructAE",
    "aessc": "AESSC",
    "ktrrnet": "KTRRNet",
    "aektrr": "AEKTRR",
}
"""The deep methods by name, readable without PyTorch."""

_FILES = {
    "DSCNet": "dsc_net",
    "DASC": "dasc",
    "StructAE": "struct_ae",
    "AESSC": "ae_shallow",
    "KTRRNet": "ktrr_net",
    "AEKTRR": "ae_shallow",
}

__all__ = ["DEEP", "DSCNet", "DASC", "StructAE", "AESSC", "KTRRNet", "AEKTRR"]

if TYPE_CHECKING:
    from subspaces.deep.ae_shallow import AEKTRR, AESSC
    from subspaces.deep.dasc import DASC
    from subspaces.deep.dsc_net import DSCNet
    from subspaces.deep.ktrr_net import KTRRNet
    from subspaces.deep.struct_ae import StructAE


def __getattr__(name: str) -> object:
    """Load a class when first asked for, with the way out when PyTorch is missing."""
    if name not in _FILES:
        raise AttributeError(f"module 'subspaces.deep' has no attribute {name!r}")
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"subspaces.deep.{name} needs PyTorch, which cannot be imported here ({error}). Install it with: "
            "pip install subspaces[deep]"
        ) from error
    return getattr(importlib.import_module(f"subspaces.deep.{_FILES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
