"""A state refers to what the model's files hold, and only where every bit agrees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from descend.engine.references import SMALL, Stored, read_reference
from descend.engine.references import find_references as find

SIDE = 40  # a matrix of floats is then larger than SMALL


def find_references(tensors: dict[str, Tensor], stored: Stored) -> dict[str, Any]:
    with ThreadPoolExecutor(2) as threads:
        return find(tensors, stored, threads)


def matrix() -> Tensor:
    return torch.randn(SIDE, SIDE + 1)


def test_found_as_it_is_transposed_and_stacked() -> None:
    torch.manual_seed(0)
    x, y, experts = matrix(), matrix(), torch.randn(3, SIDE, SIDE + 1)
    stored = {
        "a": {"x.weight": x.clone()},
        "b": {"y.weight": y.t().contiguous(), **{f"e.{i}": e.clone() for i, e in enumerate(experts)}},
    }
    tensors = {"x": x, "again": x, "y": y, "experts": experts, "moment": matrix()}
    found = find_references(tensors, stored)
    assert found["x"] == found["again"] == {"file": "a", "key": "x.weight", "flip": False}
    assert found["y"] == {"file": "b", "key": "y.weight", "flip": True}
    assert [part["key"] for part in found["experts"]] == ["e.0", "e.1", "e.2"]
    assert "moment" not in found
    assert all(torch.equal(read_reference(where, stored), tensors[name]) for name, where in found.items())


def test_every_bit_must_agree() -> None:
    x = torch.zeros(SIDE, SIDE)
    for change in (1e-45, -0.0, float("nan")):
        other = x.clone()
        other[-1, -1] = change
        assert not find_references({"x": x}, {"a": {"x": other}})
        assert find_references({"x": other}, {"a": {"x": other.clone()}}), "a NaN equals itself"


def test_type_and_shape_must_agree() -> None:
    x = torch.zeros(SIDE, SIDE)
    for other in (x.to(torch.int32), x.view(-1), x.double(), x.view(SIDE // 2, -1)):
        assert not find_references({"x": x}, {"a": {"x": other}})


def test_of_many_alike_the_equal_one_is_found() -> None:
    """All begin with the same numbers."""
    many = {f"{i}": torch.zeros(SIDE, SIDE) for i in range(5)}
    for i, tensor in enumerate(many.values()):
        tensor[1, 2] = i
    assert find_references({"x": many["3"].clone()}, {"a": many})["x"]["key"] == "3"


def test_small_ones_are_not_worth_it() -> None:
    x = torch.randn(SMALL // 4 - 1)
    assert not find_references({"x": x}, {"a": {"x": x}})
