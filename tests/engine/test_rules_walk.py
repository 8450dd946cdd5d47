"""Every optimizer rule takes the same steps in two processes as in one, or refuses sharded parameters."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from descend.engine.distributed import World
from tests.close import close
from tests.engine.rules_walk import MODES, find_rules, take_steps
from tests.pair import run_pair

NEEDS_WHOLE = {"FletcherReeves", "HessianFree", "LBFGS", "PolakRibiere", "Rprop"}


@cache
def step_alone(name: str) -> dict[str, Tensor]:
    return take_steps(find_rules()[name], World())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("rules")
    done = run_pair("tests.engine.rules_walk", str(where))
    assert done.returncode == 0, done.stderr
    return where


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", find_rules())
def test_two_processes_take_the_steps_of_one(folder: Path, name: str, mode: str) -> None:
    found, one = load_file(folder / f"{name}-{mode}.safetensors"), step_alone(name)
    if mode == "fsdp" and name in NEEDS_WHOLE:
        assert not found
        return
    assert found.keys() == one.keys()
    for key in one:
        close(found[key], one[key])


@pytest.mark.parametrize("name", find_rules())
def test_micro_batches_take_the_steps_of_the_batch(name: str) -> None:
    one, four = step_alone(name), take_steps(find_rules()[name], World(), accumulate=4)
    for key in one:
        close(four[key], one[key])
