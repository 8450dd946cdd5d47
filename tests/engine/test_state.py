"""State survives the way through safetensors and JSON bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from descend.engine.state import pack, unpack


def test_round_trip() -> None:
    state = {
        "a": torch.arange(3),
        "numbers": [1, 0.1 + 0.2, float("inf"), 2**127, None, True, "text"],
        7: {"pair": (torch.ones(2, dtype=torch.bfloat16), np.array([1, 2], dtype=np.int16))},
        "empty": [],
    }
    tensors: dict[str, torch.Tensor] = {}
    tree = json.loads(json.dumps(pack(state, tensors)))
    again = unpack(tree, tensors)
    assert list(again) == ["a", "numbers", 7, "empty"]
    assert torch.equal(again["a"], state["a"])
    assert again["numbers"] == state["numbers"]
    assert isinstance(again[7]["pair"], tuple)
    assert torch.equal(again[7]["pair"][0], torch.ones(2, dtype=torch.bfloat16))
    assert again[7]["pair"][1].dtype == np.int16


def test_other_objects_are_refused_by_path() -> None:
    with pytest.raises(TypeError, match="/x/0"):
        pack({"x": [object()]}, {})
