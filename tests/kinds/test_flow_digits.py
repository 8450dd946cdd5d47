"""Flow matching on small images: after a few steps its samples are near digits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Wish
from descend.engine.loop import Loop
from descend.kinds.flow_images import MatchImages
from descend.models.flow_unet import FlowUNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Constant
from descend.sampling.chance import PerExample
from tests.engine.small import training

SMALL = MatchImages(
    model=FlowUNetConfig(widths=(16, 32), attention=(False, False), blocks=1, head_size=4, groups=4),
    optim=AdamW(lr=4e-3, weight_decay=0.0),
    schedule=Constant(),
    loop=Loop(steps=1000, batch=32, threads=1, clip=1.0, compile="off"),
)


def correlate(a: Tensor, b: Tensor) -> float:
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


@pytest.mark.system("flow-matching", "images")
def test_samples_come_near_to_digits() -> None:
    """The mean image, the contrast, and the distance to the nearest validation image, before and after 36 steps."""
    run = training(SMALL)
    model: Any = run.parts.model
    real = torch.cat([batch["x"] for batch in run.parts.valid]).flatten(1)

    def look() -> tuple[float, float, float]:
        model.eval()
        with torch.no_grad():
            x = model.generate(PerExample(0, 48), Wish(method="euler", steps=8)).flatten(1)
        model.train()
        nearest = torch.cdist(x, real).amin(1).mean().item()
        return correlate(x.mean(0), real.mean(0)), (x.std() / real.std()).item(), nearest

    (_, _, far), loss = look(), run.evaluate()["loss"]
    for _ in range(36):
        run.advance()
    alike, contrast, near = look()
    assert run.evaluate()["loss"] < loss / 2
    assert alike > 0.9
    assert 0.7 < contrast < 1.3
    assert near < far / 2
