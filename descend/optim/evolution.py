"""Program search with regularized evolution.

    population of P, in order of age.  Each cycle:  T < P are drawn, the best of them is the parent;
    a mutated copy of it joins the population, and the oldest leaves

Every individual dies, however good: what survives must score well again and again in its children. The start is a
warm one (AdamW), or any program. A candidate is scored by a short training run; one that breaks scores −∞.

Systems: optimizer-program-search
"""

from __future__ import annotations

import math
import random as chance
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.optim.programs import FRESH, KEPT, OPERATIONS, READ, Program, Programmed, Statement
from descend.optim.trajectory import trajectory


class Candidate(NamedTuple):
    """A program, its score (higher is better) and the cycle in which it was born."""

    program: Program
    score: float
    born: int


class Cycle(NamedTuple):
    """After a cycle: the population from the oldest to the youngest, and the best program ever seen."""

    population: tuple[Candidate, ...]
    best: Candidate


def evolve(
    first: Program,
    score: Callable[[Program], float],
    population: int = 20,
    tournament: int = 5,
    seed: int = 0,
) -> Iterator[Cycle]:
    """Search without end from `first` and mutants of it; take as many cycles as you like."""
    if not 1 <= tournament < population:
        raise Mistake(
            f"a tournament of {tournament} among {population}: it must be at least 1 and below the population"
        )
    random = chance.Random(seed)
    programs = [first, *(mutate(first, random) for _ in range(population - 1))]
    living = deque(Candidate(program, score(program), 0) for program in programs)
    best = max(living, key=lambda one: one.score)
    born = 0
    while True:
        yield Cycle(tuple(living), best)
        born += 1
        parent = max(random.sample(list(living), tournament), key=lambda one: one.score)
        program = mutate(parent.program, random)
        child = Candidate(program, score(program), born)
        living.append(child)
        living.popleft()
        best = max(best, child, key=lambda one: one.score)


def mutate(program: Program, random: chance.Random) -> Program:
    """Insert a statement, delete one, replace one, or move a constant."""
    lines, kind = list(program), random.choice(("insert", "delete", "replace", "constant"))
    at = random.randrange(len(lines)) if lines else 0
    if kind == "insert" or not lines:
        lines.insert(random.randint(0, len(lines)), random_statement(random))
    elif kind == "delete":
        del lines[at]
    elif kind == "replace":
        lines[at] = random_statement(random)
    else:
        lines[at] = lines[at]._replace(constant=lines[at].constant * 2 ** random.uniform(-2, 2))
    return tuple(lines)


def random_statement(random: chance.Random) -> Statement:
    """Any statement of the language, its constant between 0.001 and 1 in size."""
    name, operation = random.choice(list(OPERATIONS.items()))
    inputs = tuple(random.choice((*READ, *KEPT, *FRESH)) for _ in range(operation.inputs))
    constant = 10 ** random.uniform(-3, 0) if operation.constant else 0.0
    return Statement(random.choice((*KEPT, *FRESH)), name, inputs, constant)


def short_run(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int, lr: float) -> Callable[[Program], float]:
    """The score of a program: minus the loss after a few steps, −∞ when it is not a number."""

    def score(program: Program) -> float:
        path = trajectory(lambda params: Programmed(params, program, lr), loss, start, steps)
        with torch.no_grad():
            value = -float(loss(path.theta[-1]))
        return value if math.isfinite(value) else -math.inf

    return score
