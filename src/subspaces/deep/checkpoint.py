"""Checkpoints: weights and optimiser state only, written atomically, read without pickle's powers."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

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
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=self.path.stem, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def load(self) -> dict[str, Any] | None:
        """The saved state on the CPU; None without a file, ValueError for a file that is no checkpoint of this run."""
        if not self.folder.is_dir():
            raise ValueError(f"checkpoints={str(self.folder)!r} must be a folder that exists.")
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for files that are not its own
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint ({type(error).__name__}): delete it."
            ) from error
        if not isinstance(state, dict) or state.get("format") != FORMAT or state["identity"] != self.identity:
            raise ValueError(f"{self.path} is a checkpoint of another version or run: delete it.")
        return state
