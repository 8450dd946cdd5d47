"""New images from a VQ-VAE: tokens must be drawn together, by an autoregressive prior, not one by one.

    digits 8 × 8 -> 4 × 4 tokens of 32;  a small transformer learns p(i_1 .. i_16) = Π p(i_n | i_1 .. i_{n−1})
    prior        tokens drawn from the transformer
    frequencies  each token drawn alone, as often as it occurs at its place
    any          each token with the same probability

    distance     of the decoded images from the nearest real one; beside it that of held-out images
    bits         −log₂ p of held-out tokens, a token, by the transformer and by frequencies at each place
    in use       perplexity of the tokens

Systems: vq-vae
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import one_hot

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import Above, AtLeast
from descend.labs._token_stages import train_stages
from descend.losses.quantization import usage
from descend.metrics.latent_space import nearest_distance
from descend.models.dalle import DalleConfig
from descend.models.vq_vae import VQVAEConfig
from descend.seeds import generator
from descend.tasks.visual_tokens import VisualTokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.71",)
PRINTED = "A VQ-VAE's discrete tokens are combined with autoregressive transformers (no number)."
CLAIM = "Images of tokens drawn by an autoregressive prior are nearer to real ones than images of independent tokens."
PREDICTIONS = (
    Above(
        "nearer than alone",
        0,
        "Distance from real images of tokens drawn one by one, less that of the prior's.",
    ),
    Above(
        "nearer than any",
        0,
        "Distance of tokens of equal probability, less that of tokens drawn one by one.",
    ),
    Above("bits saved", 0, "Bits a token by frequencies less those by the transformer."),
    AtLeast("in use", 8, "Perplexity of the tokens: at least a quarter of the codebook."),
)
SCOPE = "8×8 digits, 16 tokens of 32, a transformer of width 48."
CONFIG = DalleConfig(VQVAEConfig((1, 8, 8), 16, 1, 1, 32, 6), words=1, caption=1, width=48, depth=2, heads=4, top_k=32)
DRAWN, LEAST = 200, 300
BUDGET = 6.0
PRICE = 120  # steps of the transformer, after half as many of the VQ-VAE, that a second of one core buys


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Distances of three ways to draw tokens, and how well held-out tokens are predicted."""
    steps = max(4, round(PRICE * budget))
    digits = load_digits_split()
    x, held_out = digits.train.x.float() * 2 - 1, digits.valid.x.float() * 2 - 1
    with torch.enable_grad():
        model = train_stages(CONFIG, torch.zeros(len(x), 1, dtype=torch.long), x, (steps // 2, steps), seed)
    random, vocab = generator(seed, 2), CONFIG.codes.vocab
    tokens = model.codes.tokens(x)
    shares = one_hot(tokens, vocab).double().mean(0)
    start = torch.zeros(DRAWN, 1, dtype=torch.long)
    drawn = {
        "prior": model.draw_images(start, torch.rand(DRAWN, CONFIG.places, generator=random)),
        "frequencies": torch.multinomial(shares.view(-1, vocab), DRAWN, True, generator=random).T.view(-1, 4, 4),
        "any": torch.randint(vocab, (DRAWN, 4, 4), generator=random),
    }
    truth = model.codes.tokens(held_out)
    alone = -(shares + 1e-3).log2()[torch.arange(4)[:, None], torch.arange(4), truth].mean()
    return {
        "way": list(drawn),
        "distance": [float(nearest_distance(model.codes.from_tokens(t), x).mean()) / 2 for t in drawn.values()],
        "real": float(nearest_distance(held_out, x).mean()) / 2,
        "bits": [float(VisualTokens(model).score({"x": held_out})["image_loss"].mean()) / math.log(2), float(alone)],
        "in_use": float(usage(truth, vocab)),
        "steps": steps,
        "images": ((model.codes.from_tokens(drawn["prior"][:20]).clamp(-1, 1) + 1) / 2).flatten(1).tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    prior, alone, any_token = numbers["distance"]
    return {
        "nearer than alone": alone - prior,
        "nearer than any": any_token - alone,
        "bits saved": numbers["bits"][1] - numbers["bits"][0],
        "in use": numbers["in_use"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Twenty images of the prior."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3), layout="constrained")
    for axes, image in zip(fig.subplots(2, 10).flat, numbers["images"], strict=True):
        axes.imshow(torch.tensor(image).view(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set_axis_off()
    return fig
