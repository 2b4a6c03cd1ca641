"""Points as small pictures inside a page: values to bytes, images to text."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from subspaces.numerics.types import Array


def as_bytes(values: Array, low: float, high: float) -> Array:
    """Values as grey or colour levels, `low` black and `high` white; what lies beyond is cut off.

    Examples
    --------
    >>> as_bytes(np.array([0.0, 0.5, 1.0, 2.0]), 0.0, 1.0)
    array([  0, 128, 255, 255], dtype=uint8)
    """
    scaled = (np.asarray(values, dtype=np.float64) - low) / max(high - low, 1e-300)
    return np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def data_uri(image: Any, kind: str = "png", **options: Any) -> str:
    """An image of Pillow, or its bytes, as text that stands in a page; `options` go to Pillow."""
    if isinstance(image, np.ndarray):
        from PIL import Image

        image = Image.fromarray(image)
    stream = io.BytesIO()
    image.save(stream, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
