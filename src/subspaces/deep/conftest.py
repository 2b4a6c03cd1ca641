"""The examples in this folder need PyTorch; without it pytest must not even import the files."""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ImportError:
    collect_ignore_glob = ["*.py"]
