"""A small GLIDE: images from captions, which they follow more closely with guidance.

    images      8 × 8 in colour: a red, green or blue frame, plus or cross at one of four places on black
    captions    "red frame": two words, each with a vector of its own; their sum is added to that of the time. The empty
                caption takes the place of 15% of them
    guidance    u + γ (c − u) with γ = 1 and γ = 3; u is the prediction for the empty caption
    judged by   a classifier of the nine kinds, trained on clean images: the share of samples that show their caption

GLIDE itself is named only in DLN-C.137 (a panda of stained glass at γ = 1 and 3); this is its experiment at toy scale.

Systems: classifier-free-guidance
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.denoiser_mlp import WAVES
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.denoiser import free_guidance
from descend.sampling.diffusion.samplers import draw
from descend.tasks.denoise import Denoise, draw_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.137",)
PRINTED = "GLIDE (named only): higher guidance gives sharper, better aligned images."
CLAIM = "Images made from captions show what their captions say more often with guidance 3 than with guidance 1."
PREDICTIONS = (
    AtLeast("gain by guidance", 0.02, "Accuracy at γ = 3 less that at γ = 1; none refutes the claim."),
    AtLeast("guided accuracy", 0.8, "The share of samples at γ = 3 that show their caption."),
)
CONTROLS = (
    AtLeast(
        "judge on real images",
        0.95,
        "The judge's accuracy on real images: a bad judge tells nothing.",
    ),
)
SCOPE = "Nine kinds of images of 8×8 pixels, captions of two words, γ of 1 and 3."
WORDS = ("", "red", "green", "blue", "frame", "plus", "cross")
SHAPES = ([[1, 1, 1], [1, 0, 1], [1, 1, 1]], [[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
SIDE, NUMBERS, WIDTH = 8, 192, 192
PLAN = Plan(NoiseSchedule("cosine", 100), "v", method="ddpm", clip=1.0)
BATCH, RATE, EACH, DROP = 128, 2e-3, 60, 0.15
GAMMAS = (1.0, 3.0)
BUDGET = 6.0
PRICE = 110
LEAST = 400


def draw_scenes(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 192) in −1..1, their captions as numbers of words (n, 2), and which of the nine kinds they are (n)."""
    color, shape = (torch.randint(3, (n,), generator=random) for _ in range(2))
    at = 1 + 3 * torch.randint(2, (n, 2), generator=random)
    stamps = torch.tensor(SHAPES, dtype=torch.float32)[shape]
    images = torch.zeros(n, 3, SIDE, SIDE)
    rows = (at[:, :1] + torch.arange(3))[:, :, None].expand(n, 3, 3)
    columns = (at[:, 1:] + torch.arange(3))[:, None, :].expand(n, 3, 3)
    images[torch.arange(n)[:, None, None], color[:, None, None], rows, columns] = stamps
    return 2 * images.flatten(1) - 1, torch.stack([1 + color, 4 + shape], 1), 3 * color + shape


class CaptionDenoiser(nn.Module):
    """images (b, 192), times (b), captions (b, 2) -> v (b, 192)"""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.time = nn.Linear(NUMBERS, WIDTH), TimeEmbedding(WAVES, WIDTH)
        self.words = nn.Embedding(len(WORDS), WIDTH, padding_idx=0)
        self.hidden, self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3)), nn.Linear(WIDTH, NUMBERS)

    def forward(self, x: Tensor, t: Tensor, caption: Tensor) -> Tensor:
        h = self.first(x) + self.time(embed_time(10 * t, WAVES)) + self.words(caption).sum(1)
        h = nn.functional.silu(h)
        for layer in self.hidden:
            h = h + nn.functional.silu(layer(h))
        v: Tensor = self.out(h)
        return v


def fit_denoiser(steps: int, seed: int) -> CaptionDenoiser:
    torch.manual_seed(seed)
    model, random = CaptionDenoiser(), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x, caption, _ = draw_scenes(BATCH, random)
        drawn = draw_noise((NUMBERS,), BATCH, random, DROP)
        seen = caption.masked_fill(drawn["drop"][:, None], 0)
        told = Denoise(_Told(model, seen), PLAN.noise, PLAN.predicts)
        return told.losses({"x": x, **drawn}).mean()

    train(model, loss, steps, RATE)
    return model.eval()


class _Told(nn.Module):
    """The network with its captions."""

    def __init__(self, model: CaptionDenoiser, captions: Tensor):
        super().__init__()
        self.model, self.captions = model, captions

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        v: Tensor = self.model(x, t, self.captions)
        return v


def fit_judge(seed: int) -> nn.Module:
    """A classifier of the nine kinds."""
    torch.manual_seed(seed)
    judge, random = nn.Sequential(nn.Linear(NUMBERS, 128), nn.ReLU(), nn.Linear(128, 9)), torch.Generator()
    random.manual_seed(seed)

    def loss() -> Tensor:
        x, _, y = draw_scenes(BATCH, random)
        return cross_entropy(judge(x + 0.2 * torch.randn(x.shape, generator=random)), y).mean()

    train(judge, loss, 400, 5e-3)
    return judge.eval()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of captions at each γ."""
    steps = max(2, round(PRICE * budget))
    model, judge = fit_denoiser(steps, seed), fit_judge(seed)
    x, _, y = draw_scenes(1000, torch.Generator().manual_seed(seed + 1))
    kinds = torch.arange(9).repeat_interleave(EACH)
    captions = torch.stack([1 + kinds // 3, 4 + kinds % 3], 1)
    start = torch.randn(len(kinds), NUMBERS, generator=torch.Generator().manual_seed(seed + 1000))
    random = torch.Generator().manual_seed(seed + 2000)
    noise = lambda: torch.randn(start.shape, generator=random)
    none = torch.zeros_like(captions)
    made = [draw(free_guidance(model, captions, none, g), start, PLAN, noise) for g in GAMMAS]
    with torch.no_grad():
        right = [float((judge(images.clamp(-1, 1)).argmax(1) == kinds).float().mean()) for images in made]
        real = float((judge(x).argmax(1) == y).float().mean())
    shown = [((images[::EACH].view(9, 3, SIDE, SIDE) + 1) / 2).clamp(0, 1).tolist() for images in made]
    return {"steps": steps, "gamma": list(GAMMAS), "accuracy": right, "real": real, "samples": shown}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    plain, guided = numbers["accuracy"]
    return {"gain by guidance": guided - plain, "guided accuracy": guided, "judge on real images": numbers["real"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """A sample of each caption."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 2.4), layout="constrained")
    for row, images, gamma in zip(fig.subplots(2, 9), numbers["samples"], numbers["gamma"], strict=True):
        for kind, (axes, image) in enumerate(zip(row, images, strict=True)):
            axes.imshow(torch.tensor(image).movedim(0, -1).numpy())
            axes.set_title(f"{WORDS[1 + kind // 3]} {WORDS[4 + kind % 3]}", fontsize=7)
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_ylabel(f"γ = {gamma:g}", fontsize=8)
    return fig
