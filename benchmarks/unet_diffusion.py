"""Diffusion U-Net of diffusers' usual configuration: training step and DDIM in 50 steps, beside diffusers' UNet2DModel.

Widths 64, 128, 256, two blocks a level, attention at 16×16 with heads of size 8 (diffusers' default), 14.7 million
parameters, 32×32×3 images: training with batches of 16, sampling 4 images. Both have the same weights and take turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.turns import take_turns

WIDTHS, BATCH, SIDE, SAMPLED, STEPS = (64, 128, 256), 16, 32, 4, 50


def train(model: nn.Module, predict: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], object]:
    """One step: forward, backward, AdamW."""
    random = torch.Generator().manual_seed(0)
    x, noise = torch.randn(2, BATCH, 3, SIDE, SIDE, generator=random)
    t = torch.randint(1000, (BATCH,), generator=random)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    half = os.environ.get("BENCHMARK_PRECISION") == "bfloat16"

    def call() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            found = predict(x, t)
        loss = (found.float() - noise).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return call


def make_ours() -> Any:
    from descend.engine.hardware import keep_memory
    from descend.models.unet_2d import UNet2D, UNet2DConfig

    keep_memory()
    torch.manual_seed(0)
    return UNet2D(UNet2DConfig(size=SIDE, widths=WIDTHS, attention=(False, True, False)))


def make_theirs() -> Any:
    from diffusers import UNet2DModel

    from descend.engine.hardware import keep_memory

    keep_memory()
    torch.manual_seed(0)
    model: Any = UNet2DModel(
        sample_size=SIDE,
        block_out_channels=WIDTHS,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    )
    return model.to(memory_format=torch.channels_last)  # the faster of its two forms


def ours() -> Callable[[], object]:
    model = make_ours()
    return train(model, model)


def theirs() -> Callable[[], object]:
    model = make_theirs()
    return train(model, lambda x, t: model(x, t).sample)


def our_samples() -> Callable[[], object]:
    from descend.ops.diffusion.plan import Plan
    from descend.sampling.diffusion.samplers import draw

    model = make_ours().eval().to(memory_format=torch.channels_last)  # as `inference` opens a pipeline
    x = torch.randn(SAMPLED, 3, SIDE, SIDE)
    return lambda: draw(model, x, Plan(method="ddim"), lambda: x, STEPS)


def their_samples() -> Callable[[], object]:
    from diffusers import DDIMScheduler

    model, start = make_theirs().eval(), torch.randn(SAMPLED, 3, SIDE, SIDE)
    scheduler: Any = DDIMScheduler(clip_sample=False)
    scheduler.set_timesteps(STEPS)

    @torch.no_grad()
    def call() -> Tensor:
        x = start.contiguous(memory_format=torch.channels_last)
        for t in scheduler.timesteps:
            x = scheduler.step(model(x, t).sample, t, x).prev_sample
        return x

    return call


def measure() -> list[dict[str, Any]]:
    """Images a second, the best call of each."""
    here = "benchmarks.unet_diffusion"
    pairs = {"ours": f"{here}:ours", "ours bfloat16": f"{here}:ours", "diffusers": f"{here}:theirs"}
    times, _ = take_turns(pairs, rounds=4, calls=1, bfloat16=("ours bfloat16",))
    samples, _ = take_turns({"ours": f"{here}:our_samples", "diffusers": f"{here}:their_samples"}, rounds=2, calls=1)
    rate = {name: BATCH / min(found) for name, found in times.items()}
    drawn = {name: SAMPLED / min(found) for name, found in samples.items()}
    rows = [
        ("diffusion U-Net, training step", rate["ours"], rate["diffusers"], 1.15),
        ("diffusion U-Net, training step in bfloat16", rate["ours bfloat16"], rate["diffusers"], 1.5),
        ("diffusion U-Net, DDIM in 50 steps", drawn["ours"], drawn["diffusers"], 1.2),
    ]
    return [
        {
            "name": name,
            "ours": mine,
            "theirs": other,
            "unit": "images/s",
            "ratio": mine / other,
            "bar": bar,
            "note": "against diffusers' UNet2DModel in float32, channels last",
        }
        for name, mine, other, bar in rows
    ]
