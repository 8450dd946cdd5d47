"""Alignment as a run: stages that leave alone what is not theirs, resumes in every stage, starts, tables, mistakes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend import recipes
from descend.cli import main
from descend.data.text.preference_source import Preferences
from descend.engine import checkpoint
from descend.engine.frozen import checksum
from descend.errors import Mistake
from descend.kinds import alignment_stages
from descend.kinds.align_language import PlainText, RewardStart
from descend.kinds.start_language import StartLanguage
from descend.models import load
from descend.models.gpt2 import GPT2, GPT2Config, GPT2ForSequenceClassification
from descend.models.lstm_lm import RecurrentLMConfig
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from tests.close import close
from tests.engine.small import train, training

CHAIN = ("pretrain", "instruct", "reward", "policy")
MODEL = GPT2Config(context=40, width=16, depth=1, heads=2, dropout=0.0)
EQUAL = InStages((0.25, 0.25, 0.25, 0.25))
DATA = Preferences(records=40, vocab=300, noise=0.5)
LONG = replace(MODEL, context=64)
MORE = Preferences(records=300, vocab=300)


def small(name: str, *, path: str = "", start: str = "", steps: int = 8, **changes: Any) -> Any:
    """A recipe of opinions, small enough for a test."""
    whole: Any = recipes.get(f"{name}-opinions")
    loop = replace(whole.loop, steps=steps, batch=8, eval_every=steps, save_every=1, keep=0, threads=1, seed=1)
    given = {"model": MODEL, "data": replace(DATA, path=path), "start": StartLanguage(start), "longest": 12}
    return replace(whole, loop=loop, **(given | changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole chain, trained once: two steps of each stage, with a checkpoint after each, all of them kept."""
    folder = tmp_path_factory.mktemp("runs")
    train(small("rlhf", schedule=EQUAL), folder / "chain")
    return folder


def copy_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(before: dict[str, Tensor], module: nn.Module) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


@pytest.mark.system("rlhf", "three-stages")
@pytest.mark.system("multi-stage-training", "one-run")
@pytest.mark.system("multi-stage-training")
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


@pytest.mark.system("multi-stage-training", "one-run")
@pytest.mark.system("rlhf")
def test_one_table_holds_the_scores_of_all_stages(runs: Path) -> None:
    lines = [json.loads(line) for line in (runs / "chain/metrics.jsonl").read_text().splitlines()]
    [valid] = [line["valid"] for line in lines if "valid" in line]
    assert set(valid) == {
        "pretrain_loss", "instruct_loss", "instruct_token_loss", "instruct_exact",
        "reward_loss", "reward_accuracy", "reward_margin", "reward", "kl", "objective",
        "entropy", "length", "gain", "quality",
    }  # fmt: skip
    [told] = [line for line in lines if line["step"] == 8 and "grad_norm" in line]
    assert set(told) >= {"reward", "kl", "entropy", "length", "clip_fraction", "approximate_kl", "loss_policy_value"}
    for name in ("", "reward", "reference"):  # each stage's model opens like any other
        assert load(runs / "chain/checkpoints/last" / name)
    assert isinstance(load(runs / "chain/checkpoints/last/reward"), GPT2ForSequenceClassification)


@pytest.mark.system("multi-stage-training", "own-objective")
def test_each_stage_improves_its_own_objective(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores at the end of each of the four stages, beside those at its beginning."""
    monkeypatch.setattr(alignment_stages, "SCORED", 96)
    recipe = small(
        "rlhf", steps=120, schedule=InStages((0.2, 0.2, 0.6, 0.2)), optim=AdamW(lr=2e-3), data=MORE, model=LONG
    )
    recipe = replace(recipe, loop=replace(recipe.loop, eval_every=20, save_every=120))
    lines = [line["valid"] for line in train(recipe, tmp_path / "run").lines() if "valid" in line]
    told = {(name, n): lines[n][name] for n in (0, 1, 4, 5) for name in ("instruct_loss", "reward_loss")}
    assert lines[0]["pretrain_loss"] < 5.0 < log(250)
    assert told["instruct_loss", 1] < 0.9 * told["instruct_loss", 0]
    assert told["reward_loss", 1] == pytest.approx(log(2), abs=1e-4)
    assert told["reward_loss", 4] < log(2) - 0.02
    assert lines[5]["gain"] > 0.05


@pytest.mark.system("multi-stage-training", "skipped")
def test_stages_are_left_out_where_a_trained_model_is_given(runs: Path, tmp_path: Path) -> None:
    chain, judge = str(runs / "chain"), str(runs / "chain/checkpoints/last/reward")
    assert small("rlhf").stages == CHAIN
    assert small("rlhf", start=chain).stages == ("reward", "policy")
    assert small("ppo").stages == CHAIN[1:]
    assert small("dpo", start=chain).stages == ("prefer",)
    assert small("reward", start=chain).stages == ("reward",)
    last = small("ppo", start=chain, rewards=RewardStart(judge), steps=2)
    assert last.stages == ("policy",)
    assert last.schedule.shares == (recipes.get("ppo-opinions").schedule.shares[-1],)
    parts: Any = last.build()
    assert parts.task.frozen == ("reference", "reward")
    marks: Any = load(judge)
    close(parts.task.reward.score.weight, marks.score.weight)
    weights: Any = load(chain, checkpoint="last")
    close(parts.model.wte.weight, weights.wte.weight)


@pytest.mark.system("dpo", "reference-frozen")
def test_dpo_from_a_run_keeps_the_reference_out_of_its_checkpoints(runs: Path, tmp_path: Path) -> None:
    chain = str(runs / "chain")
    run = train(small("dpo", start=chain, steps=2), tmp_path / "run")
    _, state = checkpoint.load(run.checkpoints / "step-000002")
    assert state["frozen"] == {"reference": checksum(load(chain))}
    assert not list((run.folder / "checkpoints/last").glob("reference*"))
    [valid] = [line["valid"] for line in run.lines() if "valid" in line]
    assert set(valid) >= {"margin", "accuracy", "kl", "length", "chosen_length", "rejected_length", "quality"}
    assert isinstance(load(run.folder), GPT2)


def write_pairs(folder: Path, records: list[dict[str, Any]]) -> str:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


PAIRS = [{"prompt": f"how is {i} ?", "chosen": f"{i} is good", "rejected": f"{i} is bad"} for i in range(30)]


def test_pairs_of_ones_own_train_and_are_judged(tmp_path: Path) -> None:
    path = write_pairs(tmp_path, PAIRS)
    run = train(small("reward", path=path, steps=4), tmp_path / "run")
    assert run.lines()


@pytest.mark.parametrize("name", ["reward", "dpo", "ppo", "rlhf"])
def test_a_record_with_equal_responses_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_pairs(tmp_path, [*PAIRS, {"prompt": "how ?", "chosen": "good", "rejected": "good"}])
    assert main(["train", f"{name}-opinions", "--data.path", path, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "line 31: chosen and rejected are equal" in " ".join(said.split())
    assert not (tmp_path / "run/checkpoints").exists()


def test_mistakes_name_the_flag(runs: Path, tmp_path: Path) -> None:
    chain = str(runs / "chain")
    with pytest.raises(Mistake, match=r"--schedule.shares 0.5 0.5: this run has 4 stages \(pretrain, instruct"):
        small("rlhf", schedule=InStages((0.5, 0.5)))
    with pytest.raises(Mistake, match=r"holds a GPT2, which is no reward model"):
        small("ppo", start=chain, rewards=RewardStart(chain)).build()
    with pytest.raises(Mistake, match=r"reads other tokens than the language model"):
        small("ppo", rewards=RewardStart(f"{chain}/checkpoints/last/reward"), data=replace(DATA, vocab=340)).build()
    with pytest.raises(Mistake, match=r"tokens, and 2 leave room for an answer; give a larger --model.context"):
        small("ppo", longest=38).build()
    with pytest.raises(Mistake, match=r"the prompt has \d+ tokens, so with \d+ in all nothing is left"):
        small("dpo", model=replace(MODEL, context=8), longest=4).build()
    with pytest.raises(Mistake, match=r"--data.responses 1: a comparison needs at least 2"):
        small("reward", data=replace(DATA, responses=1)).build()
    short = tmp_path / "short.txt"
    short.write_text("too little .", encoding="utf-8")
    with pytest.raises(Mistake, match=r"--text.path .*: \d+ tokens are too few"):
        small("rlhf", text=PlainText(str(short))).build()
    with pytest.raises(Mistake, match=r"30 different prompts are too few|pairs.jsonl: 2 different prompts are too few"):
        small("reward", path=write_pairs(tmp_path, PAIRS[:2])).build()


def test_a_model_that_cannot_be_judged_or_judge_is_named() -> None:
    recipe = small("reward", model=RecurrentLMConfig(width=8, depth=1, context=40))
    with pytest.raises(Mistake, match=r"cannot become a reward model; use gpt2 or llama"):
        recipe.build()
