"""U-Net: forward and backward, beside a plain nn.Sequential of the same convolutions.

width 32, 4 levels, 3 channels, 8 classes, 4 images of 96×96. The plain stack has every layer of the U-Net in order,
with the same shapes; where the U-Net joins its skip, the stack repeats its own map, since it has nothing else to join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.turns import take_turns

WIDTH, DEPTH, CLASSES, BATCH, SIDE = 32, 4, 8, 4, 96


def step(model: nn.Module) -> Callable[[], object]:
    """One forward and backward pass."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, 3, SIDE, SIDE, generator=random)
    y = torch.randint(CLASSES, (BATCH, SIDE, SIDE), generator=random)

    def call() -> float:
        model.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return float(loss.detach())

    return call


def ours() -> Callable[[], object]:
    from descend.engine.hardware import keep_memory
    from descend.models.unet import UNet, UNetConfig

    keep_memory()
    torch.manual_seed(0)
    return step(UNet(UNetConfig(3, CLASSES, WIDTH, DEPTH, padding=1)))


class Doubled(nn.Module):
    """The map beside itself."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, x], dim=1)


def theirs() -> Callable[[], object]:
    from descend.engine.hardware import keep_memory

    keep_memory()
    torch.manual_seed(0)
    widths = [WIDTH * 2**level for level in range(DEPTH + 1)]
    layers: list[nn.Module] = []

    def convs(n: int, out: int) -> None:
        for channels in (n, out):
            layers.extend([nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(inplace=True)])

    for n, out in zip([3, *widths], widths, strict=False):
        convs(n, out)
        layers.append(nn.MaxPool2d(2))
    layers.pop()
    for n in reversed(widths[1:]):
        layers.extend([nn.ConvTranspose2d(n, n // 2, 2, stride=2), Doubled()])
        convs(n, n // 2)
    return step(nn.Sequential(*layers, nn.Conv2d(WIDTH, CLASSES, 1)))


def measure() -> list[dict[str, Any]]:
    """Images a second, the best call of each."""
    times, _ = take_turns({"ours": "benchmarks.unet:ours", "theirs": "benchmarks.unet:theirs"}, rounds=10, calls=3)
    rate = {name: BATCH / min(found) for name, found in times.items()}
    return [
        {
            "name": "U-Net, forward and backward",
            "ours": rate["ours"],
            "theirs": rate["theirs"],
            "unit": "images/s",
            "ratio": rate["ours"] / rate["theirs"],
            "bar": 1.0,
            "note": "against nn.Sequential of the same convolutions",
        }
    ]
