"""State as safetensors and JSON: any nesting of dicts, lists and tuples of tensors, arrays and plain values.

The tensors go into one flat dict; the tree keeps the rest, with {"$tensor": name} where a tensor was. Nothing is
pickled, and floats keep every bit (JSON prints the shortest form that reads back equal).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def pack(value: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """The JSON tree of a value; its tensors are added to `tensors` under their paths."""
    if isinstance(value, Tensor):
        tensors[path] = value.detach().cpu().contiguous()
        return {"$tensor": path}
    if isinstance(value, np.ndarray):
        tensors[path] = torch.from_numpy(value.copy())
        return {"$array": path}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {"$dict": [[pack_key(k), pack(v, tensors, f"{path}/{k}")] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        items = [pack(v, tensors, f"{path}/{i}") for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"state at {path!r} has a {type(value).__name__}; use tensors, arrays and plain values")


def pack_key(key: Any) -> Any:
    if not isinstance(key, str | int):
        raise TypeError(f"a state's key must be a string or a number, not {key!r}")
    return key


def unpack(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """The value that `pack` took apart."""
    if isinstance(tree, list):
        return [unpack(v, tensors) for v in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    if tag == "$tensor":
        return tensors[content]
    if tag == "$array":
        return tensors[content].numpy()
    if tag == "$tuple":
        return tuple(unpack(v, tensors) for v in content)
    return {key: unpack(v, tensors) for key, v in content}
