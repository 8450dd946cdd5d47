"""Deep Q-learning: its target, its loss, the copy that follows, and the optimum of a known decision process."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from descend.engine.evaluation import score_set
from descend.losses.reinforcement import td_loss
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.tasks.dqn import DQN, Hard, Soft
from tests.close import close


def nobody(act: object, seeds: object) -> Tensor:
    raise AssertionError("no episode is played here")


def make(follow: Hard | Soft | None = None, gamma: float = 0.9, double: bool = True) -> DQN:
    torch.manual_seed(0)
    task = DQN(QNetwork(QNetworkConfig(3, 2, 8, 1)), gamma, follow or Hard(1000), nobody)
    with torch.no_grad():  # so that θ⁻ and θ differ
        for p in task.target.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return task.double() if double else task


def transitions(b: int = 12, draw: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    return {
        "observation": torch.randn(b, 3, generator=g, dtype=torch.float64),
        "action": torch.randint(2, (b,), generator=g),
        "reward": torch.randn(b, generator=g, dtype=torch.float64),
        "next": torch.randn(b, 3, generator=g, dtype=torch.float64),
        "terminated": torch.arange(b) % 4 == 0,
        "truncated": torch.arange(b) % 4 == 1,
        "draw": torch.full((b,), draw),
    }


def step(task: DQN, batch: dict[str, Tensor], lr: float = 0.1) -> None:
    """The engine's loop, for one player and plain gradient descent."""
    for player, closure, _ in task.moves(batch):
        assert player in task.players
        parameters = list(task.q.parameters())
        gradients = torch.autograd.grad(closure(), parameters)
        with torch.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                p -= lr * g


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "target")
def test_loss_is_the_mean_square_of_the_one_step_error() -> None:
    """Row by row: only termination stops the bootstrap, a time limit does not; the target is that of θ⁻."""
    task, batch = make(), transitions()
    total = 0.0
    for i in range(12):
        best = max(task.target(batch["next"][i]).tolist())
        y = batch["reward"][i].item() + (0.0 if i % 4 == 0 else 0.9 * best)
        total += (y - task.q(batch["observation"][i])[batch["action"][i]].item()) ** 2
    (move,) = (closure() for _, closure, _ in task.moves(batch))
    close(move, torch.tensor(total / 12, dtype=torch.float64))


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "no-gradient")
def test_the_target_carries_no_gradient() -> None:
    """The gradient is that of a regression on a constant y, and nothing reaches θ⁻, even where θ⁻ = θ."""
    task, batch = make(), transitions()
    task.target.load_state_dict(task.q.state_dict())
    assert not any(p.requires_grad for p in task.target.parameters())
    best = task.q(batch["next"]).amax(-1).detach()
    y = batch["reward"] + 0.9 * torch.where(batch["terminated"], 0.0, best)
    plain = torch.autograd.grad(td_loss(task.q(batch["observation"]), batch["action"], y), list(task.q.parameters()))
    for _, closure, _ in task.moves(batch):
        closure().backward()
    for p, g in zip(task.q.parameters(), plain, strict=True):
        close(p.grad, g)
    assert all(p.grad is None for p in task.target.parameters())


def equal(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "hard")
def test_hard_target_is_equal_after_c_moves_and_frozen_between() -> None:
    task = make(Hard(every=3))
    before = copy.deepcopy(task.target)
    for draw in range(9):
        step(task, transitions(draw=draw))
        if (draw + 1) % 3 == 0:
            assert equal(task.target, task.q)
            before = copy.deepcopy(task.target)
        else:
            assert equal(task.target, before)
            assert not equal(task.target, task.q)


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "soft")
def test_soft_target_is_a_running_mean() -> None:
    task = make(Soft(tau=0.25))
    expected = [p.clone() for p in task.target.parameters()]
    for draw in range(3):
        step(task, transitions(draw=draw))
        expected = [0.25 * p.detach() + 0.75 * e for p, e in zip(task.q.parameters(), expected, strict=True)]
    for p, e in zip(task.target.parameters(), expected, strict=True):
        close(p, e)


def test_slices_of_one_batch_follow_once() -> None:
    """Two micro-batches in lockstep, as the engine runs them: θ⁻ moves by τ once."""
    task, batch = make(Soft(tau=0.25)), transitions()
    start = [p.clone() for p in task.target.parameters()]
    halves = [{k: v[:6] for k, v in batch.items()}, {k: v[6:] for k, v in batch.items()}]
    for _ in zip(*(task.moves(half) for half in halves), strict=True):
        pass
    for p, old, new in zip(task.target.parameters(), start, task.q.parameters(), strict=True):
        close(p, 0.25 * new.detach() + 0.75 * old)


def known_process() -> Iterator[tuple[int, int, int, float]]:
    """S940-9.1-bellman: ten transitions of each state and action, in exact proportion to P; R(s, a)."""
    p = [[[9, 1], [2, 8]], [[5, 5], [0, 10]]]
    r = [[1.0, 0.0], [-1.0, 2.0]]
    for s in (0, 1):
        for a in (0, 1):
            for following in (0, 1):
                for _ in range(p[s][a][following]):
                    yield s, a, following, r[s][a]


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "optimum")
def test_finds_the_optimum_of_a_known_process() -> None:
    """On one-hot states, from sampled transitions alone, Q becomes the recomputed Q* of S940-9.1-bellman."""
    s, a, following, reward = (torch.tensor(column) for column in zip(*known_process(), strict=True))
    states = torch.eye(2, dtype=torch.float64)
    batch = {
        "observation": states[s],
        "action": a,
        "reward": reward.double(),
        "next": states[following],
        "terminated": torch.zeros(len(s), dtype=torch.bool),
    }
    task = DQN(QNetwork(QNetworkConfig(2, 2, depth=0)).double(), 0.9, Hard(every=5), nobody)
    for draw in range(1200):  # 240 targets: the error falls by γ with each
        step(task, batch | {"draw": torch.full((len(s),), draw)}, lr=1.0)
    close(
        task.q(states),
        torch.tensor([[17.02439024, 17.56097561], [15.90243902, 20.0]], dtype=torch.float64),
        loosen=10,  # the recomputed values are given to ten digits
    )


def test_score_plays_greedily_from_the_seeds_of_the_batch() -> None:
    asked = []

    def play(act: object, seeds: list[int]) -> dict[str, Tensor]:
        asked.append((act(torch.tensor([[0.3, -1.0, 2.0]])), seeds))  # type: ignore[operator]
        return {"return": torch.tensor([3.0, 4.0]), "length": torch.tensor([7.0, 9.0])}

    task = make(double=False)
    task.play = play
    assert task.score({"seed": torch.tensor([5, 6])})["return"].tolist() == [3.0, 4.0]
    assert asked[0][1] == [5, 6]
    assert asked[0][0].tolist() == [task.q(torch.tensor([0.3, -1.0, 2.0])).argmax().item()]
    found = score_set(task, [{"seed": torch.tensor([5])}, {"seed": torch.tensor([6, 7])}])
    assert found == {"return": 3.5, "length": 8.0, "return_spread": 0.5}
