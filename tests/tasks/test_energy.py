"""Contrastive divergence, persistent chains and noise contrast as tasks: what moves, what stays, what is state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from descend import recipes
from descend.contracts import JointMove, Loss
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.losses.energy import noise_contrastive_loss
from descend.models.energy_network import TINY, EnergyNetwork, NormalisedEnergyNetwork
from descend.ops.energy.score import score_of_energy
from descend.sampling.langevin import langevin
from descend.seeds import generator
from descend.tasks.energy import ContrastiveDivergence, NoiseContrastive, PersistentDivergence
from tests.close import close
from tests.recipes.test_contract import through_json
from tests.tasks.cases import make

DOUBLE = torch.float64
NO_Z: Callable[..., Tensor] = lambda energy: torch.zeros((), dtype=DOUBLE)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=DOUBLE)


def network() -> EnergyNetwork:
    torch.manual_seed(0)
    return EnergyNetwork(TINY).double()


@pytest.mark.system("contrastive-divergence")
@pytest.mark.system("contrastive-divergence", "chain")
@pytest.mark.parametrize("k", [1, 4])
def test_negatives_are_k_steps_from_the_data_and_constants(k: int) -> None:
    model, x, noise = network(), normal(8, 2), normal(8, k, 2, seed=1)
    task = ContrastiveDivergence(model, NO_Z, eta=0.05, size=0.1)
    [move] = task.moves({"x": x, "noise": noise})
    found = move.value()
    negatives = langevin(score_of_energy(model), x, noise.unbind(1), 0.05)
    plus, minus = model(x), model(negatives.detach())
    close(found.terms["contrast"], plus.mean() - minus.mean())
    close(found.terms["size"], 0.1 * (plus.square().mean() + minus.square().mean()))
    close(found.told["data_energy"] - found.told["sample_energy"], found.terms["contrast"])
    weights = list(model.parameters())
    ours = torch.autograd.grad(found.terms["contrast"], weights)
    theirs = torch.autograd.grad(plus.mean() - minus.mean(), weights)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    assert (
        "size" not in next(iter(ContrastiveDivergence(model, NO_Z, 0.05).moves({"x": x, "noise": noise}))).value().terms
    )


def persistent(chains: Tensor) -> PersistentDivergence:
    return PersistentDivergence(network(), NO_Z, 0.05, 0.0, chains)


def batch(anew: bool = False) -> dict[str, Tensor]:
    return {
        "x": normal(4, 2, seed=2),
        "noise": normal(4, 3, 2, seed=3),
        "chain": torch.tensor([5, 0, 9, 2]),
        "anew": torch.tensor([anew, False, False, anew]),
        "fresh": normal(4, 2, seed=4),
    }


def take(task: PersistentDivergence, given: dict[str, Tensor]) -> Loss:
    """One turn of the task, without a step of the model."""
    moves = task.moves(given)
    move = next(moves)
    assert isinstance(move, JointMove)
    found = move.value()
    assert next(moves, None) is None
    return found


@pytest.mark.system("persistent-contrastive-divergence")
@pytest.mark.system("persistent-contrastive-divergence", "buffer")
def test_only_the_chains_of_the_batch_move_and_only_by_langevin_steps() -> None:
    start, given = normal(12, 2, seed=5), batch()
    task = persistent(start)
    found = take(task, given)
    walked = langevin(score_of_energy(task.model), start[given["chain"]], given["noise"].unbind(1), 0.05)
    close(task.chains[given["chain"]], walked)
    rest = [i for i in range(12) if i not in given["chain"].tolist()]
    assert torch.equal(task.chains[rest], start[rest])
    close(found.terms["contrast"], task.model(given["x"]).mean() - task.model(walked).mean())
    assert "chains" in task.state_dict()


@pytest.mark.system("persistent-contrastive-divergence", "anew")
def test_chains_that_begin_anew_start_from_noise() -> None:
    start, given = normal(12, 2, seed=5), batch(anew=True)
    task = persistent(start)
    take(task, given)
    begin = torch.stack([given["fresh"][0], start[0], start[9], given["fresh"][3]])
    close(task.chains[given["chain"]], langevin(score_of_energy(task.model), begin, given["noise"].unbind(1), 0.05))


@pytest.mark.system("persistent-contrastive-divergence", "resume", "anew")
def test_a_resumed_run_goes_on_with_its_chains() -> None:
    """Three steps, saved, two more; the run that is resumed has the same weights and the same chains, bit for bit."""
    torch.set_num_threads(1)
    recipe: Any = recipes.get("ebm-moons")
    small = replace(recipe.divergence, chains=32, anew=0.3, steps=3)
    recipe = replace(recipe, divergence=small, loop=replace(recipe.loop, batch=16, ema=0.0))

    def start() -> Training:
        return Training(recipe.build(), recipe.loop, recipe.schedule, World())

    run = start()
    before = run.task.state_dict()["chains"].clone()
    for _ in range(3):
        run.advance()
    state = through_json(run.state_dict())
    assert (state["task"]["chains"] != before).any(1).all(), "every chain has moved"
    last = [run.advance() for _ in range(2)]
    again = start()
    again.load_state_dict(state)
    assert [again.advance() for _ in range(2)] == last
    for key, value in run.task.state_dict().items():
        assert torch.equal(value, again.task.state_dict()[key]), key


@pytest.mark.system("contrastive-divergence", "recipe")
def test_one_recipe_for_both() -> None:
    recipe: Any = recipes.get("ebm-moons")
    for method, kind in (("persistent", PersistentDivergence), ("from-data", ContrastiveDivergence)):
        changed = replace(recipe, divergence=replace(recipe.divergence, method=method, steps=2, eta=0.01))
        parts = changed.build()
        assert type(parts.task) is kind
        assert parts.task.eta == 0.01
        assert next(parts.stream)["noise"].shape[1:] == (2, 2)


@pytest.mark.system("noise-contrastive-estimation")
@pytest.mark.system("noise-contrastive-estimation", "form")
def test_noise_contrast() -> None:
    torch.manual_seed(0)
    model = NormalisedEnergyNetwork(TINY).double()
    mean, std = torch.tensor([0.5, 0.0], dtype=DOUBLE), torch.tensor([1.5, 0.7], dtype=DOUBLE)
    task = NoiseContrastive(model, NO_Z, mean, std)
    x, z = normal(8, 2), normal(8, 2, seed=1)
    [move] = task.moves({"x": x, "noise": z})
    noise, found = mean + std * z, move.value()
    logits = [-model(at) - torch.distributions.Normal(mean, std).log_prob(at).sum(1) for at in (x, noise)]
    close(found.terms["loss"], noise_contrastive_loss(*logits))
    right = ((logits[0] > 0).double().mean() + (logits[1] <= 0).double().mean()) / 2
    close(found.told["told_apart"].double(), right)
    with torch.no_grad():
        scores = task.score({"x": x})
    close(scores["nll"], scores["claimed_nll"])


def test_scores_use_the_integral() -> None:
    model = network()
    task = ContrastiveDivergence(model, lambda energy: torch.tensor(1.25, dtype=DOUBLE), 0.1)
    x = normal(3, 2)
    close(task.score({"x": x})["nll"], model(x) + 1.25)


@pytest.mark.system("persistent-contrastive-divergence", "buffer")
def test_the_case_of_the_split_tests_really_moves_chains() -> None:
    task, given = make("PersistentDivergence")
    before = task.state_dict()["chains"].clone()
    for move in task.moves(given):
        move.value()
    assert (task.state_dict()["chains"] != before).any(1).sum() == 8
