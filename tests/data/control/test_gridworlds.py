"""Grid worlds against gymnasium's own tables, and the chain against its closed form."""

from __future__ import annotations

import gymnasium
import pytest
import torch

from descend.data.control.gridworlds import build_chain, build_gridworld
from descend.data.control.tables import read_env
from descend.errors import Mistake
from descend.ops.decisions.bellman import action_values
from tests.close import close


@pytest.mark.system("mdp")
@pytest.mark.system("mdp", "model")
@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1"])
def test_a_slippery_map_is_the_frozen_lake(name: str) -> None:
    """The same map with slip 2/3: equal probabilities, rewards and backups."""
    bare = gymnasium.make(name).unwrapped
    rows = ["".join(cell.decode() for cell in row) for row in bare.desc]  # type: ignore[attr-defined]
    ours, theirs = build_gridworld(rows, 0.9, slip=2 / 3), read_env(name, 0.9)[0]
    v = torch.rand(ours.states, generator=torch.Generator().manual_seed(0)).double()
    close(ours.transitions(), theirs.transitions())
    close(ours.expected_reward, theirs.expected_reward)
    close(action_values(ours, v), action_values(theirs, v))
    assert ours.labels.grid == theirs.labels.grid == bare.desc.shape  # type: ignore[attr-defined]


@pytest.mark.system("mdp", "model")
def test_a_cliff_is_the_cliff_walk() -> None:
    """We add the price of the step to the fall and +1 for the goal; gymnasium's moves are up, right, down, left."""
    theirs = read_env("CliffWalking-v1", 0.9)[0]
    ours = build_gridworld([*["." * 12] * 3, "S" + "C" * 10 + "G"], 0.9, step=-1.0)
    inside = [s for s in range(48) if s <= 36]
    order = [ours.action_names.index(name) for name in ("up", "right", "down", "left")]
    close(ours.transitions()[inside][:, order], theirs.transitions()[inside])
    fallen, goal = theirs.expected_reward == -100, theirs.transitions()[..., 47] > 0
    expected = theirs.expected_reward - fallen.double() + goal.double()
    close(ours.expected_reward[inside][:, order], expected[inside])


@pytest.mark.system("mdp", "model")
def test_the_chain() -> None:
    """Walked on without slipping, state s is worth γ^(n − 2 − s)."""
    process = build_chain(5, 0.9)
    assert process.action_names == ["back", "on"]
    v = torch.tensor([0.9**3, 0.9**2, 0.9, 1.0, 0.0], dtype=torch.float64)
    close(action_values(process, v)[:, 1], v)
    close(action_values(process, v)[0, 0], torch.tensor(0.9**4, dtype=torch.float64))
    close(build_chain(5, 0.9, slip=0.25).transitions()[1, 1, [0, 2]], torch.tensor([0.25, 0.75], dtype=torch.float64))


def test_walls_hold_and_several_starts_are_as_likely() -> None:
    process = build_gridworld(["S#S", "C.G"], 0.9)
    assert process.start.tolist() == [0.5, 0, 0.5, 0, 0, 0]
    p = process.transitions()
    assert p[0, 2].tolist() == [1, 0, 0, 0, 0, 0], "a wall"
    assert p[0, 1].tolist() == [0.5, 0, 0.5, 0, 0, 0], "the cliff leads back to any start"
    assert process.expected_reward[0, 1] == -100


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["S.", "..G"], "the map, line 2: 3 cells, but line 1 has 2"),
        (["S.", ".Q"], "the map, line 2: 'Q' is no cell; use S . G H C #"),
        (["..", ".G"], "the map: there is no start; mark it with S"),
    ],
)
def test_a_bad_map_is_named(rows: list[str], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        build_gridworld(rows, 0.9)
    with pytest.raises(Mistake, match="a chain of 1 states: at least 2"):
        build_chain(1, 0.9)
