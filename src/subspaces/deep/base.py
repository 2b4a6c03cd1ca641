"""Base of the deep methods: images, the autoencoder and its pre-training; the other stages are those of all methods."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn

from subspaces.deep.autoencoder import Autoencoder, Shape, convolutional, default_layers, flatten_images
from subspaces.deep.training import Checkpoint, Training, reproducible
from subspaces.engine.plan import Context, Plan
from subspaces.estimators.base import COUNT, POSITIVE
from subspaces.estimators.graph import GraphClusterer, WithGraph
from subspaces.representation.coefficients import Coefficients, Trace
from subspaces.utils.choices import Ranking
from subspaces.utils.types import Array, Data

ELSEWHERE = ("connect", "out_of_sample", "random_state", "verbose", "checkpoints", "save_every")
"""Parameters that take no part in any training."""
AFTER_TRAINING = ("n_clusters", "graph", "graph_params", "n_nonzero", "by", "assign_labels", "n_init", "init")
"""Parameters of graph and cut."""

_PRETRAINING = ("pretrain_epochs", "batch_size", "learning_rate", "tol", "patience", "scaling")
"""Parameters that, with the layers, decide how the autoencoder alone is trained."""


@dataclass(eq=False, repr=False, kw_only=True)
class DeepClusterer(WithGraph, GraphClusterer):
    """Base of the deep methods: the stage of the coefficients trains a network.

    The autoencoder is trained alone first. A subclass gives ``_train`` (what follows, up to the coefficients) and,
    where more than an autoencoder is trained, ``_network``. The other stages, ``predict`` and ``transform`` (by
    neighbours among the training images) are those of all methods.

    Parameters
    ----------
    image_shape : (height, width) or (height, width, channels), optional
        Needed if X has flat rows, channels last; images may also be (n, h, w), (n, h, w, c) or (n, c, h, w).
    channels, kernel_sizes : sequences of int, optional
        Of the encoder's layers, each of stride 2; by default what the authors used for the image size, else halvings
        down to 16 × 16 with 15 channels. ``channels=()``: no autoencoder, the pixels are the codes.
    pretrain_epochs, batch_size
        Largest number of epochs of the autoencoder alone, and the images per step there (None: all).
    learning_rate : float, default=0.001
        Of Adam.
    tol, patience
        A stage ends early when its lowest loss fell by less than `tol` of itself in `patience` epochs; None: never.
        Labels are never looked at.
    device : str, default="cpu"
        Any device of PyTorch.
    checkpoints, save_every
        Folder for the state of the training, saved every so many epochs; a run that was interrupted continues from
        there, with the result it would have had. One file for the autoencoder, shared by all methods, one for the rest;
        what was trained once serves every graph and cut.
    n_nonzero : int or None, default=5
        η, coefficients kept per sample; None keeps all.
    by : {"magnitude", "value"}, default="magnitude"
        What "largest" means.

    Attributes
    ----------
    losses_ : dict
        Losses of each stage of the training, epoch by epoch.
    image_shape_ : tuple
        Height, width and channels of the images.
    """

    n_nonzero: int | None = 5
    by: Ranking = "magnitude"
    image_shape: Sequence[int] | None = None
    channels: Sequence[int] | None = None
    kernel_sizes: Sequence[int] | None = None
    pretrain_epochs: int = 300
    batch_size: int | None = 100
    learning_rate: float = 1e-3
    tol: float | None = 0.01
    patience: int = 50
    device: str = "cpu"
    checkpoints: str | PathLike[str] | None = None
    save_every: int = 10

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "image_shape": ["array-like", None],
        "channels": ["array-like", None],
        "kernel_sizes": ["array-like", None],
        "pretrain_epochs": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [COUNT, None],
        "learning_rate": [POSITIVE],
        "tol": [POSITIVE, None],
        "patience": [COUNT],
        "device": [str],
        "save_every": [COUNT],
    }

    _kernel_of_points: ClassVar[bool] = False
    _untrained: ClassVar[tuple[str, ...]] = AFTER_TRAINING + ELSEWHERE
    """Parameters that do not change what is trained: one checkpoint serves all their values."""

    # ---------------------------------------------------------------- images in, rows on

    def _validated(self, X: Any) -> Data:
        rows, shape = flatten_images(X, self.image_shape)
        self.image_shape_: Shape | None = shape
        points = super()._validated(rows)
        self._precision_ = points.dtype
        return points

    def _outline(self, X: Data) -> Plan:
        """Outline the plan; a network sees the samples in the order given.

        The authors train on images sorted by class, and batches in another order end elsewhere.
        """
        trained = self.channels is None or len(self.channels) > 0
        return replace(super()._outline(X), canonical=not trained, draws="coefficients")

    def _validated_new(self, X: Any) -> Data:
        return super()._validated_new(flatten_images(X, getattr(self, "image_shape_", None))[0])

    # ---------------------------------------------------------------- the coefficients

    def _represent(self, X: Array, context: Context) -> Coefficients:
        seed, device = context.seed, self._checked_device()
        rows = torch.from_numpy(np.ascontiguousarray(X, dtype=self._precision_)).to(device)
        digest = hashlib.blake2b(rows.cpu().numpy().tobytes(), digest_size=16).hexdigest()
        # what besides parameters decides the result of a training
        origin = {"seed": str(seed), "image_shape": str(self.image_shape_), "dtype": str(rows.dtype), "data": digest}
        named = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        settings = {name: getattr(self, name) for name in ("learning_rate", "tol", "patience", "save_every")}

        def training_of(module: nn.Module, method: str, identity: dict[str, str]) -> Training:
            folder = self.checkpoints
            checkpoint = None if folder is None else Checkpoint(Path(folder), method, identity | origin)
            return Training(module, len(rows), seed=seed, checkpoint=checkpoint, **settings)

        def reconstruction(batch: Tensor) -> Tensor:
            return 0.5 * (autoencoder.decode(autoencoder.encode(rows[batch])) - rows[batch]).square().sum()

        with reproducible(seed):
            autoencoder = self._autoencoder(X).to(device=device, dtype=rows.dtype)
            # shared by all methods that pre-train the same autoencoder on the same images
            shared = {"layers": str(autoencoder), **{name: named[name] for name in _PRETRAINING}}
            alone = training_of(autoencoder, "autoencoder", shared)
            alone.stage("pretrain", reconstruction, self.pretrain_epochs, batch_size=self.batch_size)
            network = self._network(autoencoder, rows).to(device=device, dtype=rows.dtype)
            own = {name: value for name, value in named.items() if name not in self._untrained}
            training = training_of(network, type(self).__name__, own)
            coefficients = self._train(training, rows, network)
        self.losses_ = {**alone.losses, **training.losses}
        last = next(reversed(self.losses_.values()), [])
        # λ belongs to the codes; new samples are compared by their pixels
        return replace(coefficients, trace=Trace(True, len(last), objective=last), penalty=None)

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> Any:
        """Return everything that is trained; by default the autoencoder alone."""
        return autoencoder

    def _train(self, training: Training, rows: Tensor, network: Any) -> Coefficients:
        raise NotImplementedError

    def _autoencoder(self, X: Array) -> Autoencoder:
        channels, kernel_sizes = self._layers(X)
        if not channels:
            return Autoencoder()
        assert self.image_shape_ is not None
        return convolutional(self.image_shape_, channels, kernel_sizes, nonnegative=bool(X.min() >= 0))

    def _layers(self, X: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return checked channels and kernel sizes; the image size decides what is left open."""
        if self.channels is not None and len(self.channels) == 0:
            return (), ()
        if self.image_shape_ is None:
            raise ValueError(
                f"X has rows of {X.shape[1]} values and image_shape is None: give image_shape=(height, width), or "
                "images of shape (n, height, width), or channels=() for no convolutions at all."
            )
        channels, kernel_sizes = default_layers(self.image_shape_)
        if self.channels is not None:
            channels, kernel_sizes = tuple(self.channels), (3,) * len(self.channels)
        if self.kernel_sizes is not None:
            kernel_sizes = tuple(self.kernel_sizes)
        if len(kernel_sizes) != len(channels) or any(size % 2 == 0 for size in kernel_sizes):
            raise ValueError(
                f"kernel_sizes={kernel_sizes} must be odd numbers, one for each of channels={channels}: a stride of 2 "
                "then halves every side, rounded up."
            )
        return channels, kernel_sizes

    def _checked_device(self) -> torch.device:
        try:
            return torch.empty(0, device=self.device).device
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"device={self.device!r} cannot be used by this PyTorch: {error}") from error
