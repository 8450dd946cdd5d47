"""Files of tensors: read by the safetensors package, and aligned when they are mapped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from descend.weights.tensor_file import DTYPES, align, write_tensors


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_is_read_back_bit_for_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    bits = torch.randint(0, 2 if dtype is torch.bool else 256, (24 * dtype.itemsize,), dtype=torch.uint8)
    x = bits.view(dtype)
    write_tensors(tmp_path / "x", {"matrix": x.view(4, 6), "one": x[0], "none": x[:0], "part": x[1:4]})
    again = load_file(tmp_path / "x")
    assert {name: (y.dtype, y.shape) for name, y in again.items()} == {
        "matrix": (dtype, (4, 6)), "one": (dtype, ()), "none": (dtype, (0,)), "part": (dtype, (3,)),
    }  # fmt: skip
    assert torch.equal(again["matrix"].reshape(-1).view(torch.uint8), bits)
    assert torch.equal(again["part"].view(torch.uint8), bits[dtype.itemsize : 4 * dtype.itemsize])


@pytest.mark.parametrize("extra", range(9))
def test_mapped_tensors_are_aligned(extra: int, tmp_path: Path) -> None:
    """Whatever the header's length; only tensors of odd sizes are not."""
    odd = {"a" * (1 + extra): torch.arange(3, dtype=torch.int8), "b": torch.arange(5.0)}
    whole = {"c": torch.arange(16.0), "d": torch.arange(64, dtype=torch.float64)}
    write_tensors(tmp_path / "x", odd | whole)
    again = load_file(tmp_path / "x")
    assert all(again[name].data_ptr() % 64 == 0 for name in whole)
    assert all(align(again[name]) is again[name] for name in whole)
    assert all(
        torch.equal(align(again[name]), x) and align(again[name]).data_ptr() % 64 == 0 for name, x in odd.items()
    )


def test_metadata_and_an_empty_file(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", {}, metadata={"format": "pt"})
    with safe_open(tmp_path / "x", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
    assert load_file(tmp_path / "x") == {}


def test_a_mapped_tensor_can_be_changed_without_its_file(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", {"x": torch.zeros(1000)})
    load_file(tmp_path / "x")["x"].add_(1)
    assert not load_file(tmp_path / "x")["x"].any()


def test_a_type_that_no_file_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"x: a file of tensors has no torch.complex128"):
        write_tensors(tmp_path / "x", {"x": torch.zeros(1, dtype=torch.complex128)})


@pytest.mark.parametrize("tensor", [
    torch.zeros(1).expand(1).as_strided((1,), (0,)), torch.tensor(2.5, dtype=torch.float64).expand(1),
    torch.tensor([3]).as_strided((1, 1), (0, 0)), torch.zeros(0, 3), torch.tensor(True), torch.arange(6.0).view(2, 3).T,
])  # fmt: skip
def test_tensors_of_unusual_strides_are_written(tensor: Tensor, tmp_path: Path) -> None:
    """numpy's arrays of one number may have a stride of 0, which torch calls contiguous."""
    write_tensors(tmp_path / "x.safetensors", {"x": tensor})
    found = load_file(tmp_path / "x.safetensors")["x"]
    assert torch.equal(found, tensor)
    assert found.shape == tensor.shape
