"""Queue, memory and comparison of a step are the same however it is split: into micro-batches or among processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file

from descend.engine.distributed import World
from tests.close import close
from tests.pair import run_pair
from tests.tasks.self_supervised_split import NAMES
from tests.tasks.split import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("processes")
    done = run_pair("tests.tasks.self_supervised_split", str(where))
    assert done.returncode == 0, done.stderr
    return where


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("MoCo", marks=pytest.mark.system("moco", "state")),
        pytest.param("PIRL", marks=pytest.mark.system("pirl", "memory")),
        pytest.param("SimCLR", marks=pytest.mark.system("simclr", "whole-step")),
    ],
)
def test_a_step_in_parts_leaves_the_same_behind(folder: Path, name: str) -> None:
    whole, told = train(name, 1, World())
    parts, said = train(name, 4, World())
    shared = load_file(folder / f"{name}-ddp.safetensors")
    for key, value in whole.items():
        close(parts[key], value)
        close(shared[key], value)
    assert said["loss"] == pytest.approx(told["loss"], rel=1e-9)
    assert float(shared["metric loss"]) == pytest.approx(told["loss"], rel=1e-9)
    assert {"MoCo": "queue", "PIRL": "memory", "SimCLR": "model.projector.weight"}[name] in whole
    assert name in NAMES
