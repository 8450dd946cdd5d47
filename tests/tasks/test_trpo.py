"""TRPO: the Fisher matrix, the constraint after every step, and Stable-Baselines3's step on one batch."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import TRPO as PeerTRPO
from torch import Tensor

from descend.data.streams.sliced import Sliced
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.ops.actions import Categorical, Gaussian
from descend.optim.flat import flatten
from descend.optim.rules import Adam
from descend.optim.schedules import Constant
from descend.optim.trust_region import PRODUCT, TrustRegion
from descend.tasks.trpo import TRPO, Trusted
from tests.close import close
from tests.engine.test_training import Repeat

DELTA = 0.01


def nobody(act: object, seeds: object) -> dict[str, Tensor]:
    raise AssertionError("no episode is played here")


def discrete() -> TRPO:
    torch.manual_seed(0)
    model = ActorCritic(ActorCriticConfig(3, 4, 6, 1)).double()
    torch.nn.init.normal_(model.actor.out.weight, std=0.5)
    return TRPO(model.split(), Categorical, Trusted(epochs=1, minibatches=1), nobody, seed=0)


def continuous() -> TRPO:
    torch.manual_seed(0)
    model = GaussianActorCritic(GaussianActorCriticConfig(3, 2, 6, 1)).double()
    torch.nn.init.normal_(model.log_sigma, std=0.3)
    return TRPO(model.split(), Gaussian, Trusted(epochs=1, minibatches=1), nobody, seed=0)


KINDS = pytest.mark.parametrize("make", [discrete, continuous])


def rollout(task: TRPO, b: int = 4, t: int = 16) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    observation = torch.randn(b, t, 3, generator=g, dtype=torch.float64)
    terminated, truncated = torch.rand(2, b, t, generator=g) < 0.1
    with torch.no_grad():
        action = task.act(observation.flatten(0, 1), g).unflatten(0, (b, t))
    played = {
        "observation": observation,
        "next": observation.roll(-1, 1),
        "action": action,
        "reward": torch.randn(b, t, generator=g, dtype=torch.float64),
        "terminated": terminated,
        "truncated": truncated & ~terminated,
    }
    return task.look_back(played) | {"draw": torch.zeros(b, dtype=torch.long), "ids": torch.arange(b)}


def train(task: TRPO, batch: dict[str, Tensor], accumulate: int = 1, rule: TrustRegion | None = None) -> Training:
    optims = {"policy": (rule or TrustRegion(DELTA)).answer(task.query), "value": Adam(1e-2)}
    stream = Sliced(Repeat(batch), len(batch["ids"]), accumulate)
    loop = Loop(accumulate=accumulate, precision="float32", compile="off")
    return Training(Parts(task, task.policy, stream, (), optims), loop, Constant(), World())  # type: ignore[arg-type]


def divergence(task: TRPO, batch: dict[str, Tensor]) -> Tensor:
    """E[KL] from torch's distributions."""
    now = task.policy(batch["observation"])
    if task.actions is Categorical:
        make: Callable[[Tensor], torch.distributions.Distribution] = lambda z: torch.distributions.Categorical(logits=z)
    else:
        make = lambda z: torch.distributions.Independent(
            torch.distributions.Normal(z.chunk(2, -1)[0], z.chunk(2, -1)[1].exp()), 1
        )
    return torch.distributions.kl_divergence(make(batch["old"]), make(now)).mean()


@pytest.mark.system("trpo", "fisher")
@KINDS
def test_the_product_is_the_hessian_of_the_divergence(make: Callable[[], TRPO]) -> None:
    """As the optimizer gets it: the gradient that the engine leaves for ⟨∇E[KL], v⟩."""
    task = make()
    batch = rollout(task)
    params = list(task.policy.parameters())
    n = sum(p.numel() for p in params)
    first = torch.autograd.grad(divergence(task, batch), params, create_graph=True)
    rows = [torch.autograd.grad(entry, params, retain_graph=True) for entry in flatten(first)]
    hessian = torch.stack([flatten(row) for row in rows])
    v = torch.randn(3, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    task.query.about = PRODUCT
    for direction in v:
        task.query.direction = direction
        move = next(iter(task.moves(batch)))
        close(flatten(torch.autograd.grad(move.value().total(), params)), hessian @ direction)


@pytest.mark.system("trpo", "fisher")
def test_it_is_the_fisher_matrix() -> None:
    """E_s E_a[∇log π ∇log πᵀ], over all actions, each with its probability."""
    task = discrete()
    batch = rollout(task, 2, 5)
    params = list(task.policy.parameters())
    fisher = torch.zeros(1)
    for observation in batch["observation"].flatten(0, 1):
        pi = task.policy(observation).log_softmax(-1)
        for log_p in pi:
            score = flatten(torch.autograd.grad(log_p, params, retain_graph=True))
            fisher = fisher + log_p.exp().detach() * torch.outer(score, score) / 10
    v = torch.randn(len(fisher), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    task.query.about, task.query.direction = PRODUCT, v
    move = next(iter(task.moves(batch)))
    close(flatten(torch.autograd.grad(move.value().total(), params)), fisher @ v)


@pytest.mark.system("trpo")
@pytest.mark.system("trpo", "constraint")
@KINDS
def test_no_step_leaves_the_region(make: Callable[[], TRPO]) -> None:
    """Thirty steps, each on a rollout of its own; long ones are shortened, and few are given up."""
    task, moved = make(), 0
    for _ in range(30):
        batch = rollout(task)
        run = train(task, batch, rule=TrustRegion(DELTA, damping=1e-2, inner=15))
        before = flatten(task.policy.parameters()).detach().clone()
        told = run.advance()
        kl = float(divergence(task, batch).detach())
        assert kl <= DELTA * (1 + 1e-9)
        assert told["kl"] == pytest.approx(kl, rel=1e-6, abs=1e-12)
        if not torch.equal(before, flatten(task.policy.parameters())):
            moved += 1
            assert told["loss_policy"] < 0
            assert kl > DELTA / 10
    assert moved >= 25


@KINDS
def test_micro_batches_take_the_same_step(make: Callable[[], TRPO]) -> None:
    """Losses, divergences and products are summed over them as gradients are."""
    tasks = []
    for accumulate in (1, 2, 4):
        task = make()
        train(task, rollout(task), accumulate).advance()
        tasks.append(task)
    for name, x in tasks[0].state_dict().items():
        for other in tasks[1:]:
            close(other.state_dict()[name], x)


@pytest.mark.system("trpo")
@pytest.mark.system("trpo", "natural")
def test_the_step_is_that_of_sb3_contrib(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one batch, from the same weights: its conjugate gradients start at 0 here, as ours do (it starts at noise)."""
    torch.manual_seed(0)
    theirs = PeerTRPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=40, n_critic_updates=0, gamma=0.9,
                      policy_kwargs={"net_arch": [6]}, target_kl=DELTA, device="cpu")  # fmt: skip
    theirs._setup_learn(40)
    model = ActorCritic(ActorCriticConfig(4, 2, 6, 1))
    task = TRPO(model.split(), Categorical, Trusted(epochs=1, minibatches=1), nobody, seed=0)
    g = torch.Generator().manual_seed(2)
    observation, action = torch.randn(40, 4, generator=g), torch.randint(2, (40,), generator=g)
    advantage = torch.randn(40, generator=g)
    theirs.policy.mlp_extractor.policy_net[0].load_state_dict(model.actor.hidden[0].state_dict())
    theirs.policy.action_net.load_state_dict(model.actor.out.state_dict())
    with torch.no_grad():
        old = task.policy(observation)
        log_prob = Categorical(old).log_prob(action)
    buffer = theirs.rollout_buffer
    buffer.reset()
    for t in range(40):
        buffer.add(
            observation[t].numpy(), action[t].numpy(), np.zeros(1), np.zeros(1), torch.zeros(1), log_prob[t : t + 1]
        )
    buffer.advantages[:] = advantage[:, None].numpy()
    monkeypatch.setattr("sb3_contrib.common.utils.th.randn_like", torch.zeros_like)
    theirs.train()
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    batch = {"observation": observation, "action": action, "old": old, "advantage": scaled, "target": torch.zeros(40)}
    whole = {name: x[None] for name, x in batch.items()} | {"ids": torch.zeros(1).long(), "draw": torch.zeros(1).long()}
    before = model.actor.out.weight.detach().clone()
    train(task, whole, rule=TrustRegion(DELTA, damping=0.1, inner=15)).advance()
    assert (model.actor.out.weight - before).abs().max() > 0.01
    close(model.actor.out.weight, theirs.policy.action_net.weight, loosen=100)  # float32 through conjugate gradients
    close(model.actor.hidden[0].weight, theirs.policy.mlp_extractor.policy_net[0].weight, loosen=100)


def test_the_critic_learns_beside_it() -> None:
    task = discrete()
    batch = rollout(task)
    run = train(task, batch)
    losses = [run.advance()["loss_value"] for _ in range(40)]
    assert losses[-1] < 0.8 * losses[0]
