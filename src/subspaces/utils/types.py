"""Array types used in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""A dense array of any dtype."""

Labels = npt.NDArray[np.intp]
"""One integer label per sample."""

Sparse = Any
"""A SciPy sparse array (CSR or CSC)."""

Data = Any
"""Samples as rows: a dense array or a sparse one."""
