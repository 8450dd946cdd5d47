"""Small energies, Boltzmann machines and score networks with a batch of eight for the contract of tasks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models import energy_network, rbm, score_network
from descend.tasks import boltzmann, denoising_scores, energy

B, CHAINS = 8, 16


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def uniform(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def no_z(energy: object) -> Tensor:
    return torch.zeros(())


def divergence_case() -> tuple[Task, Batch]:
    model = energy_network.EnergyNetwork(energy_network.TINY)
    task = energy.ContrastiveDivergence(model, no_z, 0.05, 0.1)
    return task, {"x": numbers(B, 2), "noise": numbers(B, 3, 2)}


def persistent_case() -> tuple[Task, Batch]:
    model = energy_network.EnergyNetwork(energy_network.TINY)
    task = energy.PersistentDivergence(model, no_z, 0.05, 0.1, torch.randn(CHAINS, 2))
    chains = {"chain": torch.randperm(CHAINS)[:B], "anew": torch.arange(B) % 3 == 0, "fresh": numbers(B, 2)}
    return task, {"x": numbers(B, 2), "noise": numbers(B, 3, 2), **chains}


def noise_contrast_case() -> tuple[Task, Batch]:
    model = energy_network.NormalisedEnergyNetwork(energy_network.TINY)
    task = energy.NoiseContrastive(model, no_z, torch.zeros(2), torch.full((2,), 1.5))
    return task, {"x": numbers(B, 2), "noise": numbers(B, 2)}


def boltzmann_case(kind: Callable[..., Task]) -> tuple[Task, Batch]:
    batch = {"x": uniform(B, 1, 2, 3), "for_hidden": uniform(B, 2, 4), "for_visible": uniform(B, 2, 6)}
    return kind(rbm.RBM(rbm.TINY)), {**batch, "chain": torch.randperm(CHAINS)[:B]}


def denoising_case() -> tuple[Task, Batch]:
    task = denoising_scores.DenoisingScores(score_network.ScoreNetwork(score_network.TINY))
    return task, {"x": numbers(B, 2), "noise": numbers(B, 2), "level": torch.arange(B) % 2}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "BoltzmannDivergence": lambda: boltzmann_case(boltzmann.BoltzmannDivergence),
    "ContrastiveDivergence": divergence_case,
    "DenoisingScores": denoising_case,
    "NoiseContrastive": noise_contrast_case,
    "PersistentBoltzmann": lambda: boltzmann_case(
        lambda m: boltzmann.PersistentBoltzmann(m, (torch.rand(CHAINS, 6) < 0.5).float())
    ),
    "PersistentDivergence": persistent_case,
}
