"""PPO: the moves, the advantages they use, the first gradient, and learning where the best policy is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import as_loss
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.ops.actions import Categorical, Gaussian
from descend.tasks.ppo import PPO, Proximal
from tests.close import close

NUMBERS = Proximal(gamma=0.9, lam=0.8, epochs=3, minibatches=4)


def nobody(act: object, seeds: object) -> Tensor:
    raise AssertionError("no episode is played here")


def make(numbers: Proximal = NUMBERS) -> PPO:
    torch.manual_seed(0)
    return PPO(ActorCritic(ActorCriticConfig(3, 2, 8, 1)).double(), Categorical, numbers, nobody, seed=0)


def rollout(b: int = 4, t: int = 10, draw: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    terminated, truncated = torch.rand(2, b, t, generator=g) < 0.15
    return {
        "observation": torch.randn(b, t, 3, generator=g, dtype=torch.float64),
        "action": torch.randint(2, (b, t), generator=g),
        "reward": torch.randn(b, t, generator=g, dtype=torch.float64),
        "next": torch.randn(b, t, 3, generator=g, dtype=torch.float64),
        "terminated": terminated,
        "truncated": truncated & ~terminated,
        "draw": torch.full((b,), draw),
        "ids": torch.arange(b),
    }


def seen(task: PPO, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The rollout as the stream hands it on."""
    return task.look_back(batch) | {"draw": batch["draw"], "ids": batch["ids"]}


def advantages(task: PPO, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """(A, V) by the definition: Σ_k (γλ)^k δ_{t+k} to the episode's end, V(s') from the last state seen."""
    b, t = batch["reward"].shape
    n = task.numbers
    with torch.no_grad():
        v, following = task.policy(batch["observation"])[1], task.policy(batch["next"])[1]
    a = torch.zeros(b, t, dtype=torch.float64)
    for row in range(b):
        for i in range(t):
            for k in range(i, t):
                after = 0.0 if batch["terminated"][row, k] else following[row, k]
                delta = batch["reward"][row, k] + n.gamma * after - v[row, k]
                a[row, i] += (n.gamma * n.lam) ** (k - i) * delta
                if batch["terminated"][row, k] or batch["truncated"][row, k]:
                    break
    return a.flatten(), v.flatten()


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "advantages")
def test_advantages_bootstrap_through_time_limits() -> None:
    task, batch = make(), rollout()
    assert batch["truncated"].any()
    assert batch["terminated"].any()
    steps = task.look_back(batch)
    a, v = advantages(task, batch)
    close(steps["target"].flatten(), a + v)
    close(steps["advantage"].flatten(), (a - a.mean()) / (a.std() + 1e-8))
    assert not any(x.requires_grad for x in steps.values())


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "policy-gradient")
def test_the_first_gradient_is_the_policy_gradient() -> None:
    """Before any step r = 1: ∇ = −E[A ∇log π] + c_v E[(V − G) ∇V] − c_e ∇E[H]."""
    numbers = Proximal(gamma=0.9, lam=0.8, epochs=1, minibatches=1, value=0.7, entropy=0.3)
    task, batch = make(numbers), rollout()
    a, v = advantages(task, batch)
    target, scaled = a + v, (a - a.mean()) / (a.std() + 1e-8)
    (closure,) = (loss_fn for _, loss_fn, _ in task.moves(seen(task, batch)))
    ours = torch.autograd.grad(as_loss(closure()).total(), list(task.policy.parameters()))
    logits, value = task.policy(batch["observation"].flatten(0, 1))
    log_p = logits.log_softmax(-1)
    taken = log_p.gather(-1, batch["action"].flatten()[:, None]).squeeze(-1)
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    plain = -(scaled * taken).mean() + 0.7 * 0.5 * (value - target).square().mean() - 0.3 * entropy
    for g, expected in zip(ours, torch.autograd.grad(plain, list(task.policy.parameters())), strict=True):
        close(g, expected)


class Watched(nn.Module):
    """A policy that writes down which observations it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.seen: list[list[float]] = []

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.seen.append(x[..., 0].flatten().tolist())
        return torch.stack([x[..., 0] * self.weight, x[..., 0] * 0], -1), x[..., 0] * self.weight


def orders(draw: int, seed: int = 0) -> list[list[float]]:
    policy = Watched()
    task = PPO(policy, Categorical, NUMBERS, nobody, seed)
    batch = {k: v.float() if v.is_floating_point() else v for k, v in rollout(draw=draw).items()}
    batch["observation"] = torch.arange(40.0).view(4, 10, 1)
    for player, closure, _ in task.moves(seen(task, batch)):
        assert player == "policy"
        as_loss(closure()).total()
    return policy.seen[2:]  # after the two looks back


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "epochs")
def test_every_epoch_visits_every_step_once() -> None:
    """And every minibatch sees each of the four environments equally often (10 steps in minibatches of 3, 3, 2, 2)."""
    asked = orders(draw=0)
    assert [len(steps) for steps in asked] == 3 * [12, 12, 8, 8]
    for epoch in range(3):
        assert sorted(step for steps in asked[4 * epoch : 4 * epoch + 4] for step in steps) == list(range(40))
        assert sorted(step // 10 for step in asked[4 * epoch]) == 3 * [0] + 3 * [1] + 3 * [2] + 3 * [3]
    assert asked[:4] != asked[4:8]


@pytest.mark.system("ppo")
def test_slices_of_the_environments_are_slices_of_every_minibatch() -> None:
    """Losses of two halves, taken in lockstep, have the loss of the whole as their mean, minibatch by minibatch."""
    task = make()
    batch = seen(task, rollout())
    halves = [{name: x[:2] for name, x in batch.items()}, {name: x[2:] for name, x in batch.items()}]
    together = zip(task.moves(batch), *(task.moves(half) for half in halves), strict=True)
    count = 0
    for whole, first, second in together:
        halved = (first.value().total() + second.value().total()) / 2
        close(whole.value().total(), halved)
        count += 1
    assert count == 12


def test_the_order_is_a_function_of_seed_and_batch() -> None:
    """So a resumed run repeats it, whatever the global random state."""
    first = orders(draw=3)
    torch.manual_seed(9)
    assert orders(draw=3) == first
    assert orders(draw=4) != first
    assert orders(draw=3, seed=1) != first


def learn(task: PPO, reward: Callable[[Tensor], Tensor], rounds: int, lr: float) -> None:
    """One-step episodes: act, be rewarded, and that was it."""
    opt = torch.optim.Adam(task.policy.parameters(), lr)
    for draw in range(rounds):
        generator = torch.Generator().manual_seed(draw)
        observation = torch.randn(256, 1, 3, generator=generator)
        with torch.no_grad():
            action = task.act(observation[:, 0], generator)
        over = torch.ones(256, 1, dtype=torch.bool)
        batch = {
            "observation": observation,
            "action": action[:, None],
            "reward": reward(action)[:, None],
            "next": observation,
            "terminated": over,
            "truncated": ~over,
            "draw": torch.full((256,), draw),
            "ids": torch.zeros(256, dtype=torch.long),
        }
        for _, closure, _ in task.moves(seen(task, batch)):
            opt.zero_grad()
            as_loss(closure()).total().backward()
            opt.step()


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "discrete")
def test_learns_which_action_pays() -> None:
    torch.manual_seed(0)
    pays = torch.tensor([0.0, 1.0, 0.2])
    task = PPO(
        ActorCritic(ActorCriticConfig(3, 3, 16, 1)), Categorical, Proximal(epochs=4, minibatches=1), nobody, seed=0
    )
    learn(task, lambda action: pays[action], rounds=15, lr=0.03)
    observation = torch.randn(50, 3)
    assert (task.greedy(observation) == 1).all()
    assert task.policy(observation)[0].softmax(-1)[:, 1].min() > 0.9


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "continuous")
def test_learns_a_continuous_action() -> None:
    """Reward −|a − (0.5, −1)|²: the mean goes to the best action and the spread shrinks."""
    torch.manual_seed(0)
    best = torch.tensor([0.5, -1.0])
    model = GaussianActorCritic(GaussianActorCriticConfig(3, 2, 16, 1))
    task = PPO(model, Gaussian, Proximal(epochs=4, minibatches=1), nobody, seed=0)
    learn(task, lambda action: -(action - best).square().sum(-1), rounds=60, lr=0.01)
    with torch.no_grad():
        away = (task.greedy(torch.randn(50, 3)) - best).norm(dim=-1)
    assert away.mean() < 0.1  # it starts at 1.1
    assert (model.log_sigma.exp() < 0.3).all()  # it starts at 1


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "epochs")
def test_what_is_told_beside_the_loss() -> None:
    """Before the first step nothing has moved; after large ones the KL and the clipped share have."""
    task, batch = make(Proximal(epochs=6, minibatches=1, entropy=0.01)), rollout()
    optim, told = torch.optim.SGD(task.policy.parameters(), 3.0), []
    for move in task.moves(seen(task, batch)):
        found = move.value()
        told.append({name: float(value) for name, value in found.told.items()})
        assert set(found.terms) == {"policy", "value", "entropy"}
        optim.zero_grad()
        found.total().backward()
        optim.step()
    assert set(told[0]) == {"entropy", "approximate_kl", "clip_fraction", "explained_variance"}
    assert told[0]["approximate_kl"] == pytest.approx(0, abs=1e-12)
    assert told[0]["clip_fraction"] == 0
    assert 0 < told[0]["entropy"] <= math.log(2)
    assert max(row["approximate_kl"] for row in told) > 1e-3
    assert max(row["clip_fraction"] for row in told) > 0


@pytest.mark.system("ppo")
def test_the_order_of_the_steps_belongs_to_seed_batch_and_environment() -> None:
    base, *others = orders(draw=0), orders(draw=1), orders(draw=0, seed=1)
    assert all(other != base for other in others)
    assert orders(draw=0) == base
    rows = [[step for step in base[0] if step // 10 == i] for i in range(4)]
    assert len({tuple(step % 10 for step in row) for row in rows}) > 1  # every environment has its own order
