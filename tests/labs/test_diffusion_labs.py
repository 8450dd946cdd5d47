"""Labs of diffusion: what they measure at a glance, their verdicts, and their figures."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch

from descend.data.toys.densities import ring_of_gaussians
from descend.labs import caption_guidance, diffusion_mixture, digit_guidance
from descend.labs._evidence import judge_seed
from tests.close import close

GOOD: dict[str, dict[str, Any]] = {
    "diffusion_mixture": {"steps": 1000, "cosine": [0.99, 0.99, 0.97], "same_end": 0.95, "modes": 5.0, "quality": 0.9},
    "score_sde_flow": {"steps": 1000, "modes": [5.0, 5.0], "quality": [0.9, 0.9], "evaluations": [250, 80],
                       "nll": 0.72, "exact": 0.68, "error": 0.01},
    "digit_guidance": {"steps": 1000, "free_accuracy": [0.1, 0.9, 0.99], "free_diversity": [0.4, 0.25, 0.2],
                       "classifier_accuracy": [0.1, 0.7, 0.9], "classifier_diversity": [0.4, 0.3, 0.25],
                       "accuracy_by_noise": [0.95, 0.9, 0.7, 0.4, 0.1]},
    "few_step_sampling": {"steps": 1000, "distance": [10.0, 9.0, 9.0, 50.0, 0.5], "passes": [1000, 50, 20, 2],
                          "seconds": [0.02, 0.001, 0.0005, 0.0001], "gan_seconds": 1e-5},
    "caption_guidance": {"steps": 1000, "accuracy": [0.9, 0.98], "real": 1.0},
}  # fmt: skip
CASES: list[tuple[str, dict[str, Any], str]] = [
    *((name, {}, "supported") for name in GOOD),
    *((name, {"steps": 10}, "open") for name in GOOD),
    ("diffusion_mixture", {"cosine": [0.5, 0.99, 0.99]}, "refuted"),
    ("diffusion_mixture", {"modes": 4.0}, "refuted"),
    ("diffusion_mixture", {"same_end": 0.5}, "refuted"),
    ("score_sde_flow", {"nll": 0.6}, "refuted"),
    ("score_sde_flow", {"nll": 1.0}, "refuted"),
    ("score_sde_flow", {"evaluations": [250, 200]}, "refuted"),
    ("digit_guidance", {"free_accuracy": [0.1, 0.9, 0.8]}, "refuted"),
    ("digit_guidance", {"classifier_diversity": [0.4, 0.3, 0.35]}, "refuted"),
    ("digit_guidance", {"accuracy_by_noise": [0.95, 0.9, 0.7, 0.6, 0.5]}, "refuted"),
    ("few_step_sampling", {"distance": [10.0, 15.0, 9.0, 50.0, 0.5]}, "refuted"),
    ("few_step_sampling", {"gan_seconds": 0.01}, "refuted"),
    ("caption_guidance", {"accuracy": [0.9, 0.9]}, "refuted"),
    ("caption_guidance", {"real": 0.5}, "open"),
]


@pytest.mark.parametrize(("name", "change", "expected"), CASES)
def test_verdicts(name: str, change: dict[str, Any], expected: str) -> None:
    assert judge_seed(import_module(f"descend.labs.{name}"), {**GOOD[name], **change}) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in GOOD if name != "few_step_sampling"])
def test_numbers_and_figure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = import_module(f"descend.labs.{name}")
    few = {"EACH": 4} if name in ("digit_guidance", "caption_guidance") else {"MADE": 20}
    for field, value in few.items():
        monkeypatch.setattr(lab, field, value)
    torch.set_num_threads(1)
    numbers = lab.measure(seed=0, budget=0.05)
    assert judge_seed(lab, numbers) == "open"
    assert set(GOOD[name]) <= set(numbers)
    assert lab.figure(numbers).axes


def test_passes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = import_module("descend.labs.few_step_sampling")
    monkeypatch.setattr(lab, "MADE", 40)
    numbers = lab.measure(seed=0, budget=0.05)
    assert numbers["passes"] == [1000, 50, 20, 2]
    assert numbers["seconds"][0] > numbers["seconds"][1] > 0
    assert lab.figure(numbers).axes


@pytest.mark.system("denoising-vector-field", "field")
def test_the_exact_field_of_the_mixture_is_the_gradient_of_its_density() -> None:
    data = ring_of_gaussians(5, 1.5, diffusion_mixture.SIGMA)
    mu, noise = data.mixture.mu.double(), diffusion_mixture.PLAN.noise
    x, t = torch.randn(6, 2, dtype=torch.float64, requires_grad=True), torch.full((6,), 60)
    abar = noise.abar()[60]
    variance = abar * diffusion_mixture.SIGMA**2 + 1 - abar
    log_p = (-(x[:, None] - abar.sqrt() * mu).square().sum(-1) / (2 * variance)).logsumexp(1)
    score = torch.autograd.grad(log_p.sum(), x)[0]
    close(diffusion_mixture.exact_noise(mu)(x, t), -score * (1 - abar).sqrt())


@pytest.mark.system("denoising-vector-field", "image-space")
def test_most_of_the_space_is_empty() -> None:
    """Random images are far from digits: farther than digits are from each other."""
    from descend.data.images.digits import load_digits_split

    digits = load_digits_split().train.x.flatten(1)
    random = torch.rand(200, 64, generator=torch.Generator().manual_seed(0))
    apart = torch.cdist(digits[:200], digits[200:]).amin(1)
    assert torch.cdist(random, digits).amin(1).min() > 2 * apart.median()


def test_diversity_does_not_count_contrast() -> None:
    x = torch.rand(10, 64, generator=torch.Generator().manual_seed(0)) - 0.5
    close(digit_guidance.measure_diversity(x), digit_guidance.measure_diversity(0.5 * x))
    assert abs(digit_guidance.measure_diversity(x[:1].repeat(5, 1))) < 1e-5


def test_scenes_are_what_their_captions_say() -> None:
    x, captions, kinds = caption_guidance.draw_scenes(50, torch.Generator().manual_seed(0))
    images = (x.view(50, 3, 8, 8) + 1) / 2
    for image, (color, shape), kind in zip(images, captions.tolist(), kinds.tolist(), strict=True):
        assert image.sum((1, 2)).argmax() == color - 1
        assert image.sum() == torch.tensor(caption_guidance.SHAPES[shape - 4]).sum()
        assert kind == 3 * (color - 1) + shape - 4
