"""A step is the same step however its batch is split: into micro-batches, among processes, or not at all."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from descend.engine.distributed import World
from tests.close import close
from tests.pair import run_pair
from tests.tasks.cases import CASES, ONE_PROCESS, RANDOM, make, task_classes
from tests.tasks.split import MODES, train

MEASURED = ("explained_variance",)  # a ratio of variances: reported as the mean over the parts


@cache
def whole(name: str) -> tuple[dict[str, Tensor], dict[str, float]]:
    return train(name, 1, World())


def test_every_task_has_a_case_or_a_reason() -> None:
    assert task_classes().keys() == {*CASES, *RANDOM}


SCORED = ("Classify", "ClassifyFirstNodes", "ClassifyGraphs", "ClassifyNodes", "ClassifyNodesAlone", "ClassifyText",
          "FindSpan", "Instruct", "Language", "Localise", "LogCounts", "LogRatios", "MaskedImage", "MaskedLanguage",
          "NegativeSampling", "PredictLinks", "Regress", "RegressGraphs", "Supervise", "TagTokens",
          "TruncatedLanguage")  # fmt: skip


@pytest.mark.parametrize("name", SCORED)
def test_what_is_minimised_is_the_mean_of_what_is_scored(name: str) -> None:
    task, batch = make(name)
    [move] = list(task.moves(batch))
    close(move.value().total(), task.score(batch)["loss"].mean())


@pytest.mark.system("gradient-accumulation")
@pytest.mark.system("gradient-accumulation", "large-batch")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("accumulate", [2, 4])
def test_micro_batches_are_the_batch(name: str, accumulate: int) -> None:
    state, metrics = train(name, accumulate, World())
    same(name, state, metrics)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("processes")
    done = run_pair("tests.tasks.split", str(where))
    assert done.returncode == 0, done.stderr
    return where


@pytest.mark.system("pathways-training", "every-task")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [name for name in CASES if name not in ONE_PROCESS])
def test_two_processes_are_one(folder: Path, name: str, mode: str) -> None:
    found = load_file(folder / f"{name}-{mode}.safetensors")
    metrics = {key.removeprefix("metric "): float(found.pop(key)) for key in list(found) if key.startswith("metric ")}
    same(name, found, metrics)


def same(name: str, state: dict[str, Tensor], metrics: dict[str, float]) -> None:
    """Weights, loss, its terms and what was measured are those of the whole batch."""
    expected, told = whole(name)
    assert state.keys() == expected.keys()
    for key in state:
        close(state[key], expected[key])
    assert metrics.keys() == told.keys()
    for key in told:
        assert metrics[key] == pytest.approx(told[key], rel=1e-9, abs=1e-12) or key in MEASURED
