"""The latent space of an autoencoder has holes; that of a VAE has not: prior samples are decoded and compared.

    autoencoder      z = μ(x)                     only reconstruction
    without KL       z = μ(x) + σ(x) ε            only reconstruction: nothing keeps σ from 0 or the means together
    VAE              the same, and the KL to N(0, I)

    distance     of decoded z ~ N(0, I) from the nearest real image; beside it that of held-out real images
    coverage     share of z ~ N(0, I) inside two standard deviations of some q(z|x_i)             (completeness)
    roughness    change of the decoded image per latent step, around z ~ N(0, I)                  (continuity)
    walk         largest over mean step of images between two codes
    spread       mean σ of the codes, in units of the spread of their means, at the start and at the end
    error        ‖x − x̂‖² of held-out images

Systems: irregular-latent-space
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.losses.reconstruction import squared_error
from descend.losses.variational import gaussian_error
from descend.metrics.latent_space import nearest_distance, prior_coverage, roughness, walk_evenness
from descend.models.vae import VAE, VAEConfig
from descend.ops.latent import interpolate
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.56", "DLN-C.57", "S940-DLD.98")
PRINTED = (
    "An autoencoder trained on reconstruction alone leaves a scattered latent space, where random"
    " points decode to nonsense; the KL keeps codes near N(0, I), at a price in reconstruction."
)
CLAIM = "Codes drawn at random decode to images near real ones for a VAE, and not for an autoencoder without the KL."
PREDICTIONS = (
    Below(
        "distance of VAE",
        1,
        "Distance of the VAE's samples from real images over the lesser of both others'.",
    ),
    Below("roughness of VAE", 1, "Roughness of its decoder over the lesser of both others'."),
    Above("coverage", 0.3, "Share of N(0, I) that its codes cover."),
    Above("coverage over no KL", 10, "The same over the share without the KL."),
    Below(
        "spread without KL",
        0.05,
        "Mean σ of the codes without the KL, in units of the spread of their means.",
    ),
    Above("spread at start", 0.05, "The same before training: it fell."),
    Above("spread with KL", 0.15, "The same with the KL."),
)
SCOPE = "Digits of 8×8, codes of four numbers, one hidden layer."
WAYS = {"autoencoder": (0.0, 0.0), "without KL": (1.0, 0.0), "VAE": (1.0, 1.0)}  # weights of the noise and of the KL
CONFIG = VAEConfig(image=(1, 8, 8), hidden=(64,), latent=4, decoder="gaussian", variance=0.03)
BATCH, RATE, DRAWN, WALKS, LEAST = 64, 8e-3, 500, 8, 150
BUDGET = 6.0
PRICE = 250  # steps of each of the three that a second of one core buys


def train_model(x: Tensor, noise: float, beta: float, steps: int, seed: int) -> VAE:
    """A VAE whose noise and KL are weighted."""
    torch.manual_seed(seed)
    model, random = VAE(CONFIG), generator(seed)

    def loss() -> Tensor:
        batch = x[torch.randint(len(x), (BATCH,), generator=random)]
        out, kl = model(batch, noise * torch.randn(BATCH, 1, CONFIG.latent, generator=random))
        return (gaussian_error(batch, out[:, 0], CONFIG.variance) + beta * kl).mean()

    train(model, loss, steps, RATE)
    return model.eval()


@torch.no_grad()
def look(model: VAE, real: Tensor, held_out: Tensor, seed: int) -> dict[str, float]:
    """All measures of one model."""
    random = generator(seed, 1)
    z = torch.randn(DRAWN, CONFIG.latent, generator=random)
    mu, log_var = model.encode(held_out)
    path = interpolate(mu[:WALKS], mu[WALKS : 2 * WALKS], 11)
    walks = model.decode(path)
    return {
        "distance": float(nearest_distance(model.decode(z), real).mean()),
        "coverage": float(prior_coverage(z, *model.encode(real[:500]))),
        "roughness": float(roughness(model.decode, z, 0.05 * torch.randn(z.shape, generator=random))),
        "walk": float(torch.stack([walk_evenness(walks[:, i]) for i in range(WALKS)]).mean()),
        "spread": float(((log_var / 2).exp() / mu.std(0)).mean()),
        "sigma": float((log_var / 2).exp().mean()),
        "error": float(squared_error(held_out, model.reconstruct(held_out)).mean()),
    }


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The measures of the three, and those of real images."""
    steps = max(5, round(PRICE * budget / 3))
    digits = load_digits_split()
    x, held_out = digits.train.x.float(), digits.valid.x.float()
    found = [look(train_model(x, *way, steps, seed), x, held_out, seed) for way in WAYS.values()]
    start = look(train_model(x, *WAYS["VAE"], 1, seed), x, held_out, seed)
    columns = {name: [row[name] for row in found] for name in found[0]}
    usual = float(nearest_distance(held_out, x).mean())
    return {"model": list(WAYS), **columns, "start_spread": start["spread"], "real": usual, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    plain, without, vae = numbers["distance"]
    return {
        "distance of VAE": vae / min(plain, without),
        "roughness of VAE": numbers["roughness"][2] / min(numbers["roughness"][:2]),
        "coverage": numbers["coverage"][2],
        "coverage over no KL": numbers["coverage"][2] / max(numbers["coverage"][1], 1e-6),
        "spread without KL": numbers["spread"][1],
        "spread at start": numbers["start_spread"],
        "spread with KL": numbers["spread"][2],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Distances and coverage, a bar each."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, name in zip(fig.subplots(1, 3), ("distance", "coverage", "error"), strict=True):
        axes.bar(numbers["model"], numbers[name])
        axes.set_title(name, fontsize=10)
        axes.tick_params(axis="x", rotation=20, labelsize=8)
    return fig
