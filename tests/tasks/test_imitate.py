"""Imitation: each loss by its equation, the scores of demonstrations and of episodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from descend.losses.regression import absolute_error
from descend.models import act, cloning_policy, diffusion_policy, vla_policy
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.tasks.imitate import CloneBehaviour, CloneByDenoising, CloneByStyle
from tests.close import close
from tests.tasks.imitation_cases import denoising, play_nothing, seen, style


def test_regression_is_the_mean_error_of_the_sums_of_increments() -> None:
    torch.manual_seed(0)
    model = cloning_policy.CloningPolicy(cloning_policy.TINY).double()
    batch = seen()
    model.fit_scales(batch["state"], batch["chunk"])
    task = CloneBehaviour(model, play_nothing, absolute_error)
    sums = torch.cat([batch["chunk"][..., :2].cumsum(1), batch["chunk"][..., 2:]], -1)
    scaled = (sums - sums.mean(0)) / sums.std(0, correction=0)
    close(task.losses(batch)["loss"], (model(batch["state"]) - scaled).abs().mean((1, 2)))


@pytest.mark.system("act-policy")
@pytest.mark.system("act-policy", "objective")
def test_act_minimises_l1_and_kl_of_its_style() -> None:
    torch.manual_seed(0)
    task, batch = style()
    model = task.double().model
    h = model.style(model.state_scale(batch["state"]), model.standardize(batch["chunk"]))
    mu, log_var = model.posterior.moments(h)
    z = mu + (log_var / 2).exp() * batch["noise"]
    said = model.decode(batch["state"], z, batch["image"])
    terms = task.losses(batch)
    close(terms["l1"], (said - model.standardize(batch["chunk"])).abs().mean((1, 2)))
    close(terms["kl"], 0.5 * 0.5 * (mu.square() + log_var.exp() - 1 - log_var).sum(-1))
    [move] = list(task.moves(batch))
    close(move.value().total(), (terms["l1"] + terms["kl"]).mean())


@pytest.mark.system("diffusion-policy")
@pytest.mark.system("diffusion-policy", "process")
def test_a_diffusion_policy_learns_the_chunk_under_the_noise() -> None:
    torch.manual_seed(0)
    task, batch = denoising()
    model = task.double().model
    t = (batch["time"] * 100).long()
    abar = NoiseSchedule("cosine", steps=100).abar()[t][:, None, None]
    noisy = abar.sqrt() * model.standardize(batch["chunk"]) + (1 - abar).sqrt() * batch["noise"]
    said = model(noisy, t, batch["state"], batch["image"])
    close(task.losses(batch)["loss"], (said - model.standardize(batch["chunk"])).square().mean((1, 2)))
    noisy_plan = replace(task.noise, predicts="eps")
    of_noise = CloneByDenoising(model, play_nothing, noisy_plan).losses(batch)["loss"]
    close(of_noise, (said - batch["noise"]).square().mean((1, 2)))


def test_demonstrations_are_scored_in_the_units_of_actions() -> None:
    torch.manual_seed(0)
    for make in (style, denoising):
        task, batch = make()
        found = task.double().score(batch)
        assert found["loss"].shape == found["error"].shape == (8,)
    model = act.ACT(act.TINY).double()
    task = CloneByStyle(model, play_nothing, 1.0)
    batch = seen() | {"noise": torch.zeros(8, 2, dtype=torch.float64)}
    model.fit_scales(batch["state"], batch["chunk"])
    planned = model.restore(model.decode(batch["state"], torch.zeros(8, 2).double(), batch["image"]))
    close(task.score(batch)["error"], (planned - batch["chunk"]).abs().mean((1, 2)))


def test_a_batch_of_seeds_is_played() -> None:
    asked: list[int] = []

    def play(plan: object, seeds: object) -> dict[str, Tensor]:
        asked.extend(seeds)  # type: ignore[call-overload]
        return {"success": torch.tensor([1.0, 0.0])}

    task = CloneBehaviour(vla_policy.VLAPolicy(vla_policy.TINY), play, absolute_error)
    assert task.score({"seed": torch.tensor([4, 9])})["success"].tolist() == [1.0, 0.0]
    assert asked == [4, 9]


def test_a_policy_draws_from_the_batch_when_it_is_scored() -> None:
    torch.manual_seed(0)
    model = diffusion_policy.DiffusionPolicy(diffusion_policy.TINY)
    task = CloneByDenoising(model, play_nothing, model.noise)
    _, batch = denoising()
    batch = {name: x.float() for name, x in batch.items()}
    assert torch.equal(task.score(batch)["error"], task.score(batch)["error"])
    other = batch | {"noise": batch["noise"] + 1}
    assert not torch.equal(task.score(batch)["error"], task.score(other)["error"])
