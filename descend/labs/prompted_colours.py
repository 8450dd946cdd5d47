"""Does a text-to-image model draw what its prompt says? A latent diffusion model in small, on coloured squares.

    images      8 × 8: a square of one of four colours, at a random place, on grey ground; captions "a red square", ..
    model       autoencoder (2 × 2 smaller), text encoder and conditioned U-Net, trained in two stages by one run
    asked       each colour, with guidance γ = 1 (the conditional model itself) and γ = 3

An image is read by its pixel with the most colour: the nearest of the four. The denoiser predicts v: with ε the loss
hardly asks for the colour, which is decided where there is much noise (tried: 38% right after as many steps).

Systems: text-to-image-pipeline
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Wish
from descend.data.images.captions import Captioned, CaptionedParts, Captions
from descend.data.toys.scenes import RGB
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.kinds.diffuse_captions import DiffuseCaptions
from descend.kinds.latent_diffusion import DiffusionStage, FirstStage
from descend.labs._evidence import Above, AtLeast
from descend.models.autoencoder_kl import AutoencoderKLConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.models.stable_diffusion_pipeline import StableDiffusionConfig
from descend.models.unet_2d_condition import UNet2DConditionConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.optim.stages import InStages
from descend.sampling.chance import PerExample
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.139",)
PRINTED = "Text-to-image: a prompt's CLIP embedding conditions the denoising of a latent, with guidance (no number)."
CLAIM = "A text-to-image model that learned from captions draws the colour that its prompt asks for."
PREDICTIONS = (
    AtLeast(
        "right",
        0.8,
        "The share of images with the colour asked for, with guidance 3; chance is a quarter.",
    ),
    Above(
        "read",
        0.95,
        "The share of real images whose colour is read right: else nothing is known.",
    ),
)
SCOPE = "Coloured squares of 8×8, four colours, a latent diffusion model trained for seconds."
RETUNED = "The denoiser predicts v: with ε, tried first, 38% of the colours were right after as many steps."
BUDGET = 12.0
PRICE = 40  # steps that a second of one core buys
LEAST = 400  # steps below which nothing is said
COLOURS = ("red", "green", "blue", "yellow")
SIDE, EACH, GAMMAS = 8, 16, (1.0, 3.0)


@dataclass(frozen=True)
class Squares(Captions):
    """Coloured squares with captions."""

    def read(self) -> CaptionedParts:
        """Three parts."""
        train, valid, test = (draw_squares(n, generator(5, i)) for i, n in enumerate((self.count, 64, 64)))
        return CaptionedParts(train, valid, test)


def draw_squares(n: int, random: torch.Generator) -> Captioned:
    """n squares of 3 × 3 or 4 × 4 pixels, and what they are called."""
    colour = torch.randint(len(COLOURS), (n,), generator=random)
    x = 0.35 + 0.3 * torch.rand(n, 1, 1, 1, generator=random).expand(-1, 3, SIDE, SIDE).clone()
    places = torch.randint(SIDE - 3, (n, 2), generator=random).tolist()
    sizes = torch.randint(3, 5, (n,), generator=random).tolist()
    for i, ((row, column), size) in enumerate(zip(places, sizes, strict=True)):
        tint = torch.tensor(RGB[COLOURS[int(colour[i])]])
        x[i, :, row : row + size, column : column + size] = tint[:, None, None]
    x = (x + 0.02 * torch.randn(x.shape, generator=random)).clamp(0, 1)
    return Captioned((255 * x).round().to(torch.uint8), [f"a {COLOURS[k]} square" for k in colour.tolist()], colour)


def read_colours(x: Tensor) -> Tensor:
    """The colour of the pixel with the most of it: images (n, 3, h, w) in 0..1 -> numbers (n)"""
    pixels = x.flatten(2).mT
    strongest = (pixels.amax(2) - pixels.amin(2)).argmax(1)
    chosen = pixels[torch.arange(len(x)), strongest]
    return torch.cdist(chosen, torch.tensor([RGB[name] for name in COLOURS])).argmin(1)


def make_recipe(seed: int, steps: int) -> DiffuseCaptions:
    """Two stages: a third for the autoencoder."""
    rate = AdamW(lr=3e-3, weight_decay=0.0)
    return DiffuseCaptions(
        model=StableDiffusionConfig(
            vae=AutoencoderKLConfig(widths=(16, 32), groups=8, latent=4),
            text_encoder=ClipTextConfig(width=32, depth=1, heads=2, hidden=64),
            unet=UNet2DConditionConfig(
                widths=(32, 32), attention=(True, False), blocks=1, heads=2, groups=8, linear=True
            ),
            plan=Plan(NoiseSchedule("cosine", 200), method="ddim", steps=20, spacing="trailing"),
        ),
        data=Squares(size=SIDE, count=512, longest=8),
        optim=rate,
        first=FirstStage(rate),
        schedule=InStages((0.35, 0.65), Cosine(warmup=20, floor=0.05)),
        stages=(DiffusionStage("autoencoder"), DiffusionStage("denoiser", predicts="v")),
        loop=Loop(steps=steps, batch=32, seed=seed, clip=1.0, precision="float32", compile="off"),
    )


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The share of right colours with and without guidance, and of the untrained model."""
    steps = max(8, round(PRICE * budget))
    recipe = make_recipe(seed, steps)
    run = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    wanted = torch.arange(len(COLOURS)).repeat_interleave(EACH)
    prompts = tuple(f"a {COLOURS[k]} square" for k in wanted.tolist())

    def share(gamma: float) -> tuple[float, Tensor]:
        model: Any = run.parts.model.eval()
        with torch.no_grad():
            made = model.generate(PerExample(seed, len(prompts)), Wish(guidance=gamma, prompts=prompts))
        x = ((made + 1) / 2).clamp(0, 1)
        return float((read_colours(x) == wanted).float().mean()), x

    before, _ = share(1.0)
    run.task.train()
    for _ in range(steps):
        run.advance()
    found = [share(gamma) for gamma in GAMMAS]
    real = recipe.data.read().test
    assert real.y is not None
    return {
        "steps": steps,
        "gamma": list(GAMMAS),
        "right": [value for value, _ in found],
        "untrained": before,
        "real": float((read_colours(real.x / 255) == real.y).float().mean()),
        "sample": found[-1][1][::4].movedim(1, -1).tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"right": numbers["right"][-1], "read": numbers["real"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Samples, a row for each colour."""
    from matplotlib.figure import Figure

    page = Figure(figsize=(6, 6), layout="constrained")
    axes = page.subplots(len(COLOURS), len(numbers["sample"]) // len(COLOURS), squeeze=False)
    for axis, image in zip(axes.flat, numbers["sample"], strict=False):
        axis.imshow(image)
        axis.axis("off")
    page.suptitle(f"asked for: {', '.join(COLOURS)}; right in {numbers['right'][-1]:.0%}")
    return page
