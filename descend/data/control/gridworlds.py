"""Small worlds as decision processes: cells of a grid, drawn in text, and a chain of states.

    S  a start (several: each as likely)       G  the goal: +1, the episode ends
    .  free; also F                            H  a hole: the episode ends; also X
    #  a wall                                  C  a cliff: −100, back to the start

An action moves one cell left, down, right or up, as in FrozenLake; a wall or the border holds. With `slip` p it goes to
one of the two sides instead, each with p/2. `step` is the reward of every move, on top of those above.

Systems: mdp
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch

from descend.errors import Mistake
from descend.ops.decisions.process import DecisionProcess, Outcomes, ProcessNames, build_process, process_from_arrays

MOVES = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
LETTERS = "S.FGHXC#"
FALL = -100.0


def build_gridworld(
    rows: Sequence[str], gamma: float, slip: float = 0.0, step: float = 0.0, where: str = "the map"
) -> DecisionProcess:
    """The process of a map; state s is the cell in row s // columns."""
    check_map(rows, where)
    height, width = len(rows), len(rows[0])
    cells, turns = "".join(rows), list(MOVES.values())
    starts = [s for s, letter in enumerate(cells) if letter == "S"]
    table: list[tuple[int, int, float, int, float, bool]] = []
    for s, a in product(range(len(cells)), range(4)):
        if cells[s] in "GHX#C":
            table.append((s, a, 1.0, s, 0.0, True))
            continue
        for turned, p in ((0, 1 - slip), (-1, slip / 2), (1, slip / 2)):
            down, right = turns[(a + turned) % 4]
            i, j = min(max(s // width + down, 0), height - 1), min(max(s % width + right, 0), width - 1)
            for share, to, reward, end in land(cells, s, i * width + j, starts) if p else ():
                table.append((s, a, share * p, to, reward + step, end))
    begin = torch.zeros(len(cells), dtype=torch.float64)
    begin[starts] = 1 / len(starts)
    columns = [list(column) for column in zip(*table, strict=True)]
    labels = ProcessNames(actions=tuple(MOVES), grid=(height, width))
    return build_process((len(cells), 4), Outcomes(*columns), gamma, begin, labels)


def land(cells: str, s: int, to: int, starts: list[int]) -> list[tuple[float, int, float, bool]]:
    """What follows a move from cell s to a cell: (probability, next, reward, end)."""
    if cells[to] == "#":
        return [(1.0, s, 0.0, False)]
    if cells[to] == "C":
        return [(1 / len(starts), start, FALL, False) for start in starts]
    return [(1.0, to, float(cells[to] == "G"), cells[to] in "GHX")]


def check_map(rows: Sequence[str], where: str) -> None:
    for i, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]) or not row:
            raise Mistake(f"{where}, line {i}: {len(row)} cells, but line 1 has {len(rows[0])}")
        for letter in row:
            if letter not in LETTERS:
                raise Mistake(f"{where}, line {i}: {letter!r} is no cell; use S . G H C #")
    if not any("S" in row for row in rows):
        raise Mistake(f"{where}: there is no start; mark it with S")


def build_chain(length: int, gamma: float, slip: float = 0.0) -> DecisionProcess:
    """States 0..length−1 in a row: "back" and "on"; +1 at the last one, which ends the episode. With probability `slip`
    the other way is gone. It begins in state 0, which "back" does not leave."""
    if length < 2:
        raise Mistake(f"a chain of {length} states: at least 2")
    p = torch.zeros(length, 2, length, dtype=torch.float64)
    r = torch.zeros_like(p)
    for s in range(length - 1):
        for a, share in ((0, 1 - slip), (1, slip)):
            p[s, a, max(s - 1, 0)] += share
            p[s, a, s + 1] += 1 - share
    p[-1, :, -1], r[length - 2, :, -1] = 1.0, 1.0
    start = torch.zeros(length, dtype=torch.float64)
    start[0] = 1.0
    return process_from_arrays(p, r, gamma, start, ProcessNames(actions=("back", "on"), grid=(1, length)))
