"""Guidance on digits: a larger γ gives clearer samples of the class that is asked for, and fewer kinds of them.

    model        a perceptron that denoises 8 × 8 digits (v), told t and the class, which is hidden for 15% of examples
    free         u + γ (c − u) of its predictions without and with the class
    classifier   ε − γ √(1 − ᾱ) ∇ log p(y | x_t): the predictions without the class, and a classifier of noisy digits
    judged by    a reader of clean digits that has seen neither: the share of samples read as the class asked for
    diversity    1 − mean cosine of two samples of a class, each without its mean: contrast, which guidance raises, is
                 not counted

The classifier's accuracy on held-out digits is measured at rising noise: from that of a good reader to that of a guess.

Systems: classifier-free-guidance, classifier-guidance
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.images.digits import load_digits_split
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._train import train
from descend.labs.digit_gan import Reader, train_reader
from descend.losses.classification import cross_entropy
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.models.noise_classifier import NoiseClassifier, NoiseClassifierConfig
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.denoiser import Predict, classifier_guidance, free_guidance
from descend.sampling.diffusion.samplers import draw
from descend.tasks.classify_noisy import ClassifyNoisy
from descend.tasks.denoise import Denoise, draw_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.134", "DLN-C.135", "DLN-C.136")
PRINTED = (
    "γ = 0 is unconditional, 1 conditional, larger γ sharpened: more alignment, less diversity; the"
    " classifier of x_t is trained at all noise levels."
)
CLAIM = "Guidance raises the share of samples that show the class asked for, and lowers their diversity."
PREDICTIONS = (
    AtMost("chance at γ = 0", 0.3, "Accuracy without guidance, the larger of both kinds."),
    AtLeast(
        "rises with γ",
        1,
        "How many of both kinds rise from 0 over 1 to 3 (or stay above 0.95), while diversity falls each"
        " time, as a share.",
    ),
    AtLeast("free at γ = 3", 0.95, "Accuracy of classifier-free guidance with γ = 3."),
    AtLeast("classifier when clean", 0.9, "The noisy classifier's accuracy without noise."),
    AtMost("classifier in noise", 0.25, "Its accuracy at the last noise level."),
    AtMost(
        "rise in noise",
        0.02,
        "The largest rise of its accuracy from one noise level to the next.",
    ),
)
SCOPE = "Digits of 8×8 pixels, γ of 0, 1 and 3, a reader that has seen neither network."
PIXELS, NONE, DROP = 64, 10, 0.15
PLAN = Plan(NoiseSchedule("cosine", 100), "v", method="ddim", steps=25)
BATCH, RATE, EACH = 128, 2e-3, 40
GAMMAS = (0.0, 1.0, 3.0)
LEVELS = (0, 25, 50, 75, 99)
BUDGET = 15.0
PRICE = 80  # steps of the denoiser that a second of one core buys, with those of the classifier
LEAST = 800


def fit_denoiser(x: Tensor, y: Tensor, steps: int, seed: int) -> DenoiserMLP:
    """The conditional denoiser."""
    torch.manual_seed(seed)
    model = DenoiserMLP(DenoiserConfig(inputs=PIXELS, width=256, depth=4, classes=NONE + 1, plan=PLAN))
    task, random = Denoise(model, PLAN.noise, PLAN.predicts, none=NONE), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return task.losses({"x": x[rows], "y": y[rows], **draw_noise((PIXELS,), BATCH, random, DROP)}).mean()

    train(model, loss, steps, RATE)
    return model.eval()


def fit_classifier(x: Tensor, y: Tensor, steps: int, seed: int) -> NoiseClassifier:
    """The classifier of noisy digits."""
    torch.manual_seed(seed)
    model = NoiseClassifier(NoiseClassifierConfig(image=(1, 8, 8), width=128, depth=3, plan=PLAN))
    task, random = ClassifyNoisy(model, PLAN.noise), torch.Generator().manual_seed(seed + 1)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        batch = {"x": x[rows].view(-1, 1, 8, 8), **draw_noise((1, 8, 8), BATCH, random)}
        return cross_entropy(task.logits(batch), y[rows]).mean()

    train(model, loss, steps, RATE)
    return model.eval()


@torch.no_grad()
def accuracy_by_noise(classifier: NoiseClassifier, x: Tensor, y: Tensor, seed: int) -> list[float]:
    """On held-out digits, at rising noise."""
    eps = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    found = []
    for t in LEVELS:
        times = torch.full((len(x),), t)
        noisy = add_noise(x, eps, PLAN.noise.at(times, x))
        found.append(float((classifier(noisy, times).argmax(1) == y).float().mean()))
    return found


def judge(reader: Reader, predict: Predict, y: Tensor, seed: int) -> tuple[float, float, Tensor]:
    """Accuracy and diversity of samples, and the samples."""
    start = torch.randn(len(y), PIXELS, generator=torch.Generator().manual_seed(seed))
    made = draw(predict, start, PLAN, lambda: start)
    with torch.no_grad():
        right = float((reader(made).argmax(1) == y).float().mean())
    return right, sum(measure_diversity(made[y == k]) for k in range(10)) / 10, made


def measure_diversity(x: Tensor) -> float:
    """1 − mean cosine of different images."""
    x = torch.nn.functional.normalize(x.clamp(-1, 1) - x.clamp(-1, 1).mean(1, keepdim=True), dim=1)
    n = len(x)
    return 1 - float((x @ x.T).sum() - n) / (n * (n - 1))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Both guidances at each γ."""
    steps = max(2, round(PRICE * budget))
    digits = load_digits_split(valid=0.3)
    x, held_out = (2 * part.x.flatten(1) - 1 for part in (digits.train, digits.valid))
    model = fit_denoiser(x, digits.train.y, steps, seed)
    classifier = fit_classifier(x, digits.train.y, max(2, steps // 2), seed)
    reader = train_reader(x, digits.train.y, seed)
    y = torch.arange(10).repeat_interleave(EACH)
    none = torch.full_like(y, NONE)
    look: Predict = lambda z, t: classifier(z.view(-1, 1, 8, 8), t)
    plain: Predict = lambda z, t: model(z, t, none)
    free = [judge(reader, free_guidance(model, y, none, g), y, seed + 1000) for g in GAMMAS]
    steer = lambda g: classifier_guidance(plain, look, y, g, PLAN.noise, PLAN.predicts)
    guided = [judge(reader, steer(g), y, seed + 1000) for g in GAMMAS]
    by_noise = accuracy_by_noise(classifier, held_out.view(-1, 1, 8, 8), digits.valid.y, seed)
    return {
        "steps": steps,
        "gamma": list(GAMMAS),
        "free_accuracy": [found[0] for found in free],
        "free_diversity": [found[1] for found in free],
        "classifier_accuracy": [found[0] for found in guided],
        "classifier_diversity": [found[1] for found in guided],
        "noise": list(LEVELS),
        "accuracy_by_noise": by_noise,
        "samples": [found[2][::EACH].tolist() for found in free],
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    kinds, noisy = ("free", "classifier"), numbers["accuracy_by_noise"]
    rises = [follows(numbers[f"{kind}_accuracy"], numbers[f"{kind}_diversity"]) for kind in kinds]
    return {
        "chance at γ = 0": max(numbers[f"{kind}_accuracy"][0] for kind in kinds),
        "rises with γ": sum(rises) / len(rises),
        "free at γ = 3": numbers["free_accuracy"][2],
        "classifier when clean": noisy[0],
        "classifier in noise": noisy[-1],
        "rise in noise": max(b - a for a, b in pairwise(noisy)),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def follows(accuracy: list[float], diversity: list[float]) -> bool:
    """Whether more guidance means more accuracy and less diversity."""
    none, plain, strong = accuracy
    return none <= 0.3 and none < plain <= max(strong, 0.95) and diversity[0] > diversity[1] > diversity[2]


def figure(numbers: dict[str, Any]) -> Figure:
    """A sample of each class for each γ of free guidance."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 2.6), layout="constrained")
    for row, images, gamma in zip(fig.subplots(3, 10), numbers["samples"], numbers["gamma"], strict=True):
        for axes, image in zip(row, images, strict=True):
            axes.imshow(torch.tensor(image).view(8, 8).numpy(), cmap="gray_r", vmin=-1, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_ylabel(f"γ = {gamma:g}", fontsize=9)
    return fig
