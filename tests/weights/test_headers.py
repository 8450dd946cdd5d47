"""Nothing is believed of a header: a type, a shape or a place that cannot be is named, with its file and tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.models import load
from descend.models.mlp import MLP, TINY
from descend.weights.files import open_tensors
from descend.weights.flat import read_flat
from descend.weights.folder import INDEX
from descend.weights.rules import same_names
from descend.weights.tensor_file import read_header, write_tensors

TWO = {"a": torch.arange(32.0), "b": torch.ones(4, 4)}


def rewrite(path: Path, name: str, **lie: Any) -> None:
    """Say something else of one tensor."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header[name] |= lie
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_the_truth_is_read(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", TWO)
    found = read_header(tmp_path / "x.safetensors")
    assert {name: (e.dtype, e.shape, e.end - e.start) for name, e in found.items()} == {
        "a": ("F32", (32,), 128),
        "b": ("F32", (4, 4), 64),
    }


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"data_offsets": [128, 2**50]}, "tensor 'b' has .* bytes, not those of F32"),
        ({"data_offsets": [192, 256]}, "tensor 'b' follows a gap"),
        ({"data_offsets": [64, 128]}, "tensor 'a' overlaps|tensor 'b' overlaps"),
        ({"data_offsets": [-64, 0]}, "tensor 'b' lies at .*no place"),
        ({"data_offsets": [192, 128]}, "tensor 'b' lies at .*no place"),
        ({"data_offsets": [0]}, "tensor 'b' lies at .*no place"),
        ({"data_offsets": [0, 10**30]}, r"tensor 'b': data_offsets\[1\] = 10+ is too large"),
        ({"shape": [2**32, 2**32]}, "tensor 'b' has 64 bytes, not those of F32"),
        ({"shape": [-4, -4]}, "tensor 'b' has the shape .*negative"),
        ({"shape": ["4", 4]}, r"tensor 'b': shape\[0\] is \"4\", not a whole number"),
        ({"shape": 16}, "tensor 'b': shape is 16, not a list"),
        ({"dtype": "F16"}, "tensor 'b' has 64 bytes, not those of F16"),
        ({"dtype": "F31"}, "tensor 'b' has the type 'F31', which is unknown"),
        ({"dtype": None}, "tensor 'b': dtype is null, not a text"),
        ({"shape": [4, 5], "data_offsets": [128, 208]}, "tensor 'b' ends beyond the file"),
    ],
)
def test_a_lie_is_named(lie: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, TWO)
    rewrite(path, "b", **lie)
    with pytest.raises(Mistake, match=said) as caught:
        open_tensors(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 8, b"\xff" * 64, (2).to_bytes(8, "little") + b"[]", b"\x09" + b"\0" * 20]
)
def test_no_header_at_all(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(Mistake, match=r"x.safetensors"):
        open_tensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize(("dtype", "name"), [(torch.int32, "I32"), (torch.bool, "BOOL"), (torch.complex64, "C64")])
def test_whole_numbers_are_no_weights(dtype: torch.dtype, name: str, tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"weight": torch.ones(2, 3, dtype=dtype), "bias": torch.zeros(2)})
    model = nn.Linear(3, 2)
    with pytest.raises(Mistake, match=f"key 'weight' has the type {name}, this Linear expects torch.float32"):
        read_flat(model, tmp_path / "x.safetensors", same_names(model.state_dict()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_fractions_are_weights(dtype: torch.dtype, tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"weight": torch.ones(2, 3, dtype=dtype), "bias": torch.zeros(2)})
    model = nn.Linear(3, 2)
    read_flat(model, tmp_path / "x.safetensors", same_names(model.state_dict()))
    assert torch.equal(model.weight, torch.ones(2, 3))


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (
            {"weight_map": {"a": "../model.safetensors"}},
            r"'../model.safetensors' is not a .safetensors file of its folder",
        ),
        ({"weight_map": {"a": "/etc/passwd"}}, "is not a .safetensors file of its folder"),
        ({"weight_map": {"a": 7}}, "weight_map.a is 7, not a text"),
        ({"weight_map": []}, "weight_map is a list, not an object"),
        ({"weight_map": {}}, "names no file of weights"),
        ({}, "lacks 'weight_map'"),
    ],
)
def test_an_index_that_points_elsewhere(index: dict[str, Any], said: str, tmp_path: Path) -> None:
    MLP(TINY).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(Mistake, match=said):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": 7}, "model_type is 7, not a text"),
        ({"architectures": {"a": 1}}, "architectures is an object, not a list"),
        ({"outputs": "many"}, "outputs = many: must be a whole number"),
        ({"outputs": -1}, "outputs = -1: must be a whole number"),
        ({"outputs": 10**6, "hidden": [10**6, 10**6]}, "has shape .*expects"),  # 4 TB, if the config were believed
    ],
)
def test_a_config_that_lies(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    MLP(TINY).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Mistake, match=said):
        load(tmp_path)
