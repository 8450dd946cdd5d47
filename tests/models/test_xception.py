"""Xception against a forward pass over its weights alone, and its published make-up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models.xception import TINY, TINY_INPUT, Halving, Middle, Separable, Xception, XceptionConfig
from tests.close import close

pytestmark = pytest.mark.system("mobilenet-and-xception")


def by_hand(w: dict[str, Tensor], x: Tensor, entry: int, middle: int) -> Tensor:
    """The paper's figure, read from the names of the weights."""

    def norm(x: Tensor, name: str) -> Tensor:
        values = (w[f"{name}.{p}"][:, None, None] for p in ("weight", "bias", "running_mean", "running_var"))
        gamma, beta, mean, var = values
        return gamma * (x - mean) / (var + 1e-5).sqrt() + beta

    def plain(x: Tensor, name: str, stride: int) -> Tensor:
        return norm(F.conv2d(x, w[f"{name}.conv.weight"], stride=stride), f"{name}.norm")

    def separable(x: Tensor, name: str) -> Tensor:
        depth, point = w[f"{name}.depth.weight"], w[f"{name}.point.weight"]
        channels = [F.conv2d(x[:, c : c + 1], depth[c : c + 1], padding=1) for c in range(x.shape[1])]
        return norm(torch.einsum("oc,bchw->bohw", point[:, :, 0, 0], torch.cat(channels, 1)), f"{name}.norm")

    def halving(x: Tensor, name: str, first: bool) -> Tensor:
        y = separable(x if first else x.relu(), f"{name}.first").relu()
        y = F.max_pool2d(separable(y, f"{name}.second"), 3, 2, 1)
        return y + plain(x, f"{name}.shortcut", 2)

    x = plain(plain(x, "conv_1", 2).relu(), "conv_2", 1).relu()
    for i in range(entry):
        x = halving(x, f"entry.{i}", i == 0)
    for i in range(middle):
        y = x
        for j in range(3):
            y = separable(y.relu(), f"middle.{i}.layers.{j}")
        x = x + y
    x = halving(x, "exit", False)
    for i in range(2):
        x = separable(x, f"last.{i}").relu()
    return x.mean((2, 3)) @ w["head.weight"].T + w["head.bias"]


@pytest.mark.system("mobilenet-and-xception", "xception")
def test_equal_to_the_figure() -> None:
    torch.manual_seed(0)
    model, x = Xception(TINY).double(), TINY_INPUT().double()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
        for _ in range(3):
            model(x + torch.randn_like(x))  # moves the running means
    close(model.eval()(x), by_hand(model.state_dict(), x, 2, 2))


@pytest.mark.system("mobilenet-and-xception", "make-up")
def test_published_make_up() -> None:
    """36 convolutions: two plain ones at the start, then separable ones only, beside the 1×1 shortcuts."""
    with torch.device("meta"):
        model = Xception(XceptionConfig())
        x = torch.zeros(1, 3, 299, 299)
        assert model.maps(x).shape == (1, 2048, 10, 10)
        assert model.features(x).shape == (1, 2048)
    separable = [m for m in model.modules() if isinstance(m, Separable)]
    assert len(separable) == 34
    assert sum(isinstance(m, Middle) for m in model.modules()) == 8
    assert sum(isinstance(m, Halving) for m in model.modules()) == 4
    inside = {conv for m in separable for conv in (m.depth, m.point)}
    others = [m for m in model.modules() if isinstance(m, nn.Conv2d) and m not in inside]
    assert [m.kernel_size for m in others] == [(3, 3), (3, 3), *[(1, 1)] * 4]
    assert all(m.depth.groups == m.depth.in_channels for m in separable)


@pytest.mark.system("mobilenet-and-xception", "learn")
def test_a_reduced_one_learns() -> None:
    torch.manual_seed(0)
    model = Xception(replace(TINY, channels=3, classes=4, stem=(8, 16), entry=(16, 32), exit=(32, 32, 64)))
    x, y = torch.randn(12, 3, 40, 40), torch.arange(12) % 4
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 < losses[0]
