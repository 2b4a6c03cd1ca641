"""Deep methods: self-expressive codes of autoencoders. Needs PyTorch.

Install it with ``pip install subspaces[deep]``; nothing imports it before one of these classes is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from subspaces import registry

_CLASSES = {registry.entry_of(name).class_name: name for name in registry.names("deep")}
__all__ = list(_CLASSES)

if TYPE_CHECKING:
    from subspaces.deep.dasc import DASC as DASC
    from subspaces.deep.encoded import AEKTRR as AEKTRR
    from subspaces.deep.encoded import AESSC as AESSC
    from subspaces.deep.encoded import StructAE as StructAE
    from subspaces.deep.self_expressive import DSCNet as DSCNet
    from subspaces.deep.self_expressive import KTRRNet as KTRRNet


def __getattr__(name: str) -> object:
    """Load a class when it is first asked for."""
    if name in _CLASSES:
        return registry.load(_CLASSES[name])
    raise AttributeError(f"module 'subspaces.deep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
