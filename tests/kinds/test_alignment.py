"""Alignment as a run: stages that leave alone what is not theirs, resumes in every stage, starts, tables, mistakes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import descend
from descend import recipes
from descend.data.text.preference_source import Preferences
from descend.engine import checkpoint
from descend.errors import Mistake
from descend.kinds.align_language import PlainText, RewardStart
from descend.kinds.start_language import StartLanguage
from descend.models import load
from descend.models.gpt2 import GPT2, GPT2Config, GPT2ForSequenceClassification
from descend.optim.stages import InStages
from tests.engine.small import train, training

CHAIN = ("pretrain", "instruct", "reward", "policy")
MODEL = GPT2Config(context=40, width=16, depth=1, heads=2, dropout=0.0)
EQUAL = InStages((0.25, 0.25, 0.25, 0.25))
DATA = Preferences(records=40, vocab=300, noise=0.5)


def small(name: str, *, path: str = "", start: str = "", steps: int = 8, **changes: Any) -> Any:
    """A recipe of opinions, small enough for a test."""
    whole: Any = recipes.get(f"{name}-opinions")
    loop = replace(whole.loop, steps=steps, batch=8, eval_every=steps, save_every=1, threads=1, seed=1)
    given = {"model": MODEL, "data": replace(DATA, path=path), "start": StartLanguage(start), "longest": 12}
    return replace(whole, loop=loop, **(given | changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole chain, trained once: two steps of each stage, with a checkpoint after each, all of them kept."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "KEEP", 8)
        train(small("rlhf", schedule=EQUAL), folder / "chain")
    return folder


def copy_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(before: dict[str, Tensor], module: nn.Module) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


@pytest.mark.system("rlhf", "three-stages")
@pytest.mark.system("multi-stage-training", "one-run")
def test_a_stage_changes_what_it_trains_and_not_a_bit_of_the_rest() -> None:
    """After each step of the chain: which of language model, reward model, reference and critic are as they were."""
    recipe = small("rlhf", steps=8, schedule=EQUAL)
    run = training(recipe)
    chain: Any = run.task
    parts = {name: getattr(chain, name) for name in ("language", "reward", "reference")}
    parts["critic"] = chain.policy.value
    changed: list[set[str]] = []
    for step in range(8):
        language = copy_state(parts["language"])
        chain.enter(step // 2)  # as the first batch of a stage does: what is handed over, before anything is learned
        if step == 4:
            shared = {name for name in parts["reward"].state_dict() if name in language}
            assert len(shared) > 10
            assert all(torch.equal(parts["reward"].state_dict()[name], language[name]) for name in shared)
        if step == 6:
            assert same(language, parts["reference"])
        before = {name: copy_state(part) for name, part in parts.items()}
        run.advance()
        changed.append({name for name, part in parts.items() if not same(before[name], part)})
    assert [chain.links[n].name for n in range(4)] == list(CHAIN)
    assert changed == [{"language"}] * 4 + [{"reward"}] * 2 + [{"language", "critic"}] * 2


@pytest.mark.system("rlhf", "resume")
@pytest.mark.system("multi-stage-training", "one-run")
@pytest.mark.parametrize("stopped", [1, 3, 5, 7])
def test_a_run_that_stopped_in_any_stage_goes_on_to_the_bit(stopped: int, runs: Path, tmp_path: Path) -> None:
    again = tmp_path / "run"
    shutil.copytree(runs / "chain", again, symlinks=True)
    for step in range(stopped + 1, 9):
        shutil.rmtree(again / f"checkpoints/step-{step:06d}")
    train(small("rlhf", schedule=EQUAL), again, resume=True)
    whole, mine = (folder / "checkpoints/step-000008" for folder in (runs / "chain", again))
    files = [path.relative_to(whole) for path in whole.rglob("*.safetensors")]
    assert {str(path) for path in files} >= {"model.safetensors", "reward/model.safetensors", "state.safetensors"}
    for file in files:
        assert (whole / file).read_bytes() == (mine / file).read_bytes(), file
