"""Rules that are more than a name: a stack of tensors, a matrix that may be tied."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from descend.errors import Mistake
from descend.weights.folder import read_weights, write_weights
from descend.weights.layout import Layout
from descend.weights.rules import rename, stack, untied

RULES = [
    stack("up", "model.experts.{}.w1"),
    untied("head", "head", same_as="model.embed"),
    rename("embed", "model.embed"),
]
LAYOUT = Layout("X", {}, bare_prefix="model.")


class Small(nn.Module):
    def __init__(self, tied: bool):
        super().__init__()
        self.up = nn.Parameter(torch.arange(24.0).view(3, 4, 2))
        self.embed = nn.Parameter(torch.ones(2))
        if not tied:
            self.head = nn.Parameter(torch.full((2,), 5.0))


@pytest.mark.parametrize("tied", [True, False])
def test_both_ways(tied: bool, tmp_path: Path) -> None:
    one, other = Small(tied), Small(tied)
    write_weights(one.state_dict(), RULES, tmp_path)
    names = {"model.embed", *(f"model.experts.{i}.w1" for i in range(3))}
    written = load_file(tmp_path / "model.safetensors")
    assert set(written) == (names if tied else names | {"head"})
    assert torch.equal(written["model.experts.2.w1"], one.up[2])
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
        read_weights(other, RULES, LAYOUT, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_keys_without_the_prefix_find_their_place(tmp_path: Path) -> None:
    experts = {f"experts.{i}.w1": torch.full((4, 2), i) for i in range(3)}
    save_file({"embed": torch.ones(2), **experts}, tmp_path / "model.safetensors")
    model = Small(True)
    with torch.no_grad():
        read_weights(model, RULES, LAYOUT, tmp_path)
    assert model.up[:, 0, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model.experts.1.w1": None}, "missing key 'model.experts.{}.w1'"),
        ({"model.experts.3.w1": torch.zeros(4, 2)}, "'model.experts.3.w1' is beyond this model"),
        ({"model.experts.1.w1": torch.zeros(4, 3)}, r"shape \(4, 3\), config.json asks for \(4, 2\)"),
        ({"head": torch.zeros(2)}, "'head' differs from 'model.embed'"),
    ],
)
def test_mistakes_are_named(change: dict[str, torch.Tensor | None], message: str, tmp_path: Path) -> None:
    model = Small(True)
    write_weights(model.state_dict(), RULES, tmp_path)
    tensors = {**load_file(tmp_path / "model.safetensors"), **change}
    save_file({k: v for k, v in tensors.items() if v is not None}, tmp_path / "model.safetensors")
    with pytest.raises(Mistake, match=message), torch.no_grad():
        read_weights(model, RULES, LAYOUT, tmp_path)
