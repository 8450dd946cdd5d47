"""Q-learning: one update, the way to Q* from any behaviour, what ends and what is only cut off, and exact resume."""

from __future__ import annotations

import pytest
import torch

from descend.classic.dynamic_programming import evaluate_policy, iterate_policies
from descend.classic.q_learning import Experience, choose_actions, learn, update
from descend.data.control.gridworlds import build_chain, build_gridworld
from descend.data.control.tables import read_env
from descend.errors import Mistake
from descend.ops.decisions.bellman import as_policy, greedy, reachable
from descend.ops.decisions.process import DecisionProcess, process_from_arrays
from descend.ops.decisions.rates import StepSize
from tests.close import close
from tests.data.control.test_environments import through_json


def always(epsilon: float):  # type: ignore[no-untyped-def]
    return lambda steps: epsilon


def make_stream(process: DecisionProcess, copies: int = 5, epsilon: float = 0.5, limit: int = 7) -> Experience:
    q = torch.randn(process.states, process.actions, generator=torch.Generator().manual_seed(3))
    return Experience(process, lambda state: q[state], always(epsilon), StepSize(), copies, limit, seed=1)


@pytest.mark.system("q-learning")
@pytest.mark.system("q-learning", "update")
def test_one_walk_is_the_printed_update() -> None:
    """Step by step against Q[s][a] += α (r + γ max Q[s'] − Q[s][a]) in plain Python, α by the number of visits."""
    process, _ = read_env("FrozenLake-v1", 0.9)
    stream = make_stream(process, copies=1)
    q, plain = torch.ones(16, 4, dtype=torch.float64), [[1.0] * 4 for _ in range(16)]
    visits: dict[tuple[int, int], int] = {}
    for _ in range(200):
        batch = next(stream)
        s, a, to = (int(batch[name]) for name in ("state", "action", "next"))
        k = visits[s, a] = visits.get((s, a), 0) + 1
        alpha, beyond = float(StepSize()(torch.tensor(k))), 0.0 if batch["terminated"] else max(plain[to])
        plain[s][a] += alpha * (float(batch["reward"]) + 0.9 * beyond - plain[s][a])
        update(q, batch, 0.9)
        close(q, torch.tensor(plain, dtype=torch.float64), loosen=100)  # weights are float32
    assert len(visits) > 20


def test_walks_at_one_pair_move_it_as_often() -> None:
    """Three walks of a process with one state: 1 − (1 − α)³ towards the mean."""
    process = process_from_arrays(torch.ones(1, 1, 1), torch.ones(1, 1), 0.5)
    step = StepSize(first=0.2, power=0.0)
    stream = Experience(process, lambda state: torch.zeros(len(state), 1), always(0.0), step, 3, 10, 0)
    q = torch.zeros(1, 1, dtype=torch.float64)
    update(q, next(stream), 0.5)
    close(q, torch.tensor([[1 - 0.8**3]], dtype=torch.float64), loosen=100)  # weights are float32
    assert stream.visits.tolist() == [3]


def test_equally_good_actions_are_drawn_by_lot_and_epsilon_is_the_share_of_others() -> None:
    u = torch.rand(8000, 5, generator=torch.Generator().manual_seed(0))
    q = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(8000, 4)
    assert torch.bincount(choose_actions(q, 0.0, u), minlength=4)[[1, 3]].tolist() == [0, 0]
    share = torch.bincount(choose_actions(q, 0.4, u), minlength=4) / 8000
    assert (share - torch.tensor([0.4, 0.1, 0.4, 0.1])).abs().max() < 0.02


@pytest.mark.system("q-learning", "off-policy")
@pytest.mark.parametrize("limit", [3, 50])
def test_a_time_limit_is_no_end_but_a_terminal_state_is(limit: int) -> None:
    """Walks cut off after 3 steps learn the same Q* as those that go on, and no value flows back from an end."""
    process = build_chain(6, 0.9).begun_in(torch.arange(6) < 5)
    best = iterate_policies(process)
    found = learn(process, 600, always(1.0), StepSize(power=0.0), copies=16, limit=limit, seed=0)
    close(found.q[:5], best.q[:5], loosen=100)  # weights are float32
    assert not found.visits[5].any()
    q = torch.zeros(6, 2, dtype=torch.float64)
    q[5] = 100.0  # whatever is written beyond the end is not read
    stream = Experience(process, lambda state: q[state], always(1.0), StepSize(power=0.0), 16, limit, 0)
    for _ in range(600):
        update(q, next(stream), 0.9)
    close(q[:5], best.q[:5], loosen=100)


@pytest.mark.system("q-learning")
@pytest.mark.system("q-learning", "converges")
@pytest.mark.system("q-learning", "off-policy")
@pytest.mark.parametrize("seed", range(3))
def test_random_behaviour_with_a_falling_rate_comes_to_q_star(seed: int) -> None:
    """Slippery ground, rewards by chance, episodes that end; Q* by policy iteration. A constant rate stays noisy."""
    process = build_gridworld(["S..", ".H.", "..G"], 0.9, slip=0.4, step=-0.05)
    best, seen = iterate_policies(process), reachable(process)
    found = [
        learn(process.begun_in(seen), 1500, always(1.0), size, copies=256, seed=seed).q
        for size in (StepSize(first=0.2, hold=15, power=1.0), StepSize(first=0.2, power=0.0))
    ]
    falling, constant = (float((q - best.q)[seen].abs().max()) for q in found)
    assert falling < 0.02
    assert constant > 5 * falling
    policy = as_policy(greedy(process, found[0]), 4)
    assert (best.v - evaluate_policy(process, policy)).abs().max() < 0.01


@pytest.mark.system("q-learning")
@pytest.mark.system("q-learning", "optimal-policy")
@pytest.mark.parametrize("seed", range(3))
def test_it_learns_the_best_path_along_the_cliff(seed: int) -> None:
    """ε-greedy walks; the greedy path is then exactly −13, as V* says, and ends at the goal."""
    process, _ = read_env("CliffWalking-v1", 1.0)
    found = learn(process, 800, always(0.2), StepSize(power=0.0), copies=32, seed=seed)
    s, total = 36, 0.0
    for _ in range(13):
        i = int(process.bounds[s * 4 + int(found.q[s].argmax())])
        total, s = total + float(process.reward[i]), int(process.following[i])
    assert (s, total) == (47, -13.0)
    close(found.q[36].max(), torch.tensor(-13.0, dtype=torch.float64), loosen=100)  # weights are float32


@pytest.mark.system("q-learning", "optimal-policy")
def test_it_solves_the_taxi() -> None:
    process, limit = read_env("Taxi-v4", 0.99)
    best, seen = iterate_policies(process), reachable(process)
    found = learn(process, 1200, always(1.0), StepSize(power=0.0), copies=512, limit=limit, seed=0)
    assert (found.q - best.q)[seen].abs().max() < 1e-3


def test_a_stopped_stream_goes_on_to_the_bit() -> None:
    process, _ = read_env("FrozenLake-v1", 0.9)
    stream = make_stream(process)
    for _ in range(20):
        next(stream)
    again = make_stream(process)
    again.load_state_dict(through_json(stream.state_dict()))
    for _ in range(20):
        a, b = next(stream), next(again)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)
    assert stream.finished == again.finished
    assert torch.equal(stream.visits, again.visits)
    assert sum(n for n, _ in stream.finished) > 5
    with pytest.raises(Mistake, match="the checkpoint has 5 walks and 64 pairs of state and action, not 6 and 64"):
        make_stream(process, copies=6).load_state_dict(stream.state_dict())
