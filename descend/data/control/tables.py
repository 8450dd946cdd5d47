"""Decision processes that somebody else wrote down: gymnasium's tables, and files.

    FrozenLake-v1, CliffWalking-v1, Taxi-v4, ..    env.unwrapped.P[s][a] = [(p, s', r, terminated), ..]
    process.csv     state,action,probability,next,reward,terminated: a line for each outcome; the last column may be
                    left out. States and actions are numbers or names. Episodes begin in the state of the first line
    process.json    {"P": S × A × S, "R": S × A or S × A × S, "start": S, "states": names, "actions": names}; only P and
                    R are needed, and without a start every state is one
    map.txt         cells of a grid, as `gridworlds` draws them

In a CSV, a state that only appears under `next` has no actions: it is an end.

Systems: mdp
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import gymnasium
import torch

from descend.data.control.gridworlds import build_gridworld
from descend.errors import Mistake, nearest
from descend.files import field, items, read_json, read_text, write_text
from descend.ops.decisions.process import DecisionProcess, Outcomes, ProcessNames, build_process, process_from_arrays

COLUMNS = ("state", "action", "probability", "next", "reward", "terminated")
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
Row = tuple[int, int, float, int, float, bool]


def read_env(name: str, gamma: float) -> tuple[DecisionProcess, int]:
    """The table of a gymnasium environment, and the steps after which it cuts an episode off (0: never)."""
    try:
        env = gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        hint = nearest(name, gymnasium.registry) or " " + " ".join(str(error).split())
        raise Mistake(f"--data.env {name}: gymnasium cannot make it.{hint}") from None
    bare: Any = env.unwrapped
    table, seen, taken = getattr(bare, "P", None), env.observation_space, env.action_space
    if not (
        isinstance(table, dict)
        and isinstance(seen, gymnasium.spaces.Discrete)
        and isinstance(taken, gymnasium.spaces.Discrete)
    ):
        raise Mistake(
            f"--data.env {name}: it has no table of transitions (unwrapped.P); use FrozenLake-v1, CliffWalking-v1,"
            " Taxi-v4 or --data.path FILE, or train it by a DQN or PPO recipe"
        )
    rows = [(s, a, *outcome) for s, choices in table.items() for a, found in choices.items() for outcome in found]
    states, actions = int(seen.n), int(taken.n)
    start = torch.as_tensor(bare.initial_state_distrib, dtype=torch.float64)
    labels = ProcessNames(grid=_find_grid(bare, states))
    longest = env.spec.max_episode_steps if env.spec else None
    env.close()
    return build_process((states, actions), as_outcomes(rows), gamma, start, labels), longest or 0


def _find_grid(bare: Any, states: int) -> tuple[int, int] | None:
    """Rows and columns of a world whose states are its cells."""
    desc = getattr(bare, "desc", None)
    shape: tuple[int, ...] = tuple(getattr(bare, "shape", None) or (desc.shape if desc is not None else ()))
    return (int(shape[0]), int(shape[1])) if len(shape) == 2 and shape[0] * shape[1] == states else None


def as_outcomes(rows: list[Row]) -> Outcomes:
    """(state, action, probability, next, reward, terminated), one for each outcome."""
    return Outcomes(*(list(column) for column in zip(*rows, strict=True)))


def read_process(path: str | Path, gamma: float) -> DecisionProcess:
    """The process in a file: .csv, .json, or a map (.txt)."""
    path = Path(path)
    reader = {".csv": read_csv, ".json": read_arrays, ".txt": read_map}.get(path.suffix.lower())
    if reader is None:
        raise Mistake(f"{path}: a decision process is a .csv of outcomes, a .json of P and R, or a .txt map")
    return reader(path, gamma)


def read_map(path: Path, gamma: float) -> DecisionProcess:
    rows = read_text(path).rstrip().splitlines()
    if not rows:
        raise Mistake(f"{path} is empty; draw a map of S . G H C #")
    return build_gridworld(rows, gamma, where=str(path))


def read_arrays(path: Path, gamma: float) -> DecisionProcess:
    data = read_json(path)
    arrays = {}
    for name in ("P", "R"):
        try:
            arrays[name] = torch.tensor(field(data, name, list, path), dtype=torch.float64)
        except (ValueError, TypeError) as error:
            raise Mistake(f"{path}: {name} is no array of numbers ({error})") from None
    states, actions = (tuple(items(data, name, str, path)) if name in data else () for name in ("states", "actions"))
    start = torch.tensor(items(data, "start", float, path)).double() if "start" in data else None
    try:
        return process_from_arrays(arrays["P"], arrays["R"], gamma, start, ProcessNames(states, actions))
    except Mistake as mistake:
        raise Mistake(f"{path}: {mistake}") from None


def read_csv(path: Path, gamma: float) -> DecisionProcess:
    lines = csv.reader(io.StringIO(read_text(path)))
    head = [name.strip().lower() for name in next(lines, [])]
    if missing := [name for name in COLUMNS[:-1] if name not in head]:
        raise Mistake(f"{path}, line 1: no column {missing[0]}; the header is {','.join(COLUMNS)}")
    where = [head.index(name) if name in head else -1 for name in COLUMNS]
    raw = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    if not raw:
        raise Mistake(f"{path}: no outcomes below the header")
    for line, row in raw:
        if len(row) != len(head):
            raise Mistake(f"{path}, line {line}: {len(row)} values under {len(head)} columns")
    cells = [(line, [row[k].strip() if k >= 0 else "" for k in where]) for line, row in raw]
    states = order_names([row[0] for _, row in cells], [row[3] for _, row in cells])
    actions = order_names([row[1] for _, row in cells])
    rows: list[Row] = []
    for line, (s, a, p, to, r, end) in cells:
        if end.lower() not in TRUTH:
            raise Mistake(f"{path}, line {line}: terminated {end!r}; use true or false")
        numbers = read_numbers(p, r, f"{path}, line {line}")
        rows.append((states[s], actions[a], numbers[0], states[to], numbers[1], TRUTH[end.lower()]))
    acting = {row[0] for row in rows}
    rows += [(s, a, 1.0, s, 0.0, True) for s in range(len(states)) if s not in acting for a in range(len(actions))]
    start = torch.zeros(len(states), dtype=torch.float64)
    start[rows[0][0]] = 1.0
    try:
        labels = ProcessNames(tuple(states), tuple(actions))
        return build_process((len(states), len(actions)), as_outcomes(rows), gamma, start, labels)
    except Mistake as mistake:
        raise Mistake(f"{path}: {mistake}") from None


def read_numbers(probability: str, reward: str, where: str) -> tuple[float, float]:
    """The numbers of a line: a probability in 0..1 and a finite reward."""
    found = []
    for name, text, inside in (
        ("probability", probability, lambda x: 0 <= x <= 1),
        ("reward", reward, lambda x: abs(x) < float("inf")),
    ):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not inside(value):
            must = "be from 0 to 1" if name == "probability" else "be a finite number"
            raise Mistake(f"{where}: {name} {text!r} must {must}")
        found.append(value)
    return found[0], found[1]


def order_names(*columns: list[str]) -> dict[str, int]:
    """Name -> number: whole numbers in their order, else as they appear."""
    names = list(dict.fromkeys(name for column in columns for name in column))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    return {name: number for number, name in enumerate(names)}


def write_csv(process: DecisionProcess, path: str | Path) -> None:
    """Write a process as `read_csv` reads it; γ is not part of the file, and of several starts it holds none."""
    at = (process.start > 0).nonzero()[:, 0].tolist()
    if len(at) != 1:
        raise Mistake(f"{path}: episodes begin in {len(at)} states; a .csv holds one start")
    states, actions = process.state_names, process.action_names
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    state, action = process.pair // process.actions, process.pair % process.actions
    columns = (state, action, process.probability, process.following, process.reward, process.ends)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True), key=lambda row: row[0] != at[0])
    for s, a, p, to, r, end in rows:
        table.writerow([states[s], actions[a], repr(p), states[to], repr(r), str(end).lower()])
    write_text(Path(path), out.getvalue())
