"""Diffusion Policy: the interface of ACT, the library's samplers, chance that belongs to the episode, and two modes."""

from __future__ import annotations

import pytest
import torch

from descend.contracts import PlansActions
from descend.data.control.episodes import EpisodeChance
from descend.models.act import ACT
from descend.models.act import TINY as ACT_TINY
from descend.models.diffusion_policy import TINY, DiffusionPolicy, DiffusionPolicyConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import AdamW
from descend.tasks.imitate import CloneByDenoising
from tests.close import close
from tests.tasks.imitation_cases import play_nothing


def observe(n: int = 3) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {"state": torch.randn(n, 4, generator=random), "image": torch.rand(n, 3, 8, 16, generator=random)}


def policy() -> DiffusionPolicy:
    torch.manual_seed(0)
    return DiffusionPolicy(TINY).eval()


@pytest.mark.system("diffusion-policy")
@pytest.mark.system("diffusion-policy", "interface")
def test_it_plans_what_act_plans() -> None:
    for model in (policy(), ACT(ACT_TINY)):
        assert isinstance(model, PlansActions)
        assert model.plan(observe(), EpisodeChance(range(3))).shape == (3, model.chunk, 3)
    assert DiffusionPolicy(DiffusionPolicyConfig()).plan(
        {"state": torch.zeros(2, 10)}, EpisodeChance([0, 1])
    ).shape == (2, 16, 7)


@pytest.mark.system("diffusion-policy")
@pytest.mark.system("diffusion-policy", "process")
def test_a_plan_is_ddim_from_the_episodes_noise() -> None:
    """Ten steps down the cosine by the equation, written out."""
    model, seen = policy(), observe()
    x = EpisodeChance(range(3)).normal(2, 3)
    abar = NoiseSchedule("cosine", steps=100).abar()
    times = [99, 89, 79, 69, 59, 49, 39, 29, 19, 9]
    with torch.no_grad():
        for i, t in enumerate(times):
            now, to = abar[t].item(), abar[times[i + 1]].item() if i < 9 else 1.0
            x0 = model(x, torch.full((3,), t), seen["state"], seen["image"])
            eps = (x - now**0.5 * x0) / (1 - now) ** 0.5
            x0 = x0.clamp(-5, 5)
            x = to**0.5 * x0 + (1 - to) ** 0.5 * eps
    close(model.plan(seen, EpisodeChance(range(3))), model.restore(x), loosen=10)


def test_chance_belongs_to_the_episode() -> None:
    model, seen = policy(), observe()
    whole = model.plan(seen, EpisodeChance([5, 6, 7]))
    alone = model.plan({name: x[1:2] for name, x in seen.items()}, EpisodeChance([6]))
    close(whole[1:2], alone)
    assert not torch.equal(whole, model.plan(seen, EpisodeChance([1, 2, 3])))
    chance = EpisodeChance([5, 6, 7])
    assert not torch.equal(model.plan(seen, chance), model.plan(seen, chance))  # each plan is drawn anew


def test_a_few_steps_learn_two_modes_and_not_their_mean() -> None:
    """Chunks of +1 or −1 throughout, whatever is seen: plans are near one of them. (The lab does it with the arm.)"""
    torch.manual_seed(0)
    plan = Plan(NoiseSchedule("cosine", steps=50), method="ddim", steps=10, spacing="trailing", clip=3.0)
    model = DiffusionPolicy(DiffusionPolicyConfig(1, 2, 2, width=32, heads=2, hidden=64, depth=2, plan=plan))
    task, random = CloneByDenoising(model, play_nothing, plan), torch.Generator().manual_seed(0)
    optim = AdamW(3e-3).build(model)
    for _ in range(250):
        sign = 2 * torch.randint(2, (64, 1, 1), generator=random).float() - 1
        batch = {
            "state": torch.zeros(64, 1),
            "chunk": torch.cat([sign, torch.zeros_like(sign)], 1).expand(64, 2, 2) * torch.tensor([1.0, 0.0])
            + torch.cat([sign, sign], 1) * torch.tensor([0.0, 1.0]),
            "noise": torch.randn(64, 2, 2, generator=random),
            "time": torch.rand(64, generator=random),
        }
        optim.zero_grad()
        task.losses(batch)["loss"].mean().backward()
        optim.step()
    found = model.eval().plan({"state": torch.zeros(200, 1)}, EpisodeChance(range(200)))[:, 0, 0]
    assert ((found.abs() - 1).abs() < 0.3).float().mean() > 0.9
    assert 0.3 < (found > 0).float().mean() < 0.7
