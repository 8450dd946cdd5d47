"""Every kind of game is the same game however a step is split: into micro-batches, or among processes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file

from descend.contracts import Batch
from descend.engine.distributed import World
from tests.close import close
from tests.pair import run_pair
from tests.tasks.game_variants import MODES, RULES, games, train


@cache
def whole(name: str) -> tuple[Batch, dict[str, float]]:
    return train(name, 1, World())


def same(name: str, state: Batch, metrics: dict[str, float]) -> None:
    expected, told = whole(name)
    assert state.keys() == expected.keys()
    for key in state:
        close(state[key], expected[key])
    assert metrics == pytest.approx(told, rel=1e-9, abs=1e-12)


@pytest.mark.system("gan", "step-counts")
@pytest.mark.system("wgan-gp", "split")
@pytest.mark.system("spectral-normalization", "once-an-update")
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("accumulate", [2, 4])
def test_micro_batches_are_the_batch(name: str, accumulate: int) -> None:
    same(name, *train(name, accumulate, World()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("games")
    done = run_pair("tests.tasks.game_variants", str(where))
    assert done.returncode == 0, done.stderr
    return where


@pytest.mark.system("wgan-gp", "split")
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for mode in MODES for name in games(mode)])
def test_two_processes_are_one(folder: Path, name: str, mode: str) -> None:
    found = load_file(folder / f"{name}-{mode}.safetensors")
    metrics = {key.removeprefix("metric "): float(found.pop(key)) for key in list(found) if key.startswith("metric ")}
    same(name, found, metrics)
