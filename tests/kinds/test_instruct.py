"""Instruction tuning as a run: from random weights and a base, with a penalty, replay and frozen parts; mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import descend
from descend import recipes
from descend.contracts import Batch
from descend.data.text.conversation_source import Conversations, GeneralText
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from descend.inference.chatter import Chatter
from descend.kinds.adapters import Lora
from descend.kinds.start_language import StartLanguage, grow_vocabulary, open_base
from descend.models import load
from descend.models.gpt2 import GPT2Config
from descend.models.llama import LlamaConfig
from descend.optim.rules import SGD, AdamW
from descend.optim.schedules import Constant
from descend.sampling.filters import TokenSampler
from descend.tasks.instruct import Instruct, InstructNear, relative_change
from descend.text.chat_template import parse_turns
from descend.text.tokenizer import Tokenizer
from tests.close import close
from tests.engine.small import small, text_file, train, training

LOOP = {"steps": 4, "batch": 12, "eval_every": 2, "save_every": 2, "threads": 1, "clip": 1.0}
MODEL = LlamaConfig(context=96, width=16, depth=2, heads=2, kv_heads=2, hidden=24, tied=True)


def recipe(path: str = "", start: str = "", **changes: Any) -> Any:
    whole: Any = recipes.get("instruct-tasks")
    data = Conversations(path=path, count=120, held_out=18, **changes.pop("data", {}))
    loop = replace(whole.loop, **(LOOP | changes.pop("loop", {})))
    given = {"model": MODEL, "schedule": Constant(), "start": StartLanguage(start)} | changes
    return replace(whole, data=data, loop=loop, **given)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A language model that knows nothing of roles."""
    folder = tmp_path_factory.mktemp("runs")
    model = GPT2Config(context=64, width=16, depth=2, heads=2, dropout=0.0)
    return str(train(replace(small(folder), model=model), folder / "base").folder)


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("data") / "chats.jsonl"
    lines = [
        {"messages": [{"role": "user", "content": f"cat {i}"}, {"role": "assistant", "content": f"mat {i % 3}"}]}
        for i in range(60)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return descend.train(recipe(), out=tmp_path_factory.mktemp("runs") / "tasks", quiet=True)[0]


@pytest.mark.system("instruction-tuning", "sft")
def test_the_likelihood_of_the_responses_rises_and_the_weights_move_little(base: str, chats: str) -> None:
    run = training(recipe(chats, base, loop={"batch": 57}, optim=SGD(0.02)))
    before: Any = grow_vocabulary(load(open_base(base).folder), run.parts.model.config.vocab)
    first = run.evaluate()
    for _ in range(12):
        run.advance()
    then = run.evaluate()
    assert then["loss"] < first["loss"]
    assert {"general_loss", "general_perplexity", "exact", "perplexity"} <= set(then)
    assert 0 < relative_change(run.parts.model, before) < 0.3


@pytest.mark.system("fine-tuning-objective")
@pytest.mark.system("fine-tuning-objective", "objective")
@pytest.mark.system("fine-tuning-objective", "full")
def test_full_fine_tuning_is_a_plain_loop_that_moves_every_tensor(base: str, chats: str) -> None:
    """θ ← θ − η ∇(Σ_pairs −log P(y | x) / b), written out; the embedding stays the output matrix."""
    run = training(recipe(chats, base, optim=SGD(0.1, 0.0), loop={"clip": 0.0}))
    plain: Any = training(recipe(chats, base)).parts.model
    start = {name: p.clone() for name, p in plain.named_parameters()}
    tokenizer = open_base(base).tokenizer
    assert run.parts.model.config.vocab == tokenizer.vocab + 3, "three role tokens"
    stream: Any = recipe(chats, base).build().stream
    for _ in range(3):
        run.advance()
        batch = next(stream)
        total = torch.zeros(())
        for row, said in zip(batch["tokens"], batch["said"], strict=True):
            row, said = row[row >= 0], said[row >= 0]
            log_p = plain(row[None, :-1])[0].log_softmax(-1)
            total = total - log_p.gather(1, row[1:, None])[said[1:]].sum()
        grads = torch.autograd.grad(total / len(batch["tokens"]), list(plain.parameters()))
        with torch.no_grad():
            for p, g in zip(plain.parameters(), grads, strict=True):
                p -= 0.1 * g
    for name, p in run.parts.model.named_parameters():
        close(p, dict(plain.named_parameters())[name])
        assert not torch.equal(p, start[name]), name
    assert not [name for name in run.parts.model.state_dict() if name.startswith("head")]


def test_a_run_is_evaluated_and_talked_to(run: Any, chats: str) -> None:
    tokenizer = Tokenizer.load(run.folder / "checkpoints" / "last")
    chatter = Chatter.open(run.folder)
    prompt = chatter.prepare([{"role": "user", "content": "Reverse abc."}], 6)
    assert parse_turns(prompt.ids, tokenizer) == [{"role": "user", "content": "Reverse abc."}]
    assert (prompt.tokens, prompt.dropped) == (6, 0)
    assert descend.chat(run.folder, "Reverse abc.", tokens=6, temperature=0) == "".join(
        chatter.answer(prompt, TokenSampler(temperature=0))
    )
    assert descend.generate(run.folder, "x", tokens=1).startswith("x")
    assert set(descend.evaluate(run.folder)["test"]) == {"exact", "loss", "perplexity"}
    new = descend.evaluate(run.folder, data=chats)["new"]
    assert set(new) == {"exact", "loss", "perplexity"}
    parts = recipe().build()
    assert parts.exhibits is not None
    [shown] = parts.exhibits()
    assert shown.title == "Answers"
    assert "Exact: capital" in shown.note


@pytest.mark.system("pretrained-weight-penalty", "frozen-copy")
def test_the_penalty_holds_the_weights_and_its_copy_is_not_saved(base: str, chats: str, tmp_path: Path) -> None:
    slow = {"optim": SGD(0.005, 0.0), "loop": {"clip": 0.0}}
    near, plain = (recipe(chats, base, penalty=weight, **slow) for weight in (20.0, 0.0))
    trained: dict[str, float] = {}
    for name, one in {"near": near, "plain": plain}.items():
        found = training(one)
        start = {key: p.clone() for key, p in found.parts.model.named_parameters()}
        for _ in range(12):
            metrics = found.advance()
        trained[name] = sum(
            float((p - start[key]).detach().square().sum()) for key, p in found.parts.model.named_parameters()
        )
        if name == "near":
            task: Any = found.task
            assert isinstance(task, InstructNear)
            for key, p in task.pretrained.named_parameters():
                assert torch.equal(p, start[key]), "the copy moved"
            assert {"loss_response", "loss_penalty", "distance"} <= set(metrics)
    assert trained["near"] < 0.7 * trained["plain"]
    saved = train(near, tmp_path / "near")
    for file in saved.folder.rglob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            assert not [key for key in tensors.keys() if "pretrained" in key]  # noqa: SIM118
    state = json.loads((saved.folder / "checkpoints" / "last" / "state.json").read_text())
    assert "pretrained" in json.dumps(state)


@pytest.mark.system("catastrophic-forgetting", "replay")
def test_replay_gives_the_share_that_was_asked_for(base: str, chats: str, tmp_path: Path) -> None:
    text = str(text_file(tmp_path))
    parts = recipe(chats, base, data={"general": GeneralText(text, 0.25)}, loop={"batch": 40}).build()
    batches: list[Batch] = [next(parts.stream) for _ in range(25)]
    source = torch.cat([batch["source"] for batch in batches])
    assert int(source.sum()) == 250
    for batch in batches:
        general = batch["source"] == 1
        assert batch["said"][general][:, 1:].all()
        assert (batch["tokens"][general] >= 0).all()
        assert not batch["said"][~general].all(1).any()
    scores = score_set(parts.task, parts.valid)
    assert {"loss", "general_loss"} <= set(scores)


@pytest.mark.system("catastrophic-forgetting", "early-stopping")
def test_a_general_benchmark_stops_the_run_and_its_best_weights_are_kept(base: str, chats: str, tmp_path: Path) -> None:
    """With --watch "min general_loss" the best checkpoint is the step that forgot least, and patience ends the run."""
    text = str(text_file(tmp_path))
    loop = {"steps": 40, "batch": 19, "eval_every": 2, "save_every": 2, "watch": "min general_loss", "patience": 2}
    made = recipe(chats, base, data={"general": GeneralText(text, 0.0)}, loop=loop, optim=SGD(0.3))
    saved = train(made, tmp_path / "run")
    lines = map(json.loads, (saved.folder / "metrics.jsonl").read_text().splitlines())
    scores = {line["step"]: line["valid"]["general_loss"] for line in lines if "valid" in line}
    best = min(scores, key=lambda step: scores[step])
    assert best < max(scores) < 40, "it stopped early, and not at its best"
    model: Any = load(saved.folder)
    [general] = [batch for batch in made.build().valid if "x" in batch][:1]
    task = Instruct(model)
    whole = score_set(task, [batch for batch in made.build().valid if "x" in batch])
    assert whole["general_loss"] == pytest.approx(scores[best], rel=1e-5)
    assert general["x"].shape[1] > 8


@pytest.mark.system("instruction-tuning", "adapter")
def test_an_adapter_learns_in_the_place_of_the_weights(base: str, chats: str) -> None:
    """The same recipe, and the same conversations; the base stays as it is to the bit."""
    found: dict[str, float] = {}
    for name, adapter in {"weights": None, "adapter": Lora(rank=4, alpha=8.0, targets=("qkv", "out"))}.items():
        run = training(recipe(chats, base, adapter=adapter, optim=AdamW(lr=2e-2), loop={"batch": 19}))
        before = {key: p.clone() for key, p in run.parts.model.named_parameters()}
        learns = {key for key, p in run.parts.model.named_parameters() if p.requires_grad}
        first = run.evaluate()["loss"]
        for _ in range(12):
            run.advance()
        found[name] = run.evaluate()["loss"] / first
        moved = {key for key, p in run.parts.model.named_parameters() if not torch.equal(p, before[key])}
        assert moved <= learns
        assert (len(learns) == len(before)) is (adapter is None)
    assert max(found.values()) < 0.99


def test_frozen_parts_stay_and_the_rest_moves(base: str, chats: str) -> None:
    run = training(recipe(chats, start=base, optim=SGD(0.1)))
    frozen = training(replace(recipe(chats, base, optim=SGD(0.1)), start=StartLanguage(base, "h.0, wte")))
    start = {name: p.clone() for name, p in run.parts.model.named_parameters()}
    for _ in range(2):
        frozen.advance()
    same = {name for name, p in frozen.parts.model.named_parameters() if torch.equal(p, start[name])}
    assert same == {name for name in start if name.startswith(("h.0.", "wte"))}


def test_a_bigger_vocabulary_changes_no_prediction(base: str) -> None:
    model = load(open_base(base).folder)
    grown = grow_vocabulary(model, model.config.vocab + 5)
    tokens = torch.arange(12)[None]
    close(grown(tokens)[..., : model.config.vocab], model(tokens))
    assert grown.config.vocab == model.config.vocab + 5
    assert grow_vocabulary(model, 3) is model


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"penalty": 1.0}, "--penalty stays near a pre-trained model"),
        ({"start": StartLanguage("", "embed")}, "--start.freeze keeps what was trained"),
        ({"model": replace(MODEL, context=20)}, "beyond the context of 20, so nothing of it is left"),
        ({"model": replace(MODEL, heads=3)}, "--model"),
    ],
)
def test_mistakes_of_a_new_model(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        replace(recipe(), **changes).build()


def test_mistakes_of_a_base(base: str, chats: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"no part 'h.2'.*It has wte, wpe, h.0"):
        replace(recipe(chats), start=StartLanguage(base, "h.2")).build()
    with pytest.raises(Mistake, match="nowhere"):
        recipe(chats, str(tmp_path / "nowhere")).build()
    other = descend.train(replace(recipes.get("mlp-moons"), loop=replace(recipes.get("mlp-moons").loop, steps=1)),
                          out=tmp_path / "moons", quiet=True)[0]  # fmt: skip
    with pytest.raises(Mistake, match="does not write text; give a language model"):
        recipe(chats, str(other.folder)).build()
    bare = tmp_path / "bare"
    load(open_base(base).folder).save_pretrained(bare)
    (bare / "tokenizer.json").unlink(missing_ok=True)
    with pytest.raises(Mistake, match=r"tokenizer.json does not exist"):
        recipe(chats, str(bare)).build()
