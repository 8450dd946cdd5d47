"""The labs on energies and scores: a short run of each, its figure, and what its verdict follows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch

from descend.labs import (
    annealed_levels,
    autoencoder_energies,
    direct_generator,
    energy_collapse,
    energy_descent,
    generative_classifiers,
    noise_levels,
    persistent_chains,
)
from descend.labs._evidence import judge_seed
from descend.models.score_network import ScoreNetworkConfig
from tests.close import close

SHORT = {
    "autoencoder_energies": (0.02, 3),
    "direct_generator": (0.05, 3),
    "energy_collapse": (0.1, 3),
    "energy_descent": (0.05, 1),
    "generative_classifiers": (0.1, 2),
    "langevin_modes": (0.05, 2),
    "noise_levels": (0.05, 1),
    "persistent_chains": (0.1, 3),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_short_run_says_nothing_yet(name: str) -> None:
    lab = import_module(f"descend.labs.{name}")
    budget, panels = SHORT[name]
    numbers = lab.measure(seed=0, budget=budget)
    assert judge_seed(lab, numbers) == "open"
    assert len(lab.figure(numbers).axes) == panels


def test_the_levels_are_sampled_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealed_levels, "POINTS", 50)
    monkeypatch.setattr(annealed_levels, "CONFIG", ScoreNetworkConfig(levels=3, steps=2, width=8))
    numbers = annealed_levels.measure(seed=0, budget=0.05)
    assert judge_seed(annealed_levels, numbers) == "open"
    assert len(numbers["annealed"]) == 2
    assert len(annealed_levels.figure(numbers).axes) == 2


GOOD: dict[str, dict[str, Any]] = {
    "direct_generator": {"steps": 400, "mean": [2.0] * 3, "std": [0.5] * 3, "first": [5.0] * 3, "last": [0.01] * 3},
    "generative_classifiers": {
        "repeats": 10, "generative_right": [0.92], "discriminative_right": [0.90],
        "generative_wrong": [0.96], "discriminative_wrong": [0.98],
    },
    "energy_collapse": {
        "steps": 300, "spread": [0.02, 0.9, 0.9, 0.9], "gap_alone": 0.0, "gap_contrast": 5.0,
        "narrow_code": [10.0, 30.0], "full_code": [0.0, 0.1],
    },
    "energy_descent": {"steps": 600, "near": 1.0, "largest_rise": 0.0, "answers": [-0.8, 0.8]},
    "langevin_modes": {
        "steps": 600, "true": 0.63, "ascent_spread": [0.0, 0.0], "langevin_spread": [0.63, 0.6],
        "ascent_share": 0.5, "langevin_share": 0.5,
    },
    "persistent_chains": {"steps": 1200, "excess": [2.0, 0.2, 0.15], "plane": [0.02, 0.05]},
    "autoencoder_energies": {"steps": 600, "below": [0.9] * 3, "data": [0.0] * 3, "elsewhere": [1.0] * 3},
    "noise_levels": {
        "steps": 800, "error": [0.01] * 6, "image_error": [0.2] * 5, "single_near": 0.02, "single_far": 0.5,
    },
    "annealed_levels": {"steps": 5000, "share": 0.2, "annealed": [0.21, 0.19], "plain": [0.45, 0.5]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("direct_generator", {"std": [0.5, 0.2, 0.5]}),
        ("direct_generator", {"last": [0.01, 0.01, 4.0]}),
        ("generative_classifiers", {"generative_right": [0.90]}),
        ("generative_classifiers", {"generative_wrong": [0.98]}),
        ("energy_collapse", {"spread": [0.9, 0.9, 0.9, 0.9]}),
        ("energy_collapse", {"spread": [0.02, 0.9, 0.01, 0.9]}),
        ("energy_collapse", {"full_code": [0.0, 20.0]}),
        ("energy_collapse", {"gap_contrast": 0.1}),
        ("energy_descent", {"answers": [0.8]}),
        ("energy_descent", {"largest_rise": 0.1}),
        ("energy_descent", {"near": 0.5}),
        ("langevin_modes", {"ascent_spread": [0.6, 0.0]}),
        ("langevin_modes", {"langevin_spread": [0.63, 0.1]}),
        ("persistent_chains", {"excess": [0.2, 0.2, 0.15]}),
        ("persistent_chains", {"plane": [0.02, 0.5]}),
        ("autoencoder_energies", {"below": [0.9, 0.9, 0.6]}),
        ("noise_levels", {"image_error": [0.2, 0.5]}),
        ("noise_levels", {"single_far": 0.15}),
        ("annealed_levels", {"annealed": [0.21, 0.25]}),
        ("annealed_levels", {"plain": [0.45, 0.21]}),
    ],
)
def test_verdicts(name: str, change: dict[str, Any]) -> None:
    lab = import_module(f"descend.labs.{name}")
    assert judge_seed(lab, GOOD[name]) == "supported"
    assert judge_seed(lab, {**GOOD[name], **change}) == "refuted"
    assert judge_seed(lab, {**GOOD[name], "steps": 1, "repeats": 1}) == "open"


def test_the_two_modes_of_bits() -> None:
    states, p = persistent_chains.list_bits()
    close(p.sum(), torch.tensor(1.0))
    assert states.shape == (4096, 12)
    assert sorted(p.topk(2).indices.tolist()) == [0, 4095]


def test_what_is_drawn() -> None:
    random = torch.Generator().manual_seed(0)
    x, y = generative_classifiers.draw_exponentials(20_000, random)
    assert abs(float(x[y == 1].mean()) - 2.5) < 0.02
    ring = energy_descent.draw_ring(1000, random)
    assert abs(float(ring.norm(dim=1).mean()) - 1) < 0.02
    assert energy_collapse.SWITCHES[0] == "none"
    assert noise_levels.relative(torch.ones(3, 2), torch.ones(3, 2)) == 0
    assert direct_generator.DISTANCES.keys() == {"moments", "kl", "total variation"}
    assert autoencoder_energies.draw_curve(5, random).shape == (5, 2)
