from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.transfer import freeze, freeze_features, hold, replace_head, stages, unfreeze


class Net(nn.Module):
    """A stem, two blocks with batch norm and dropout, a scale of its own, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"conv": nn.Conv2d(4, 4, 1), "norm": nn.BatchNorm2d(4)}) for _ in range(2)
        )
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.ones(4))
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block["norm"](block["conv"](x)).relu()  # type: ignore[index]
        logits: Tensor = self.head(self.drop(x.mean(dim=(2, 3)) * self.scale))
        return logits


def step(net: nn.Module, times: int = 3) -> None:
    net.train()
    rule = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 0.1, weight_decay=0.1)
    x, y = torch.randn(8, 1, 6, 6), torch.randint(3, (8,))
    for _ in range(times):
        rule.zero_grad()
        F.cross_entropy(net(x), y).backward()
        rule.step()


def changed(before: dict[str, Tensor], net: nn.Module) -> set[str]:
    return {name for name, value in net.state_dict().items() if not torch.equal(before[name], value)}


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "frozen")
def test_what_is_frozen_stays_bit_for_bit_buffers_too() -> None:
    torch.manual_seed(0)
    net = Net()
    before = copy.deepcopy(net.state_dict())
    freeze_features(net, "head")
    step(net)
    assert changed(before, net) == {"head.weight", "head.bias"}
    assert not net.blocks[0]["norm"].training  # type: ignore[index]
    assert net.drop.training, "it has no parameters: it belongs to the head"
    unfreeze(net, ["blocks.1"])
    step(net)
    assert changed(before, net) >= {"blocks.1.conv.weight", "blocks.1.norm.running_mean", "head.weight"}
    assert not [name for name in changed(before, net) if name.startswith(("stem", "blocks.0", "scale"))]


@pytest.mark.system("transfer-learning")
def test_parts_by_name() -> None:
    net = Net()
    assert stages(net) == ["stem", "blocks.0", "blocks.1", "head"]
    before = copy.deepcopy(net.state_dict())
    freeze(net, ["stem", "blocks.0", "scale"])
    step(net)
    assert {name.rpartition(".")[0] for name in changed(before, net)} == {"blocks.1.conv", "blocks.1.norm", "head"}
    with pytest.raises(Mistake, match=r"no part 'blocks.7'. Did you mean 'blocks.\d'. It has stem, blocks.0"):
        freeze(net, ["blocks.7"])


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "head")
def test_a_new_head() -> None:
    net = Net()
    new = replace_head(net, "head", 7)
    assert net(torch.randn(2, 1, 5, 5)).shape == (2, 7)
    assert net.head is new
    with pytest.raises(Mistake, match="is a Conv2d, not a linear head"):
        replace_head(net, "stem", 7)


def test_a_held_part_can_be_copied() -> None:
    net = Net()
    hold(net.blocks)
    twin = copy.deepcopy(net).train()
    assert not twin.blocks[0].training
    unfreeze(twin, ["blocks"])
    assert twin.train().blocks[0].training
    assert not net.train().blocks[0].training
