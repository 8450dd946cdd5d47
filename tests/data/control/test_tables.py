"""Tables of gymnasium and files: what is read is what is there, and a bad line is named."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import pytest
import torch

from descend.data.control.gridworlds import build_gridworld
from descend.data.control.table_arena import TableArena
from descend.data.control.tables import read_env, read_process, write_csv
from descend.errors import Mistake
from tests.close import close
from tests.ops.decisions.test_process import random_arrays

HEAD = "state,action,probability,next,reward,terminated\n"


@pytest.mark.system("mdp")
@pytest.mark.system("mdp", "model")
@pytest.mark.parametrize(("name", "limit"), [("FrozenLake-v1", 100), ("CliffWalking-v1", 0), ("Taxi-v4", 200)])
def test_a_table_is_gymnasiums(name: str, limit: int) -> None:
    process, longest = read_env(name, 0.9)
    bare = gymnasium.make(name).unwrapped
    assert longest == limit
    for s, choices in bare.P.items():  # type: ignore[attr-defined]
        for a, outcomes in choices.items():
            i = slice(int(process.bounds[s * process.actions + a]), int(process.bounds[s * process.actions + a + 1]))
            ours = zip(*(x[i].tolist() for x in (process.probability, process.following, process.reward)), strict=True)
            assert [pytest.approx(outcome[:3]) for outcome in outcomes] == list(ours)
            assert all(ended or not theirs[3] for ended, theirs in zip(process.ends[i], outcomes, strict=True))
    close(process.start, bare.initial_state_distrib)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FrozenLake-v9", "--data.env FrozenLake-v9: gymnasium cannot make it"),
        ("FrozenLak-v1", "Did you mean 'FrozenLake-v1'"),
        ("CartPole-v1", "it has no table of transitions .* use FrozenLake-v1, CliffWalking-v1, Taxi-v4 or --data.path"),
    ],
)
def test_an_environment_without_a_table_is_named(name: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        read_env(name, 0.9)


@pytest.mark.system("mdp", "model")
def test_a_csv_with_names(tmp_path: Path) -> None:
    """The end has no lines of its own; the last column may be left out."""
    path = tmp_path / "process.csv"
    lines = ["low,wait,1,low,-1", "low,search,0.25,low,0", "low,search,0.75,high,2", "high,wait,1,low,1", ""]
    path.write_text("state,action,probability,next,reward\n" + "\n".join(lines) + "high,search,1,off,5\n")
    process = read_process(path, 0.9)
    assert (process.state_names, process.action_names) == (["low", "high", "off"], ["wait", "search"])
    assert process.start.tolist() == [1, 0, 0]
    close(process.expected_reward, torch.tensor([[-1, 1.5], [1, 5], [0, 0]], dtype=torch.float64))
    assert process.transitions()[0, 1].tolist() == [0.25, 0.75, 0]
    assert process.ends.tolist() == [False, False, False, False, True, True, True]


@pytest.mark.parametrize("source", ["FrozenLake-v1", "map"])
def test_written_and_read_again(source: str, tmp_path: Path) -> None:
    process = build_gridworld(["S.", "HG"], 0.9, slip=0.1) if source == "map" else read_env(source, 0.9)[0]
    write_csv(process, tmp_path / "p.csv")
    again = read_process(tmp_path / "p.csv", 0.9)
    assert again.action_names == process.action_names
    for name in ("pair", "following", "probability", "reward", "ends", "start"):
        assert torch.equal(getattr(again, name), getattr(process, name)), name
    with pytest.raises(Mistake, match=r"p.csv: episodes begin in 2 states; a .csv holds one start"):
        write_csv(build_gridworld(["SSG"], 0.9), tmp_path / "p.csv")


@pytest.mark.system("mdp", "model")
def test_arrays_and_maps(tmp_path: Path) -> None:
    p, r = random_arrays(3, 2)
    path, drawn = tmp_path / "process.json", tmp_path / "map.txt"
    content = {"P": p.tolist(), "R": r.tolist(), "start": [0, 1, 0], "states": ["a", "b", "c"], "actions": ["x", "y"]}
    path.write_text(json.dumps(content))
    process = read_process(path, 0.5)
    close(process.transitions(), p)
    close(process.expected_reward, (p * r).sum(-1))
    assert (process.state_names, process.start.tolist()) == (["a", "b", "c"], [0, 1, 0])
    drawn.write_text("S.\n.G\n")
    assert read_process(drawn, 0.9).labels.grid == (2, 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", "state,action,next,reward\n", "p.csv, line 1: no column probability; the header is state,action"),
        ("p.csv", HEAD, "p.csv: no outcomes below the header"),
        ("p.csv", HEAD + "0,0,1,0,0,no\n0,1,1\n", "p.csv, line 3: 3 values under 6 columns"),
        ("p.csv", HEAD + "0,0,1,0,nan,no\n", "p.csv, line 2: reward 'nan' must be a finite number"),
        ("p.csv", HEAD + "0,0,often,0,1,no\n", "p.csv, line 2: probability 'often' must be from 0 to 1"),
        ("p.csv", HEAD + "0,0,1,0,1,perhaps\n", "p.csv, line 2: terminated 'perhaps'; use true or false"),
        ("p.csv", HEAD + "0,0,.5,0,1,no\n", "p.csv: state 0, action 0: the probabilities sum to 0.5, not 1"),
        ("p.json", '{"P": [[[1, 0], [1]]], "R": []}', "p.json: P is no array of numbers"),
        ("p.json", '{"R": []}', "p.json"),
        ("p.json", '{"P": [[[0.5]]], "R": [[1]]}', "p.json: state 0, action 0: the probabilities sum to 0.5"),
        ("p.json", '{"P": [[[1]]], "R": [[1]], "states": ["a", "b"]}', "p.json: there are 2 names of states, but 1 st"),
        ("p.txt", "S.\n.\n", "p.txt, line 2: 1 cells, but line 1 has 2"),
        ("p.txt", "\n", "p.txt is empty"),
        ("p.xml", "", "p.xml: a decision process is a .csv of outcomes, a .json of P and R, or a .txt map"),
    ],
)
def test_a_bad_file_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Mistake, match=message):
        read_process(tmp_path / name, 0.9)


def test_episodes_are_those_of_their_seeds() -> None:
    """Alone or in company; going right slides into a hole or the goal, and a limit cuts off."""
    process, _ = read_env("FrozenLake-v1", 1.0)
    arena, right = TableArena(process, 200), lambda state: torch.full_like(state, 2)
    together = arena(right, range(300))
    assert torch.equal(torch.cat([arena(right, [seed]) for seed in range(20)]), together[:20])
    assert 0 < together.mean() < 0.2
    cliff, _ = read_env("CliffWalking-v1", 1.0)
    assert TableArena(cliff, 70)(lambda state: torch.zeros_like(state), [1]).tolist() == [-70.0]
