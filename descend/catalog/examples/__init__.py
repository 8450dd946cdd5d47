"""The books' worked examples, run by the library's own code: one function an example.

A family has a file (`gan.py`), or a folder of files when it has many (`attention_transformers/`). Each file holds

    EXAMPLES    worked id -> function(inputs), which returns the keys of `recomputed`
    SET_ASIDE   worked id, or "id:key" for one key alone -> the reason why it cannot be compared
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Inputs = dict[str, Any]
Compute = Callable[[Inputs], Inputs]


def real(values: Any) -> Tensor:
    """The inputs of an example as a float64 tensor: the books' values have ten digits, float32 has seven."""
    return torch.tensor(values, dtype=torch.float64)
