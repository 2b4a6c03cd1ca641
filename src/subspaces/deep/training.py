"""One training loop for all deep methods: seeds, batches, early stopping on the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass

import torch
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from torch import Tensor, nn

from subspaces.utils.progress import phase


@dataclass(eq=False)
class Training:
    """One run of one module: its random numbers and its losses.

    Batches are drawn from the indices of
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

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)
        self.losses: dict[str, list[float]] = {}

    def stage(
        self,
        name: str,
        loss: Callable[[Tensor], Tensor],
        epochs: int,
        *,
        batch_size: int | None = None,
        before_epoch: Callable[[int], None] | None = None,
    ) -> None:
        """Minimise ``loss(indices of a batch)`` by Adam.

        A step takes `batch_size` samples, or all of them. `before_epoch` is called with the number of the epoch (from
        0).
        """
        weights = list(self.module.parameters())
        if not weights:  # an identity autoencoder has nothing to learn
            return
        optimiser = torch.optim.Adam(weights, lr=self.learning_rate)
        losses = self.losses[name] = []
        with phase(f"Training the network ({name})", epochs) as step:
            for epoch in range(epochs):
                if before_epoch is not None:
                    before_epoch(epoch)
                losses.append(self._epoch(optimiser, loss, batch_size, name))
                step()
                if has_converged(losses, self.tol, self.patience):
                    break

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
