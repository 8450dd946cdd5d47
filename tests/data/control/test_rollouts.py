"""Rollouts: rows that run on in time, seams where episodes end, and an exact state."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.data.control.environments import Environments
from descend.data.control.rollouts import Rollouts
from descend.data.streams.arrays import generator
from descend.ops.actions import Categorical
from tests.data.control.test_environments import through_json
from tests.data.control.test_replay import same
from tests.data.worlds import LIMIT


def mostly_zero(observation: Tensor, generator: torch.Generator) -> Tensor:
    logits = torch.tensor([2.0, 0.0]).expand(len(observation), 2)
    return Categorical(logits).sample(generator)


def whole(rollout: dict[str, Tensor]) -> dict[str, Tensor]:
    return rollout


def test_time_runs_along_the_second_axis() -> None:
    """next_t is observation_{t+1} unless the episode ended at t; then it is the last one of the old episode."""
    rollouts = Rollouts(Environments("Counter-v0", 3, seed=0), mostly_zero, whole, length=40)
    first, second = next(rollouts), next(rollouts)
    assert first["observation"].shape == (3, 40, 2)
    assert first["ids"].tolist() == [0, 1, 2]
    both = {
        name: torch.cat([first[name], second[name]], 1) for name in ("observation", "next", "terminated", "truncated")
    }
    ended = both["terminated"] | both["truncated"]
    assert both["terminated"].any()
    assert both["truncated"].any()
    for row in range(3):
        for t in range(79):  # also over the seam between the two batches
            here, there = both["next"][row, t], both["observation"][row, t + 1]
            if ended[row, t]:
                assert there[1] == 0
                assert here[0] == both["observation"][row, t, 0]
                assert here[1] == both["observation"][row, t, 1] + 1
            else:
                assert torch.equal(here, there)
    assert (both["next"][..., 1][both["truncated"]] == LIMIT).all()
    assert rollouts.envs.steps == 240


def test_actions_are_those_of_the_policy_now() -> None:
    """The policy is asked at every step, so a change between two batches shows at once."""
    choice = [0]

    def act(observation: Tensor, generator: torch.Generator) -> Tensor:
        return torch.full((len(observation),), choice[0])

    rollouts = Rollouts(Environments("Counter-v0", 2, seed=0), act, whole, length=3)
    assert not next(rollouts)["action"].any()
    choice[0] = 1
    assert next(rollouts)["action"].all()


def test_what_is_learned_from_is_decided_on_the_whole_rollout() -> None:
    def centre(rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"advantage": rollout["reward"] - rollout["reward"].mean()}

    batch = next(Rollouts(Environments("Counter-v0", 2, seed=0), mostly_zero, centre, length=9))
    assert set(batch) == {"advantage", "draw", "ids"}
    assert batch["advantage"].shape == (2, 9)
    assert batch["advantage"].mean().abs() < 1e-6


def test_the_stream_goes_on_to_the_bit() -> None:
    one = Rollouts(Environments("CartPole-v1", 3, seed=5), mostly_zero, whole, length=7)
    for _ in range(4):
        next(one)
    state = through_json(one.state_dict())
    torch.manual_seed(1)
    following = [next(one) for _ in range(20)]
    other = Rollouts(Environments("CartPole-v1", 3, seed=5), mostly_zero, whole, length=7)
    other.load_state_dict(state)
    torch.manual_seed(2)
    assert all(same(a, next(other)) for a in following)
    assert one.envs.finished == other.envs.finished


def test_draws_are_counted_from_zero_and_decide_the_random_numbers() -> None:
    drawn = []

    def act(observation: Tensor, generator: torch.Generator) -> Tensor:
        drawn.append(torch.rand(1, generator=generator).item())
        return torch.zeros(len(observation), dtype=torch.long)

    rollouts = Rollouts(Environments("Counter-v0", 2, seed=4), act, whole, length=1)
    assert [next(rollouts)["draw"].tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    assert drawn == [torch.rand(1, generator=generator(4, draw)).item() for draw in range(3)]
