"""PPO's terms in compiled code: the numbers and gradients of the readable form, for every kind of action and size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.native import proximal as native
from descend.native.build import library
from descend.native.proximal import Networks, Steps
from descend.ops.actions import Categorical, Gaussian
from descend.tasks.ppo import PPO, Proximal
from descend.tasks.proximal import ProximalTerms, find_networks, judge_steps, judge_steps_compiled
from tests.close import close

SIZES = [
    (4, 2, 64, 2, (1, 64)),
    (3, 5, 17, 3, (4, 7)),
    (6, 1, 8, 1, (2, 3)),
    (40, 17, 33, 2, (1, 1)),
    (1, 2, 16, 2, (3, 70)),
]
needs_compiler = pytest.mark.skipif(library() is None, reason="there is no compiler")


def make(size: tuple[Any, ...], vector: bool) -> tuple[Any, Any, dict[str, Tensor]]:
    """A policy away from its start, its distribution, and steps that it judges, some of them clipped."""
    torch.manual_seed(0)
    *numbers, shape = size
    model: Any = (
        GaussianActorCritic(GaussianActorCriticConfig(*numbers)) if vector else ActorCritic(ActorCriticConfig(*numbers))
    )
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    pi, x = Gaussian if vector else Categorical, torch.randn(*shape, numbers[0])
    action = torch.randn(*shape, numbers[1]) if vector else torch.randint(numbers[1], shape)
    with torch.no_grad():
        old = pi(model(x)[0]).log_prob(action) + 0.3 * torch.randn(shape)
    steps = {"observation": x, "action": action, "old": old}
    return model, pi, steps | {"advantage": torch.randn(shape), "target": torch.randn(shape)}


def total(found: ProximalTerms) -> Tensor:
    return 0.7 * found.policy + 0.3 * found.value - 0.2 * found.entropy


@needs_compiler
@pytest.mark.system("ppo")
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_compiled_terms_are_those_of_the_readable_form(size: tuple[Any, ...], vector: bool) -> None:
    model, pi, steps = make(size, vector)
    networks = find_networks(model, 1)
    assert networks is not None
    plain, compiled = judge_steps(model, pi, steps, 0.2), judge_steps_compiled(networks, steps, 0.2)
    for a, b in zip(compiled[:3], plain[:3], strict=True):
        close(a, b)
    assert compiled.told.keys() == plain.told.keys()
    for name, value in plain.told.items():
        assert float(compiled.told[name]) == pytest.approx(float(value), rel=1e-4, abs=1e-6), name
        assert not compiled.told[name].requires_grad
    if steps["old"].numel() > 10:
        assert 0 < plain.told["clip_fraction"] < 1
    expected = torch.autograd.grad(total(plain), networks.parameters)
    scale = max(float(g.abs().max()) for g in expected)
    for ours, theirs in zip(torch.autograd.grad(total(compiled), networks.parameters), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * scale)
    assert len(networks.parameters) == len(list(model.parameters()))


@needs_compiler
def test_terms_have_gradients_of_their_own() -> None:
    """Each term alone, as micro-batches weigh them."""
    model, pi, steps = make(SIZES[1], False)
    networks = Networks(model.layers())
    for term in ("policy", "value", "entropy"):
        ours = torch.autograd.grad(getattr(judge_steps_compiled(networks, steps, 0.2), term), networks.parameters)
        plain = getattr(judge_steps(model, pi, steps, 0.2), term)
        theirs = torch.autograd.grad(plain, networks.parameters, allow_unused=True)
        for a, b in zip(ours, theirs, strict=True):
            assert torch.allclose(a, torch.zeros_like(a) if b is None else b, rtol=1e-4, atol=1e-7)


@needs_compiler
@pytest.mark.parametrize("broken", ["observation", "old", "advantage", "target", "weight"])
def test_a_number_that_is_none_shows_in_the_loss(broken: str) -> None:
    """So that the engine stops before the step, as it does with the readable form."""
    model, _, steps = make(SIZES[0], False)
    if broken == "weight":
        model.actor.out.bias.data[0] = torch.nan
    else:
        steps[broken].view(-1)[0] = torch.nan
    assert total(judge_steps_compiled(Networks(model.layers()), steps, 0.2)).isnan()


@needs_compiler
def test_parameters_that_changed_before_the_backward_pass_are_noticed() -> None:
    model, _, steps = make(SIZES[0], False)
    found = total(judge_steps_compiled(Networks(model.layers()), steps, 0.2))
    with torch.no_grad():
        model.actor.out.bias.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


@needs_compiler
def test_what_has_no_compiled_form_takes_the_readable_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ActorCritic(ActorCriticConfig(width=8))
    assert find_networks(model, 64) is not None
    assert find_networks(model, 10**7) is None  # too many rows: torch shares them among threads
    assert find_networks(model.double(), 64) is None
    assert find_networks(QNetwork(QNetworkConfig()), 64) is None
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert find_networks(model, 64) is None
    steps = make(SIZES[0], False)[2]
    with pytest.raises(TypeError, match=r"torch\.int32"):
        Steps(Networks(model.layers()), steps["observation"][0], *[steps["old"].int()[0]] * 4)
    monkeypatch.setattr(native, "library", lambda: None)
    assert find_networks(model, 64) is None


@needs_compiler
@pytest.mark.parametrize("vector", [False, True])
def test_training_goes_the_same_way(vector: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All moves of a rollout, with the compiled form and with the readable one."""
    weights = []
    for compiled in (True, False):
        model, pi, steps = make((4, 2, 32, 2, (3, 20)), vector)
        task = PPO(model, pi, Proximal(epochs=3, minibatches=4, entropy=0.01), lambda act, seeds: {}, seed=0)
        if not compiled:
            monkeypatch.setattr("descend.tasks.ppo.find_networks", lambda policy, rows: None)
        optim = torch.optim.SGD(model.parameters(), 0.1)
        for move in task.moves(steps | {"draw": torch.zeros(3), "ids": torch.arange(3)}):
            optim.zero_grad()
            move.value().total().backward()
            optim.step()
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    close(*weights, loosen=10)  # twelve steps, each of which rounds


@pytest.mark.parametrize("vector", [False, True])
def test_acting_asks_the_actor_alone(vector: bool) -> None:
    """The same numbers as the whole model, to the bit, and it follows steps of the optimizer."""
    model, _, steps = make(SIZES[0], vector)
    ask = model.actor_now()
    for _ in range(2):
        with torch.no_grad():
            assert torch.equal(ask(steps["observation"][0, :1]), model(steps["observation"][0, :1])[0])
            for p in model.parameters():
                p.mul_(1.1)


def test_a_rollout_asks_anew_after_every_training() -> None:
    model, pi, steps = make(SIZES[0], False)
    task = PPO(model, pi, Proximal(epochs=1, minibatches=1), lambda act, seeds: {}, seed=0)
    chance = torch.Generator().manual_seed(0)
    task.act(steps["observation"][0], chance)
    assert task.ask is not None
    next(task.moves(steps | {"draw": torch.zeros(1), "ids": torch.arange(1)}))
    assert task.ask is None
