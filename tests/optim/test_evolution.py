"""Programs express AdamW and Lion exactly; the search keeps its size, drops the oldest and never loses its best."""

from __future__ import annotations

import random
from itertools import islice, pairwise

import pytest
import torch

from descend.errors import Mistake
from descend.optim.evolution import evolve, mutate, short_run
from descend.optim.lion import Lion
from descend.optim.programs import KEPT, OPERATIONS, Programmed, Statement, adamw, lion
from descend.optim.trajectory import quadratic, trajectory
from tests.close import close

SLUG = "optimizer-program-search"
BOWL = quadratic(torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64))
START = torch.tensor([4.0, -3.0], dtype=torch.float64)


@pytest.mark.system("optimizer-program-search", "language")
@pytest.mark.system(SLUG)
def test_adamw_and_lion_are_programs() -> None:
    pairs = (
        (adamw(0.1), lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1)),
        (lion(0.1), lambda p: Lion(p, 0.05, weight_decay=0.1)),
    )
    for program, oracle in pairs:
        ours = trajectory(lambda p, program=program: Programmed(p, program, 0.05), BOWL, START, 12).theta
        close(ours, trajectory(oracle, BOWL, START, 12).theta)
    assert [str(line) for line in lion()][:2] == ["u = interpolate(m, g, 0.1)", "u = sign(u)"]


@pytest.mark.system("optimizer-program-search", "evolution")
@pytest.mark.system(SLUG)
def test_the_population() -> None:
    """Size constant, the oldest leaves, the best ever never falls, and the search finds something better."""
    score = short_run(BOWL, START, 6, 0.3)
    cycles = list(islice(evolve(adamw(), score, population=8, tournament=3, seed=1), 60))
    assert {len(cycle.population) for cycle in cycles} == {8}
    for before, after in pairwise(cycles):
        assert before.population[1:] == after.population[:-1]
        assert after.best.score >= before.best.score
    births = [one.born for one in cycles[-1].population]
    assert births == sorted(births)
    assert births[0] > 0
    assert cycles[-1].best.score > score(adamw())


@pytest.mark.system(SLUG)
def test_every_mutant_runs() -> None:
    chance, program, scores = random.Random(0), lion(0.01), []
    score = short_run(BOWL, START, 2, 0.1)
    for _ in range(80):
        program = mutate(program, chance)
        scores.append(score(program))
    assert len(set(scores)) > 3
    assert score((Statement("u", "sqrt", ("w",)),)) == -float("inf"), "the root of a negative weight"


@pytest.mark.system("optimizer-program-search", "language")
@pytest.mark.system(SLUG)
def test_all_operations_and_the_state() -> None:
    x, y = [torch.tensor([4.0])], [torch.tensor([2.0])]
    expected = {"add": 6, "subtract": 2, "multiply": 8, "divide": 2, "sign": 1, "square": 16, "sqrt": 2, "absolute": 4}
    expected |= {"scale": 2, "shift": 4.5, "interpolate": 3, "unbias": 4 / (1 - 0.5**3)}
    assert expected.keys() == OPERATIONS.keys()
    for name, operation in OPERATIONS.items():
        assert operation.compute([x, y][: operation.inputs], 0.5, 3)[0].item() == pytest.approx(expected[name])
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    optimizer = Programmed([p], lion())
    optimizer.step()
    assert set(optimizer.state[p]) == {"step", *KEPT}


def test_a_tournament_as_large_as_the_population_is_refused() -> None:
    with pytest.raises(Mistake, match="below the population"):
        next(evolve(lion(), lambda program: 0.0, population=4, tournament=4))
