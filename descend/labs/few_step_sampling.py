"""What sampling costs: a thousand passes of the network by DDPM, fifty by DDIM, twenty by DPM-Solver++, one for a GAN.

    model       a perceptron that denoises 8 × 8 digits, T = 1000, trained once; every sampler uses the same network
    passes      of the network for an image, counted
    seconds     for an image, in a batch, on one core
    distance    Fréchet distance of a reader's features, samples against held-out digits; beside it that of training
                digits, the best that can be expected, and that of DDIM in two steps
    GAN         a generator with as many hidden layers, one pass (not trained: only its time is asked)

Systems: ddim, ddpm-sampler
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._train import train
from descend.labs.digit_gan import train_reader
from descend.metrics.frechet import fid
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.models.gan import GANConfig, Generator
from descend.ops.diffusion.plan import Method, Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.denoiser import Denoiser
from descend.sampling.diffusion.grid import make_grid
from descend.sampling.diffusion.samplers import walk_grid
from descend.tasks.denoise import Denoise, draw_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.132", "DLN-C.133")
PRINTED = "DDPM needs T sequential passes, a GAN one; DDIM gives high quality in a handful of steps."
CLAIM = "DDIM in 50 steps samples as well as DDPM in 1000, at a twentieth of the cost; a GAN needs one pass."
PREDICTIONS = (
    AtMost("passes of 50", 50, "Passes of the network by DDIM."),
    AtLeast("passes of 1000", 1000, "Passes by DDPM."),
    AtMost("distance of 50", 1.25, "Fréchet distance of DDIM in 50 steps over that of DDPM in 1000."),
    AtLeast(
        "distance of two",
        2,
        "Distance of DDIM in two steps over that in 50: the measure sees bad samples.",
    ),
    AtMost("time of 50", 0.1, "Seconds of 50 steps as a share of those of 1000."),
    AtLeast("time over a GAN's", 100, "Seconds of DDPM over those of one pass of a GAN."),
)
SCOPE = "Digits of 8×8 pixels, perceptrons, T = 1000; the GAN is not trained, only timed."
PIXELS, BATCH, RATE, MADE = 64, 128, 2e-3, 500
PLAN = Plan(NoiseSchedule("cosine", 1000), "v")
SAMPLERS: dict[str, tuple[Method, int]] = {
    "ddpm 1000": ("ddpm", 1000),
    "ddim 50": ("ddim", 50),
    "dpm++ 20": ("dpm++", 20),
    "ddim 2": ("ddim", 2),
}
BUDGET = 20.0
PRICE = 75  # steps that a second of one core buys, beside the samples
LEAST = 700


def fit_denoiser(x: Tensor, steps: int, seed: int) -> DenoiserMLP:
    torch.manual_seed(seed)
    model = DenoiserMLP(DenoiserConfig(inputs=PIXELS, width=256, depth=4, plan=PLAN))
    task, random = Denoise(model, PLAN.noise, PLAN.predicts), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return task.losses({"x": x[rows], **draw_noise((PIXELS,), BATCH, random)}).mean()

    train(model, loss, steps, RATE)
    return model.eval()


@torch.no_grad()
def take_samples(model: DenoiserMLP, method: Method, steps: int, seed: int) -> tuple[Tensor, int, float]:
    """Samples, passes and seconds for one image."""
    random = torch.Generator().manual_seed(seed)
    noise = lambda: torch.randn(MADE, PIXELS, generator=random)
    plan = replace(PLAN, method=method, spacing="trailing", clip=1.0 if method == "ddpm" else 0.0)
    denoise, began = Denoiser(model, plan.predicts, plan.clip), time.perf_counter()
    *_, made = walk_grid(denoise, make_grid(plan, steps), noise(), plan, noise)
    return made.clamp(-1, 1), denoise.calls, (time.perf_counter() - began) / MADE


@torch.no_grad()
def time_generator() -> float:
    """Seconds for one image of a GAN."""
    generator, z = Generator(GANConfig(16, PIXELS, 256, 4)), torch.randn(MADE, 16)
    generator(z)
    began = time.perf_counter()
    for _ in range(10):
        generator(z)
    return (time.perf_counter() - began) / (10 * MADE)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Distance, passes and seconds of every sampler."""
    steps = max(2, round(PRICE * budget))
    digits = load_digits_split(valid=0.3)
    x, held_out = (2 * part.x.flatten(1) - 1 for part in (digits.train, digits.valid))
    model, reader = fit_denoiser(x, steps, seed), train_reader(x, digits.train.y, seed)
    taken = [take_samples(model, *chosen, seed + 1000) for chosen in SAMPLERS.values()]
    with torch.no_grad():
        real = reader.features(held_out)
        distances = [fid(reader.features(made), real) for made in (*(found[0] for found in taken), x)]
    return {
        "steps": steps,
        "sampler": [*SAMPLERS, "training digits"],
        "distance": distances,
        "passes": [found[1] for found in taken],
        "seconds": [found[2] for found in taken],
        "gan_seconds": time_generator(),
        "samples": [found[0][:10].tolist() for found in taken],
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    full, fifty, _, two, _ = numbers["distance"]
    slow, fast = numbers["seconds"][:2]
    return {
        "passes of 50": numbers["passes"][1],
        "passes of 1000": numbers["passes"][0],
        "distance of 50": fifty / full,
        "distance of two": two / fifty,
        "time of 50": fast / slow,
        "time over a GAN's": slow / numbers["gan_seconds"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Ten samples of each sampler."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.2), layout="constrained")
    names = zip(numbers["sampler"], numbers["distance"], strict=True)
    for row, images, (name, distance) in zip(fig.subplots(4, 10), numbers["samples"], names, strict=False):
        for axes, image in zip(row, images, strict=True):
            axes.imshow(torch.tensor(image).view(8, 8).numpy(), cmap="gray_r", vmin=-1, vmax=1)
            axes.set_axis_off()
        row[0].set_title(f"{name}: {distance:.3g}", fontsize=8, loc="left")
    return fig
