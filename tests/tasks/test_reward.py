"""Reward models: read at the last real token, in transformers' form, with trl's loss; and a ranking of known worth."""

from __future__ import annotations

from collections import defaultdict
from math import log
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import descend
from descend.contracts import Batch
from descend.errors import Mistake
from descend.losses.preference import ranking_loss
from descend.models._text_scores import copy_trunk
from descend.models.gpt2 import GPT2, GPT2Config, GPT2ForSequenceClassification
from descend.models.llama import Llama, LlamaConfig, LlamaForSequenceClassification
from descend.tasks.reward import RankResponses
from tests.close import close
from tests.tasks.alignment_cases import TINY, responses, scorer

LLAMA = LlamaConfig(vocab=11, context=12, width=8, depth=1, heads=2, kv_heads=1, hidden=12)


@pytest.fixture
def batch() -> Batch:
    torch.manual_seed(0)
    return responses(3)


@pytest.mark.system("reward-model")
@pytest.mark.system("reward-model", "last-real-token")
def test_the_reward_is_read_at_the_last_real_token(batch: Batch) -> None:
    torch.manual_seed(0)
    model = scorer()
    tokens, written = batch["tokens"][:, 0], batch["written"][:, 0]
    together = model(tokens, written)
    assert together.shape == (8,)
    noise = torch.where(written.flip(1).cumsum(1).flip(1) > 0, tokens, torch.randint(11, tokens.shape))
    close(model(noise, written), together)  # what comes after the text
    for i, (row, mine) in enumerate(zip(tokens, written, strict=True)):
        end = int(mine.nonzero().max()) + 1
        close(model(row[None, :end], mine[None, :end]), together[i : i + 1])  # and padding itself
        state = model.states(row[None, :end])[0, -1]
        close(together[i], state @ model.score.weight[0])


@pytest.mark.system("reward-model")
@pytest.mark.system("reward-model", "from-language-model")
@pytest.mark.parametrize(
    ("kind", "head", "config"),
    [(GPT2, GPT2ForSequenceClassification, TINY), (Llama, LlamaForSequenceClassification, LLAMA)],
)
def test_it_begins_as_the_language_model_and_is_transformers_classifier(
    kind: type, head: type, config: GPT2Config | LlamaConfig, batch: Batch, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    language, model = kind(config), head(config)
    for p in language.parameters():
        torch.nn.init.normal_(p, std=0.3)
    copy_trunk(model, language)
    tokens, written = batch["tokens"][:, 0], batch["written"][:, 0]
    close(model.states(tokens), language.states(tokens))
    assert not model(tokens, written).any()
    assert not [name for name in model.state_dict() if "head" in name]
    torch.nn.init.normal_(model.score.weight)
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert type(again) is head
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert theirs.config.num_labels == 1
    theirs.config.pad_token_id = 0
    with torch.no_grad():
        ours = model(tokens, written)
        close(again(tokens, written), ours)
        close(theirs(tokens).logits[:, 0], ours, loosen=5)
    theirs.save_pretrained(tmp_path / "theirs")
    close(descend.load(tmp_path / "theirs")(tokens, written), ours)
    with pytest.raises(Mistake, match="another size"):
        copy_trunk(head(type(config)(**{**vars(config), "vocab": 12})), language)


@pytest.mark.system("reward-model", "shift")
@pytest.mark.system("reward-model", "rankings")
def test_a_task_takes_the_mean_over_prompts_of_the_mean_over_pairs(batch: Batch) -> None:
    torch.manual_seed(0)
    model = scorer()
    task = RankResponses(model)
    rows = []
    for tokens, written in zip(batch["tokens"], batch["written"], strict=True):
        there = written.any(1)
        rows.append(ranking_loss(model(tokens[there], written[there])))
    close(task.loss(batch).total(), torch.stack(rows).mean())
    [move] = task.moves(batch)
    close(move.value().total(), task.score(batch)["loss"].mean())
    shifted = RankResponses(lambda tokens, written: model(tokens, written) + 7.0)
    close(shifted.score(batch)["loss"], task.score(batch)["loss"])
    level = RankResponses(lambda tokens, written: torch.zeros(len(tokens)))
    assert level.score(batch)["loss"].tolist() == pytest.approx([log(2)] * 8)
    assert level.score(batch)["accuracy"].tolist() == [0.5] * 8


@pytest.mark.system("reward-model", "trl")
def test_loss_and_accuracy_are_those_of_trl(tmp_path: Path) -> None:
    """RewardTrainer.compute_loss itself, with a trainer that holds only what it reads."""
    trl = pytest.importorskip("trl")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    batch, model = responses(2), scorer().float()
    model.save_pretrained(tmp_path)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    theirs.config.pad_token_id = 0
    flat = batch["tokens"].transpose(0, 1).flatten(0, 1)  # chosen, then rejected
    same = lambda x: x
    trainer = SimpleNamespace(
        model=theirs.eval(),
        args=SimpleNamespace(center_rewards_coefficient=None),
        accelerator=SimpleNamespace(gather=same, gather_for_metrics=same),
        _metrics={"eval": defaultdict(list)},
        _total_train_tokens=0,
    )
    inputs = {"input_ids": flat, "attention_mask": (flat > 0).long()}
    loss = trl.RewardTrainer.compute_loss(trainer, theirs, inputs)
    found = RankResponses(model).loss(batch)
    close(found.total(), loss, loosen=5)
    told = trainer._metrics["eval"]
    assert float(found.told["accuracy"]) == pytest.approx(told["accuracy"][0])
    assert float(found.told["margin"]) == pytest.approx(told["margin"][0], rel=1e-4)


@pytest.mark.system("reward-model")
def test_planted_rewards_come_back_up_to_a_constant_for_each_prompt() -> None:
    """Every pair of five responses as often as Bradley and Terry say: the differences of the rewards are known."""
    torch.manual_seed(0)
    strength = torch.tensor([1.0, 3.0, 3.0, 1.0, 3.0])
    pairs = [
        (i, j)
        for i in range(5)
        for j in range(5)
        if i != j
        for _ in range(int(4 * strength[i] / (strength[i] + strength[j])))
    ]
    rewards = torch.nn.Parameter(torch.zeros(2, 5))  # of two prompts
    task = RankResponses(lambda tokens, written: rewards[tokens[:, 0], tokens[:, 1]])
    tokens = torch.tensor([[[prompt, i], [prompt, j]] for prompt in (0, 1) for i, j in pairs])
    batch = {"tokens": tokens, "written": torch.ones_like(tokens, dtype=torch.bool)}
    search = torch.optim.LBFGS([rewards], max_iter=100, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def step() -> torch.Tensor:
        search.zero_grad()
        loss = task.loss(batch).total()
        loss.backward()
        return loss

    search.step(step)
    found = rewards.detach() - rewards.detach()[:, :1]
    assert float((found - (strength / strength[0]).log()).abs().max()) < 1e-4
