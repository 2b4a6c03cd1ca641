"""Checkpoints: weights and optimiser state only, written atomically, read without pickle's powers."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from subspaces.utils.atomic import write_atomically
from subspaces.utils.process import quiet

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """The file of one training run in a folder.

    ``identity`` says which run: settings and a digest of the data, as strings. It decides the name of the file, so that
    runs never take each other's, and runs that begin alike share what they have in common.
    """

    folder: Path
    method: str
    identity: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Name of the method and a digest of the identity."""
        text = json.dumps(dict(self.identity), sort_keys=True)
        return self.folder / f"{self.method}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.pt"

    def save(self, state: Mapping[str, Any]) -> None:
        """Write to a temporary file beside the target and rename it: a reader sees the old file or the new one."""
        content = {"format": FORMAT, "identity": dict(self.identity), **state}
        with write_atomically(self.path) as file:
            try:
                torch.save(content, file)
            except RuntimeError as error:  # its archive cannot be closed, because the disk is full
                raise (error.__context__ if isinstance(error.__context__, OSError) else error) from None

    def load(self) -> dict[str, Any] | None:
        """The saved state on the CPU; None without a file, ValueError for a file that is no checkpoint of this run."""
        if not self.folder.is_dir():
            raise ValueError(f"checkpoints={str(self.folder)!r} must be a folder that exists.")
        if not self.path.exists():
            return None
        try:
            with quiet():  # of pickles in another dialect, which are refused
                _check_archive(self.path)
                state = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for files that are not its own
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint ({type(error).__name__}): delete it."
            ) from error
        known = state if isinstance(state, dict) else {}
        identity = known.get("identity") if type(known.get("format")) is int and known["format"] == FORMAT else None
        plain = isinstance(identity, dict) and all(type(value) is str for value in identity.values())
        if not plain or identity != self.identity:  # a tensor in there could not be compared
            raise ValueError(f"{self.path} is a checkpoint of another version or run: delete it.")
        return state


def _check_archive(path: Path) -> None:
    """Refuse what we do not write: PyTorch's old format and packed members take what memory they announce."""
    with zipfile.ZipFile(path) as archive:
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise ValueError("packed members")
