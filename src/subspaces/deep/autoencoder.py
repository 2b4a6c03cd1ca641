"""Flatten images of any layout to rows of pixels; autoencoders between rows of pixels and rows of codes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from subspaces.utils.types import Data

Shape = tuple[int, int, int]
"""Height, width and channels; a row of pixels is an image of this shape in C order."""

CHANNELS = (1, 3, 4)
"""Numbers of channels by which the channel axis of a four-dimensional array is recognised."""

PUBLISHED = {(48, 42): ((10, 20, 30), (5, 3, 3)), (32, 32): ((15,), (3,))}
"""Channels and kernel sizes by image size in DSC-Net: Extended Yale B and COIL20. ORL used (3, 3, 5), (3, 3, 3)."""


def flatten_images(X: Any, image_shape: Sequence[int] | None) -> tuple[Data, Shape | None]:
    """Return rows of pixels, channel last, and the image shape; None where it is unknown.

    X has the shape (n, h, w), (n, h, w, c) or (n, c, h, w), or rows of the shape (n, h · w · c). Of the two layouts of
    four axes the one with 1, 3 or 4 channels is meant; where both fit, channels are last. `image_shape`, (h, w) or
    (h, w, c), is needed for rows only; images must agree with it.

    Examples
    --------
    >>> import numpy as np
    >>> rows, shape = flatten_images(np.zeros((5, 3, 8, 6)), None)
    >>> rows.shape, shape
    ((5, 144), (8, 6, 3))
    """
    given = None if image_shape is None else _full_shape(image_shape)
    if not hasattr(X, "ndim"):  # lists and the like; data frames and sparse arrays have one
        X = np.asarray(X)
    if X.ndim <= 2:
        if given is not None and X.ndim == 2 and X.shape[1] != np.prod(given):
            raise ValueError(
                f"image_shape={tuple(image_shape or ())} has {np.prod(given)} values, but the rows of X have "
                f"{X.shape[1]}: give (height, width) or (height, width, channels) of the images in the rows."
            )
        return _single_precision(X), given
    images = np.asarray(X)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise ValueError(f"X must hold images, n × h × w or with a fourth axis, or rows; its shape is {X.shape}.")
    if images.shape[3] not in CHANNELS and images.shape[1] in CHANNELS:
        images = images.transpose(0, 2, 3, 1)
    if images.shape[3] not in CHANNELS:
        raise ValueError(
            f"X of shape {X.shape} has no axis of {CHANNELS} channels, neither second nor last. Give flat rows and "
            "image_shape=(height, width, channels) for another number of channels."
        )
    n, h, w, c = images.shape
    if given is not None and given != (h, w, c):
        raise ValueError(f"image_shape={tuple(image_shape or ())} contradicts the images in X, {(h, w, c)}.")
    return _single_precision(images.reshape(n, h * w * c)), (h, w, c)


def _full_shape(image_shape: Sequence[int]) -> Shape:
    shape = tuple(int(side) for side in image_shape)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(f"image_shape must be (height, width) or (height, width, channels), got {tuple(image_shape)}.")
    return (shape[0], shape[1], shape[2] if len(shape) == 3 else 1)


def _single_precision(X: Any) -> Any:
    """Convert integers, as in image files, to float32: double precision would only cost time."""
    return X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype.kind in "bui" else X


def default_layers(image_shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return channels and kernel sizes for an image size: the published ones, or halvings down to 16 × 16 or less.

    Examples
    --------
    >>> default_layers((48, 42, 1))
    ((10, 20, 30), (5, 3, 3))
    >>> default_layers((64, 64, 3))
    ((15, 15), (5, 3))
    """
    side = max(image_shape[:2])
    if image_shape[:2] in PUBLISHED:
        return PUBLISHED[image_shape[:2]]
    n_layers = 1
    while side > 16 * 2**n_layers:
        n_layers += 1
    # the wider first kernel of the published nets for larger images; 15 channels as for COIL20
    return (15,) * n_layers, (5 if side > 32 else 3, *(3,) * (n_layers - 1))


class Autoencoder(nn.Module):
    """Two stacks of layers between rows of pixels and rows of codes; without layers, the identity."""

    def __init__(self, encoder: Sequence[nn.Module] = (), decoder: Sequence[nn.Module] = ()) -> None:
        super().__init__()
        self.encoder = nn.Sequential(*encoder)
        self.decoder = nn.Sequential(*decoder)

    def encode(self, rows: Tensor) -> Tensor:
        """Return codes, one row per sample."""
        return self.encoder(rows)

    def decode(self, codes: Tensor) -> Tensor:
        """Return pixels from codes."""
        return self.decoder(codes)


def convolutional(
    image_shape: Shape, channels: Sequence[int], kernel_sizes: Sequence[int], *, nonnegative: bool
) -> Autoencoder:
    """Make DSC-Net's autoencoder: convolutions of stride 2, mirrored by transposed ones, a ReLU after each.

    Kernel sizes are odd, so that maps shrink from s to ⌈s/2⌉. With `nonnegative` there is a ReLU after the last layer
    too (published); that is only right for pixels ≥ 0.
    """
    sizes = [image_shape[:2]]
    for _ in channels:
        sizes.append(((sizes[-1][0] + 1) // 2, (sizes[-1][1] + 1) // 2))
    depths = [image_shape[2], *channels]

    encoder: list[nn.Module] = [_ToMaps(image_shape)]
    for (depth_in, depth_out), size in zip(pairwise(depths), kernel_sizes, strict=True):
        encoder += [nn.Conv2d(depth_in, depth_out, size, stride=2, padding=size // 2), nn.ReLU()]
    encoder.append(_ToRows())

    decoder: list[nn.Module] = [_ToMaps((*sizes[-1], depths[-1]))]
    for layer in reversed(range(len(channels))):
        size, before = kernel_sizes[layer], depths[layer + 1]
        # 2s − 1 pixels come out of s without it: an even side needs one more
        extra = [large - (2 * small - 1) for large, small in zip(sizes[layer], sizes[layer + 1], strict=True)]
        decoder.append(
            nn.ConvTranspose2d(before, depths[layer], size, stride=2, padding=size // 2, output_padding=extra)
        )
        if layer > 0 or nonnegative:
            decoder.append(nn.ReLU())
    decoder.append(_ToRows())
    return _initialised(Autoencoder(encoder, decoder)).to(memory_format=torch.channels_last)


def dense(n_features: int, hidden: Sequence[int]) -> Autoencoder:
    """Make fully connected layers with tanh, mirrored; the last layer is linear (StructAE)."""
    encoder: list[nn.Module] = []
    decoder: list[nn.Module] = []
    for n_in, n_out in pairwise([n_features, *hidden]):
        encoder += [nn.Linear(n_in, n_out), nn.Tanh()]
        decoder = [nn.Linear(n_out, n_in), nn.Tanh(), *decoder]
    return _initialised(Autoencoder(encoder, decoder[:-1]))


def _initialised(autoencoder: Autoencoder) -> Autoencoder:
    """Set Glorot's weights and zero biases, as in DSC-Net's program."""
    for layer in autoencoder.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return autoencoder


class _ToMaps(nn.Module):
    """Rows with the channel last → n × c × h × w: a view, in the channels-last layout that convolutions are fast in."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        return rows.view(-1, *self.shape).permute(0, 3, 1, 2)


class _ToRows(nn.Module):
    """The way back, a view as well where the layout was kept."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.permute(0, 2, 3, 1).flatten(1)
