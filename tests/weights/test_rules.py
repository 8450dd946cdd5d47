"""Rules that are more than a name: a stack of tensors, a matrix that may be tied."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from descend.errors import Mistake
from descend.weights.folder import read_weights, write_weights
from descend.weights.rules import copied, rename, same_names, stack, subtree, untied

RULES = [
    stack("up", "model.experts.{}.w1"),
    untied("head", "head", same_as="model.embed"),
    rename("embed", "model.embed"),
]
PREFIX = "model."


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
        read_weights(other, RULES, tmp_path, PREFIX)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_keys_without_the_prefix_find_their_place(tmp_path: Path) -> None:
    experts = {f"experts.{i}.w1": torch.full((4, 2), float(i)) for i in range(3)}
    save_file({"embed": torch.ones(2), **experts}, tmp_path / "model.safetensors")
    model = Small(True)
    with torch.no_grad():
        read_weights(model, RULES, tmp_path, PREFIX)
    assert model.up[:, 0, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model.experts.1.w1": None}, "missing key 'model.experts.{}.w1'"),
        ({"model.experts.3.w1": torch.zeros(4, 2)}, "'model.experts.3.w1' does not exist in this Small"),
        ({"model.experts.1.w1": torch.zeros(4, 3)}, r"shape \(4, 3\), this Small expects \(4, 2\)"),
        ({"head": torch.zeros(2)}, "'head' differs from 'model.embed'"),
    ],
)
def test_mistakes_are_named(change: dict[str, torch.Tensor | None], message: str, tmp_path: Path) -> None:
    model = Small(True)
    write_weights(model.state_dict(), RULES, tmp_path)
    tensors = {**load_file(tmp_path / "model.safetensors"), **change}
    save_file({k: v for k, v in tensors.items() if v is not None}, tmp_path / "model.safetensors")
    with pytest.raises(Mistake, match=message), torch.no_grad():
        read_weights(model, RULES, tmp_path, PREFIX)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), Small(True).parameters(), strict=True))


def test_a_file_in_two_shards_is_read_whole(tmp_path: Path) -> None:
    one, other = Small(False), Small(False)
    write_weights(one.state_dict(), RULES, tmp_path, shard_bytes=40)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    with torch.no_grad():
        other.up.zero_()
    read_weights(other, RULES, tmp_path, PREFIX)
    assert torch.equal(one.up, other.up)
    (first,) = tmp_path.glob("model-00001-*")
    save_file({"model.embed": torch.ones(2)}, first)
    with pytest.raises(Mistake, match=r"missing key 'model.experts|is a duplicate of"):
        read_weights(other, RULES, tmp_path, PREFIX)


def test_a_matrix_that_the_file_leaves_out_because_it_is_equal(tmp_path: Path) -> None:
    rules = [*same_names(["up", "embed"]), copied("head", "head", "embed")]
    save_file({"embed": torch.tensor([3.0, 4.0]), "up": torch.zeros(3, 4, 2)}, tmp_path / "model.safetensors")
    untied = Small(False)
    read_weights(untied, rules, tmp_path)
    assert untied.head.tolist() == [3, 4]
    with torch.no_grad():
        untied.head.add_(1)
    write_weights(untied.state_dict(), rules, tmp_path)
    again = Small(False)
    read_weights(again, rules, tmp_path)
    assert (again.embed.tolist(), again.head.tolist()) == ([3, 4], [4, 5])
    with pytest.raises(Mistake, match="'head' differs from 'embed'"):
        read_weights(Small(True), rules, tmp_path)


def test_everything_below_a_name(tmp_path: Path) -> None:
    one, other = (nn.ModuleDict({"image": nn.Linear(2, 3)}) for _ in range(2))
    write_weights(one.state_dict(), [subtree("image", "vision.tower")], tmp_path)
    assert set(load_file(tmp_path / "model.safetensors")) == {"vision.tower.weight", "vision.tower.bias"}
    read_weights(other, [subtree("image", "vision.tower")], tmp_path)
    assert torch.equal(one["image"].weight, other["image"].weight)
