"""REINFORCE on a process whose every episode can be written down: the estimator's mean and variance, exactly.

Three states in a row, two actions. Action 1 goes on to the next state, action 0 ends the episode or, in state 1, goes
back to state 0; after four steps it is over. Sixteen sequences of actions lead to fewer episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor

from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.ops.actions import Categorical
from descend.tasks.reinforce import MonteCarlo, Reinforce, mean_of_others
from tests.close import close

GAMMA, T = 0.7, 4
REWARD = torch.tensor([[5.0, 6.0], [4.0, 7.0], [9.0, 5.0]], dtype=torch.float64)
FEATURES = torch.eye(3, dtype=torch.float64)
Weight = Literal["discounted", "even"]
Baseline = Literal["none", "mean", "learned"]


def nobody(act: object, seeds: object) -> dict[str, Tensor]:
    raise AssertionError("no episode is played here")


def list_episodes() -> list[list[tuple[int, int]]]:
    """Every episode as its (state, action)s."""
    found, open_ones = [], [([], 0)]
    while open_ones:
        past, state = open_ones.pop()
        for action in (0, 1):
            steps = [*past, (state, action)]
            after = state + 1 if action else (0 if state == 1 else 3)
            if after > 2 or len(steps) == T:
                found.append(steps)
            else:
                open_ones.append((steps, after))
    return found


EPISODES = list_episodes()


def play(rows: list[list[tuple[int, int]]], cut: bool = False) -> dict[str, Tensor]:
    """Episodes as the stream gives them: ended by the world, or by a time limit."""
    b = len(rows)
    batch = {
        "observation": torch.zeros(b, T, 3, dtype=torch.float64),
        "action": torch.zeros(b, T, dtype=torch.long),
        "reward": torch.zeros(b, T, dtype=torch.float64),
        "terminated": torch.zeros(b, T, dtype=torch.bool),
        "truncated": torch.zeros(b, T, dtype=torch.bool),
        "real": torch.zeros(b, T, dtype=torch.bool),
    }
    for i, steps in enumerate(rows):
        for t, (state, action) in enumerate(steps):
            batch["observation"][i, t], batch["action"][i, t] = FEATURES[state], action
            batch["reward"][i, t], batch["real"][i, t] = REWARD[state, action], True
        batch["truncated" if cut else "terminated"][i, len(steps) - 1] = True
    batch["next"] = batch["observation"].roll(-1, 1)
    return batch


def make(weight: Weight = "discounted", baseline: Baseline = "none") -> Reinforce:
    torch.manual_seed(0)
    model = ActorCritic(ActorCriticConfig(3, 2, 8, 1)).double()
    torch.nn.init.normal_(model.actor.out.weight, std=0.5)
    return Reinforce(model, Categorical, MonteCarlo(GAMMA, weight, baseline), nobody)


def actor(task: Reinforce) -> list[Tensor]:
    return list(task.policy.actor.parameters())  # type: ignore[union-attr]


def flat(grads: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([g.reshape(-1) for g in grads])


def log_chances(task: Reinforce) -> Tensor:
    """log p of every episode."""
    played = play(EPISODES)
    log_prob = Categorical(task.policy(played["observation"])[0]).log_prob(played["action"])
    return (log_prob * played["real"]).sum(1)


def exact_gradient(task: Reinforce) -> Tensor:
    """∇J of J = Σ p(episode) Σ γ^t r_t."""
    played = play(EPISODES)
    returns = (played["reward"] * GAMMA ** torch.arange(T).double()).sum(1)
    return flat(torch.autograd.grad((log_chances(task).exp() * returns).sum(), actor(task)))


def estimate(task: Reinforce, rows: list[list[tuple[int, int]]]) -> Tensor:
    """What a batch of these episodes says the gradient is; the task minimises, so with the other sign."""
    batch = task.look_back(play(rows))
    (move,) = task.moves(batch)
    return -flat(torch.autograd.grad(move.value().terms["policy"], actor(task)))


def moments(task: Reinforce, together: int) -> tuple[Tensor, Tensor]:
    """Mean and total variance of the estimate over all batches of so many episodes."""
    chance = log_chances(task).exp().detach()
    picks = torch.cartesian_prod(*[torch.arange(len(EPISODES))] * together).reshape(-1, together)
    found = torch.stack([estimate(task, [EPISODES[i] for i in pick]) for pick in picks.tolist()])
    p = chance[picks].prod(1)
    mean = p @ found
    return mean, p @ (found - mean).square().sum(1)


@pytest.mark.system("reinforce")
@pytest.mark.system("reinforce", "exact-gradient", "choice")
def test_the_mean_of_the_estimator_is_the_gradient_with_the_discount_and_another_without() -> None:
    close(log_chances(make()).exp().sum(), torch.ones((), dtype=torch.float64))
    exact = exact_gradient(make())
    close(moments(make("discounted"), 1)[0], exact)
    even = moments(make("even"), 1)[0]
    assert (even - exact).norm() > 0.1 * exact.norm()


@pytest.mark.system("policy-gradient-baseline")
@pytest.mark.system("policy-gradient-baseline", "unbiased")
@pytest.mark.parametrize("baseline", ["none", "mean", "learned"])
def test_no_baseline_changes_the_mean(baseline: Baseline) -> None:
    close(moments(make(baseline=baseline), 2)[0], exact_gradient(make()))


def learn_values(task: Reinforce, steps: int = 300) -> None:
    """The task's own critic, on all episodes as often as they are likely."""
    chance = log_chances(task).exp().detach()
    rows = [EPISODES[i] for i in torch.multinomial(chance, 64, True, generator=torch.Generator().manual_seed(0))]
    optimizer = torch.optim.Adam(task.policy.critic.parameters(), 0.05)  # type: ignore[union-attr]
    for _ in range(steps):
        (move,) = task.moves(task.look_back(play(rows)))
        optimizer.zero_grad()
        move.value().terms["value"].backward()
        optimizer.step()


@pytest.mark.system("policy-gradient-baseline", "variance", "learned")
def test_variance_falls_with_a_constant_and_more_with_a_learned_baseline() -> None:
    """All batches of two episodes, each with its probability; the untrained critic helps nothing."""
    plain, constant = (moments(make(baseline=b), 2)[1] for b in ("none", "mean"))
    learned = make(baseline="learned")
    before = moments(learned, 2)[1]
    learn_values(learned)
    after = moments(learned, 2)[1]
    assert constant < 0.5 * plain
    assert after < 0.7 * constant
    assert after < 0.3 * before


@pytest.mark.system("policy-gradient-baseline")
def test_the_constant_is_the_mean_of_the_other_episodes() -> None:
    returns, real = torch.tensor([[1.0, 2.0], [5.0, 0.0], [4.0, 9.0]]), torch.tensor([[1, 1], [1, 0], [1, 1]]) > 0
    close(mean_of_others(returns, real), torch.tensor([[18 / 3] * 2, [16 / 4] * 2, [8 / 3] * 2]))


def test_a_time_limit_is_bootstrapped_where_there_is_a_critic() -> None:
    steps = [[(0, 1), (1, 0)]]
    for baseline, more in (("none", 0.0), ("mean", 0.0), ("learned", 1.0)):
        task = make(baseline=baseline)  # type: ignore[arg-type]
        cut, over = (task.look_back(play(steps, cut))["target"][0] for cut in (True, False))
        close(over[:2], torch.tensor([6 + GAMMA * 4, 4.0], dtype=torch.float64))
        beyond = task.policy(play(steps)["next"])[1][0, 1].detach()
        close(cut[:2], over[:2] + more * beyond * torch.tensor([GAMMA**2, GAMMA], dtype=torch.float64))


def test_what_comes_after_the_end_counts_nothing() -> None:
    """An episode says the same alone and beside a longer one."""
    short, long = [(0, 0)], EPISODES[max(range(len(EPISODES)), key=lambda i: len(EPISODES[i]))]
    task = make(baseline="learned")
    close(estimate(task, [short, long]), (estimate(task, [short]) + estimate(task, [long])) / 2)


@pytest.mark.system("reinforce")
def test_learns_the_best_way() -> None:
    """From (0, 1), (1, 1), (2, 0): 6 + 7γ + 9γ²; every other way is worse."""
    task, generator = make(baseline="learned"), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(task.policy.parameters(), 0.03)
    for _ in range(120):
        chance = log_chances(task).exp().detach()
        rows = [EPISODES[i] for i in torch.multinomial(chance, 16, True, generator=generator)]
        (move,) = task.moves(task.look_back(play(rows)))
        optimizer.zero_grad()
        move.value().total().backward()
        optimizer.step()
    best = [max(EPISODES, key=worth)]
    assert task.greedy(play(best)["observation"][0, :3]).tolist() == [action for _, action in best[0]][:3]


def worth(steps: list[tuple[int, int]]) -> float:
    value: Callable[[int], float] = lambda t: GAMMA**t * float(REWARD[steps[t]])
    return sum(value(t) for t in range(len(steps)))
