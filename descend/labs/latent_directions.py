"""Directions in latent space: the mean code with an attribute less the mean code without it edits an image.

    images 8 × 8: a soft spot at a random place in the upper part, and, planted in half of them, a bar along the bottom
    Δ = mean z with the bar − mean z without          edit: decode(z + a Δ)

    VAE    z = μ(x), labels of the data           GAN    z drawn, labels read off the generated images
    pattern      cosine of what Δ changes, decode(z + Δ) − decode(z), with the bar itself
    edited       share of images without the bar that have it after + Δ; `kept`: without it after 0 Δ
    spot         how far the spot moves meanwhile, in pixels
    walk         largest over mean step of the images on a straight line between two codes

Systems: latent-traversals
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from descend.labs._evidence import Above, AtLeast, Below
from descend.labs._train import train
from descend.labs.digit_gan import LATENT as NOISE
from descend.labs.digit_gan import play
from descend.losses.variational import gaussian_error
from descend.metrics.latent_space import walk_evenness
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.models.vae import VAE, VAEConfig
from descend.ops.latent import attribute_direction, interpolate, move_along
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.47", "DLN-C.67")
PRINTED = (
    "Directions in latent space correspond to attributes: the mean code with an attribute less that"
    " without it edits an image; interpolation is smooth."
)
CLAIM = "The mean code with an attribute less that without it recovers a planted factor, in a VAE and in a GAN."
PREDICTIONS = (
    AtLeast("VAE's pattern", 0.9, "Cosine of what the VAE's direction changes with the bar."),
    AtLeast("GAN's pattern", 0.7, "The same for the GAN's."),
    AtLeast("VAE's edits", 0.9, "Share of images without the bar that have it afterwards."),
    AtLeast("GAN's edits", 0.7, "The same for the GAN."),
    Above("kept", 0.9, "Share of images that have no bar without the edit, the lesser of both."),
    Below("spot moved", 1, "Pixels that the spot moves meanwhile, in the VAE."),
    Below("jump on a walk", 3, "The largest step over the mean step between two codes."),
)
SCOPE = "Images of 8×8 with one planted attribute, one VAE and one GAN."
SIDE, LATENT, BATCH, RATE, IMAGES, LEAST = 8, 6, 64, 8e-3, 1500, 250
BAR = torch.zeros(SIDE, SIDE).index_fill_(0, torch.tensor([SIDE - 1]), 1.0)
BUDGET = 8.0
PRICE = 150  # steps of the VAE, and moves of both players of the GAN, that a second of one core buys


def draw_images(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (n, 1, 8, 8) in 0..1, and whether the bar is there (n)."""
    place = 1 + torch.rand(n, 2, generator=random) * torch.tensor([3.0, 5.0])
    line = torch.arange(SIDE, dtype=torch.float32)
    down, across = (line - place[:, :1]) ** 2, (line - place[:, 1:]) ** 2
    spot = (-(down[:, :, None] + across[:, None]) / 1.5).exp()
    has = torch.rand(n, generator=random) < 0.5
    return (spot + 0.8 * BAR * has[:, None, None]).clamp(max=1)[:, None], has


def read_bar(x: Tensor) -> Tensor:
    """Whether the bottom row is bright."""
    return x[:, 0, -1].mean(1) > 0.4


def find_spot(x: Tensor) -> Tensor:
    """Centre of the light above the bar (n, 2)."""
    light = x[:, 0, : SIDE - 2].clamp(min=0.1) - 0.1
    line = torch.arange(SIDE, dtype=x.dtype)
    total = light.sum((1, 2)).clamp(min=1e-6)
    return torch.stack([(light.sum(2) * line[: SIDE - 2]).sum(1) / total, (light.sum(1) * line).sum(1) / total], 1)


def judge(decode: Any, z: Tensor, has: Tensor) -> dict[str, float]:
    """Everything about one model, from codes (n, k) and labels (n)."""
    direction = attribute_direction(z, has)
    without = z[~has][:200]
    before, after = (decode(x) for x in move_along(without, direction, torch.tensor([0.0, 1.0])))
    change = (after - before).mean(0).flatten()
    path = decode(interpolate(z[0], z[1], 12))
    return {
        "pattern": float(cosine_similarity(change, BAR.flatten(), dim=0)),
        "edited": float(read_bar(after).double().mean()),
        "kept": 1 - float(read_bar(before).double().mean()),
        "spot": float((find_spot(after) - find_spot(before)).norm(dim=1).median()),
        "walk": float(walk_evenness(path)),
    }


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Both models on the same images."""
    steps = max(3, round(PRICE * budget / 2))
    x, has = draw_images(IMAGES, generator(seed, 1))
    torch.manual_seed(seed)
    vae = VAE(VAEConfig((1, SIDE, SIDE), (64,), LATENT, "gaussian", 0.02))
    random = generator(seed, 2)

    def loss() -> Tensor:
        batch = x[torch.randint(len(x), (BATCH,), generator=random)]
        out, kl = vae(batch, torch.randn(BATCH, 1, LATENT, generator=random))
        return (gaussian_error(batch, out[:, 0], 0.02) + kl).mean()

    train(vae, loss, steps, RATE)
    g, d = Generator(GANConfig(NOISE, SIDE**2, 64, 2)), Discriminator(SIDE**2, 64, 2)
    play(g, d, 2 * x.flatten(1) - 1, 2 * steps, seed)
    with torch.no_grad():
        z = torch.randn(IMAGES, NOISE, generator=random)
        generate = lambda z: ((g(z) + 1) / 2).clamp(0, 1).view(-1, 1, SIDE, SIDE)
        found = [judge(vae.decode, vae.features(x), has), judge(generate, z, read_bar(generate(z)))]
    return {"model": ["VAE", "GAN"], **{name: [row[name] for row in found] for name in found[0]}, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    (vae, gan), (vae_edits, gan_edits) = numbers["pattern"], numbers["edited"]
    return {
        "VAE's pattern": vae,
        "GAN's pattern": gan,
        "VAE's edits": vae_edits,
        "GAN's edits": gan_edits,
        "kept": min(numbers["kept"]),
        "spot moved": numbers["spot"][0],
        "jump on a walk": max(numbers["walk"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Cosine and share of edited images."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("pattern", "edited"), strict=True):
        axes.bar(numbers["model"], numbers[name])
        axes.set_title(name, fontsize=10)
        axes.set_ylim(0, 1)
    return fig
