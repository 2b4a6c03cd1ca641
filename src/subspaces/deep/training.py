"""One training loop for all deep methods: seeds, batches, early stopping on the loss, checkpoints.

Checkpoints hold weights and optimiser state only; they are written atomically and read without pickle's powers.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import torch
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from torch import Tensor, nn

from subspaces.utils.atomic import write_atomically
from subspaces.utils.process import quiet
from subspaces.utils.progress import phase

FORMAT = 2  # of checkpoints


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoint file of one training run in a folder.

    `identity` says which run: settings and a digest of the data, as strings. It decides the name of the file, so that
    runs never take each other's, and runs that begin alike share what they have in common.
    """

    folder: Path
    method: str
    identity: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Return the name of the method and a digest of the identity."""
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
        """Return the saved state on the CPU; None without a file, ValueError for a file of another run or kind."""
        if not self.folder.is_dir():
            raise ValueError(f"checkpoints={str(self.folder)!r} must be a folder that exists.")
        if not self.path.exists():
            return None
        try:
            with quiet():  # of pickles in another dialect, which are refused
                with zipfile.ZipFile(self.path) as archive:
                    # not what we write: PyTorch's old format and packed members take what memory they announce
                    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                        raise ValueError("packed members")
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


@dataclass(eq=False)
class Training:
    """One run of one module: its random numbers, its losses, and the checkpoint it resumes from.

    `module` holds everything that is trained or must be saved, buffers included. Batches are drawn from the indices of
    `n_samples` samples; `seed` is theirs and that of whatever a loss draws from `generator`. `learning_rate` is Adam's.
    A stage ends early when its lowest loss fell by less than `tol` of itself in `patience` epochs; with ``tol=None``
    never. `losses` holds the loss of every epoch (sum over batches) by stage.
    """

    module: nn.Module
    n_samples: int
    _: KW_ONLY
    seed: int
    learning_rate: float = 1e-3
    tol: float | None = 0.01
    patience: int = 50
    checkpoint: Checkpoint | None = None
    save_every: int = 10

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)
        self.losses: dict[str, list[float]] = {}
        self._saved = self.checkpoint.load() if self.checkpoint is not None else None
        if self._saved is not None:
            self.module.load_state_dict(self._saved["module"])
            self.generator.set_state(self._saved["generator"])
            self.losses = {stage: list(losses) for stage, losses in self._saved["losses"].items()}

    def stage(
        self,
        name: str,
        loss: Callable[[Tensor], Tensor],
        epochs: int,
        *,
        batch_size: int | None = None,
        before_epoch: Callable[[int], None] | None = None,
    ) -> None:
        """Minimise ``loss(indices of a batch)`` by Adam; a stage the checkpoint has finished is skipped.

        A step takes `batch_size` samples, or all of them. `before_epoch` is called with the number of the epoch (from
        0), also when resuming at that epoch.
        """
        finished = self._saved is not None and name in self._saved["finished"]
        weights = list(self.module.parameters())
        if finished or not weights:  # an identity autoencoder has nothing to learn
            return
        optimiser = torch.optim.Adam(weights, lr=self.learning_rate)
        losses = self.losses.setdefault(name, [])
        if losses and self._saved is not None:
            optimiser.load_state_dict(self._saved["optimiser"])
        with phase(f"Training the network ({name})", epochs) as step:
            step(len(losses))
            for epoch in range(len(losses), epochs):
                if before_epoch is not None:
                    before_epoch(epoch)
                losses.append(self._epoch(optimiser, loss, batch_size, name))
                step()
                if has_converged(losses, self.tol, self.patience):
                    break
                if (epoch + 1) % self.save_every == 0:
                    self._save(name, optimiser, finished=False)
        self._save(name, optimiser, finished=True)

    def _epoch(
        self, optimiser: torch.optim.Optimizer, loss: Callable[[Tensor], Tensor], batch_size: int | None, name: str
    ) -> float:
        total = 0.0
        for batch in self._batches(batch_size):
            optimiser.zero_grad(set_to_none=True)
            value = loss(batch)
            value.backward()
            optimiser.step()
            total += value.item()
        if total != total or abs(total) == float("inf"):
            raise FloatingPointError(
                f"the loss of stage {name!r} became {total} in epoch {len(self.losses[name]) + 1}: lower learning_rate "
                f'(now {self.learning_rate}) or scale the pixels, for example with scaling="max".'
            )
        return total

    def _batches(self, batch_size: int | None) -> Iterator[Tensor]:
        device = next(self.module.parameters()).device
        if batch_size is None or batch_size >= self.n_samples:
            yield torch.arange(self.n_samples, device=device)
            return
        order = torch.randperm(self.n_samples, generator=self.generator).to(device)
        yield from order.split(batch_size)

    def _save(self, name: str, optimiser: torch.optim.Optimizer, *, finished: bool) -> None:
        if self.checkpoint is None:
            return
        done = [stage for stage in self.losses if stage != name or finished]
        self.checkpoint.save(
            {
                "module": self.module.state_dict(),
                "optimiser": {} if finished else optimiser.state_dict(),
                "generator": self.generator.get_state(),
                "losses": self.losses,
                "finished": done,
            }
        )


def has_converged(losses: Sequence[float], tol: float | None, patience: int) -> bool:
    """Return True if the lowest loss fell by less than `tol` of itself during the last `patience` epochs.

    Examples
    --------
    >>> has_converged([800, 400, 200, 199.9, 199.8], tol=0.01, patience=2)
    True
    >>> has_converged([800, 400, 200, 199.9, 199.8], tol=0.01, patience=3)
    False
    """
    if tol is None or len(losses) <= patience:
        return False
    before, since = min(losses[:-patience]), min(losses[-patience:])
    return before - since < tol * abs(before)


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Set PyTorch's global state and restore it: determinism, threads, the CPU's random numbers.

    Threads follow ``OMP_NUM_THREADS`` and ``threadpool_limits`` like the rest of the package.
    """
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        # not torch.manual_seed, which would seed the devices' generators as well
        torch.default_generator.manual_seed(seed)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.set_num_threads(_openmp_effective_n_threads())
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            torch.set_num_threads(threads)
