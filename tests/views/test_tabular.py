"""Arrows follow from where the actions lead, whatever their order; the exhibits can be drawn."""

from __future__ import annotations

import pytest
import torch

from descend.classic.dynamic_programming import iterate_policies
from descend.data.control.gridworlds import build_chain, build_gridworld
from descend.data.control.tables import read_env
from descend.report.exhibits import make_section
from descend.views.tabular import acting_states, find_arrows, show_learning, show_values


@pytest.mark.parametrize(
    ("name", "arrows"),
    [
        ("FrozenLake-v1", "←↓→↑"),
        ("FrozenLake8x8-v1", "←↓→↑"),
        ("CliffWalking-v1", "↑→↓←"),
        ("CliffWalkingSlippery-v1", "↑→↓←"),
    ],
)
def test_arrows_of_gymnasiums_grids(name: str, arrows: str) -> None:
    assert "".join(find_arrows(read_env(name, 0.9)[0]) or []) == arrows


def test_only_grids_have_arrows() -> None:
    assert find_arrows(build_chain(4, 0.9)) == ["←", "→"]
    assert find_arrows(read_env("Taxi-v4", 0.9)[0]) is None


def test_the_best_moves_stand_in_their_cells() -> None:
    process = build_gridworld(["S.", ".G"], 0.9)
    best = iterate_policies(process)
    moves, table = show_values(process, best.q)
    assert moves.content["texts"] == [["↓→", "↓"], ["→", ""]]
    torch.testing.assert_close(torch.tensor(moves.content["values"]), torch.tensor([[0.9, 1.0], [1.0, 0.0]]))
    assert table.content["columns"] == ["left", "down", "right", "up"]
    drawn = str(make_section(moves))
    assert "↓→" in drawn
    assert "could not be drawn" not in drawn + str(make_section(table))
    assert acting_states(read_env("FrozenLake-v1", 0.9)[0]).sum() == 11, "16 cells without 4 holes and the goal"
    assert show_values(read_env("Taxi-v4", 0.9)[0], torch.zeros(500, 6)) == []


def test_the_curve_is_the_mean_of_each_stretch() -> None:
    curve = show_learning([(0.0, 0.0), (2.0, 3.0), (1.0, -1.0)], copies=8)
    assert curve.content["x"] == [16, 24]
    assert curve.content["y"] == {"mean return": [1.5, -1.0]}
    long = show_learning([(1.0, 2.0)] * 1000, copies=1).content
    assert long["x"] == list(range(5, 1001, 5))
    assert set(long["y"]["mean return"]) == {2.0}
