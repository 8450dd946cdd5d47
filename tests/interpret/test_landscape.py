"""Slices of a loss: centre and ends are the models' losses, filters have the models' lengths, nothing stays changed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from descend.interpret.landscape import (
    draw_direction,
    normalize_filters,
    read_weights,
    scan_line,
    scan_plane,
    subtract,
)
from tests.close import close


def build(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3 * 4, 4)).double()
    net(torch.randn(16, 1, 4, 4, dtype=torch.float64))  # batch statistics of its own
    return net.eval()


@pytest.fixture
def data() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(12, 1, 4, 4, generator=random).double(), torch.randint(4, (12,), generator=random)


@pytest.mark.system("loss-landscape")
@pytest.mark.system("loss-landscape", "slices")
def test_ends_of_a_line_and_centre_of_a_plane(data: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Every other point is the loss of a model put together from the weights by hand."""
    x, y = data
    a, b = build(0), build(1)

    def loss(net: nn.Module = a) -> float:
        return cross_entropy(net(x), y).item()

    before, end = {k: v.clone() for k, v in a.state_dict().items()}, loss(b)
    way = subtract(read_weights(b), read_weights(a))
    steps = [0.0, 0.3, 1.0]
    line = scan_line(a, loss, way, steps)
    close([line[0], line[2]], [loss(), end])
    mixed = {k: v + 0.3 * (b.state_dict()[k] - v) if v.is_floating_point() else v for k, v in a.state_dict().items()}
    close(line[1], cross_entropy(functional_call(a, mixed, (x,)), y).item())
    random = torch.Generator().manual_seed(0)
    first, second = draw_direction(a, random), draw_direction(a, random)
    plane = scan_plane(a, loss, first, second, [-0.5, 0.0, 0.5])
    close(plane[1, 1], loss())
    moved = {k: v - 0.5 * first[k] + 0.5 * second[k] if k in first else v for k, v in a.state_dict().items()}
    close(plane[2, 0], cross_entropy(functional_call(a, moved, (x,)), y).item())
    assert all(torch.equal(v, before[k]) for k, v in a.state_dict().items())


@pytest.mark.system("loss-landscape", "filter-normalised")
def test_every_filter_is_as_long_as_the_models() -> None:
    net = build(0)
    direction = draw_direction(net, torch.Generator().manual_seed(0))
    for name, part in net.named_parameters():
        d = direction[name]
        if part.dim() > 1:
            close(d.flatten(1).norm(dim=1), part.flatten(1).norm(dim=1))
        else:
            assert not d.any()
    other = draw_direction(net, torch.Generator().manual_seed(1))
    cosine = sum(float((direction[k] * other[k]).sum()) for k in direction)
    assert abs(cosine) < sum(float(v.square().sum()) for v in direction.values())
    # rescaling a ReLU unit changes the weights and not the function; the directions follow
    scaled = normalize_filters(torch.ones(2, 3), torch.tensor([[3.0, 0, 0], [0, 300, 0]]))
    close(scaled.norm(dim=1), torch.tensor([3.0, 300.0]))


def test_an_error_leaves_the_model_as_it_was() -> None:
    net = build(0)
    before = read_weights(net)
    with pytest.raises(ZeroDivisionError):
        scan_line(net, lambda: 1 / 0, draw_direction(net, torch.Generator()), [1.0])
    assert all(torch.equal(part, before[name]) for name, part in read_weights(net).items())
    with pytest.raises(ValueError, match="same weights"):
        subtract(before, {"other": torch.zeros(1)})


@pytest.mark.system("loss-landscape", "grid")
def test_the_plane_of_two_weights_is_a_grid_of_the_loss() -> None:
    """With the axes as directions the plane is the bowl of linear regression, its lowest point next to the solution."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(30, 2, generator=random).double()
    y = x @ torch.tensor([0.4, -0.6]).double() + 0.1 * torch.randn(30, generator=random).double()
    net = nn.Linear(2, 1, bias=False).double()
    nn.init.zeros_(net.weight)
    axes = [{"weight": torch.eye(2, dtype=torch.float64)[i : i + 1]} for i in range(2)]
    steps = [i / 20 for i in range(-20, 21)]
    plane = scan_plane(net, lambda: (net(x)[:, 0] - y).square().mean().item(), axes[0], axes[1], steps)
    row, column = divmod(int(plane.argmin()), len(steps))
    best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    assert math.hypot(steps[column] - float(best[0]), steps[row] - float(best[1])) < 0.05
