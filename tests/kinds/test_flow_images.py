"""Images by flow matching: what is built and drawn, sampled and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend.contracts import Generates, Wish
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.flow_images import MatchImages
from descend.models.flow_unet import TINY, FlowUNet, FlowUNetConfig
from descend.models.unet_2d import UNet2D
from descend.sampling.chance import PerExample
from tests.close import close

SMALL = MatchImages(
    model=FlowUNetConfig(widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4, steps=2),
    loop=Loop(steps=4, batch=8, threads=1),
)


@pytest.mark.system("flow-matching")
def test_training_and_sampling(tmp_path: Path) -> None:
    parts = SMALL.build()
    batch = next(parts.stream)
    assert batch["noise"].shape == batch["x"].shape == (8, 1, 8, 8)
    assert ((batch["t"] >= 0) & (batch["t"] < 1)).all()
    training = Training(parts, SMALL.loop, SMALL.schedule, World())
    for _ in range(2):
        training.advance()
    model = parts.model.eval()
    assert isinstance(model, Generates)
    made = model.generate(PerExample(0, 3), Wish(steps=3, method="rk4"))
    assert made.shape == (3, 1, 8, 8)
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert isinstance(again, FlowUNet)
    assert again.generate(PerExample(0, 3), Wish(steps=3, method="rk4")).equal(made)


def test_it_is_the_diffusion_unet_at_a_thousand_times_the_time() -> None:
    torch.manual_seed(0)
    model = FlowUNet(TINY).eval()
    x, t = torch.randn(2, 1, 8, 8), torch.tensor([0.25, 0.5])
    with torch.no_grad():
        close(model(x, t), UNet2D.forward(model, x, torch.tensor([250.0, 500.0])))
        close(model(x, 0.5)[1], model(x, t)[1])
    with pytest.raises(ValueError, match="as many channels"):
        FlowUNet(replace(TINY, out=2))


def test_sides_that_cannot_be_halved() -> None:
    with pytest.raises(Mistake, match="cannot be halved 4 times"):
        replace(SMALL, model=replace(SMALL.model, widths=(8,) * 5, attention=(False,) * 5)).build()
