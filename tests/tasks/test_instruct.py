"""Instruction tuning: only what the assistant says counts, as in trl, and exact match is what greedy writing finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from descend.data.text.conversation_batches import encode_records
from descend.data.text.conversations import Dialogue
from descend.engine.evaluation import score_set
from descend.losses.instruction import response_losses, response_mean, sequence_losses
from descend.models.llama import TINY, Llama
from descend.sampling.generate import generate
from descend.tasks.instruct import Instruct, relative_change
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer
from tests.close import close
from tests.tasks.cases import conversations

transformers = pytest.importorskip("transformers")

QUESTIONS = {"2 + 2?": "4", "Reverse abc.": "cba", "What?": "You are terse."}


def example(b: int = 4, t: int = 9, v: int = 13) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, tokens and what was said: each row from another place on."""
    chance = torch.Generator().manual_seed(3)
    logits = torch.randn(b, t - 1, v, generator=chance, dtype=torch.float64)
    tokens = torch.randint(v, (b, t), generator=chance)
    said = (torch.arange(t) >= torch.tensor([[2], [5], [8], [4]])) & (
        torch.arange(t) < torch.tensor([[9], [7], [9], [6]])
    )
    return logits, tokens, said


@pytest.mark.system("instruction-tuning")
@pytest.mark.system("instruction-tuning", "sum")
def test_both_forms_of_the_loss_are_the_sum_over_the_response() -> None:
    logits, tokens, said = example()
    by_hand = []
    for i, (first, last) in enumerate([(2, 9), (5, 7), (8, 9), (4, 6)]):
        log_p = logits[i].log_softmax(-1)
        by_hand.append(-sum(log_p[t - 1, tokens[i, t]] for t in range(first, last)))
    expected = torch.stack(by_hand)
    close(response_losses(logits, tokens, said), expected)
    close(sequence_losses(logits, tokens, said), expected)
    close(response_mean(logits, tokens, said) * said.sum(), expected.sum())
    twice = [torch.cat([x[:1, :1], x[:1, 1:], x[:1, 1:]], dim=1) for x in (tokens, said)]
    two = response_losses(torch.cat([logits, logits], dim=1)[:1], *twice)
    close(two, 2 * expected[:1])  # an answer said twice counts twice: a sum, no mean


@pytest.mark.system("instruction-tuning", "labels")
def test_labels_of_the_instruction_do_not_matter() -> None:
    logits, tokens, said = example()
    logits.requires_grad_()
    other = torch.where(said, tokens, (tokens + 5) % 13)
    assert not torch.equal(other, tokens)
    losses, grads = [], []
    for labels in (tokens, other):
        loss = response_losses(logits, labels, said)
        losses.append(loss.detach())
        grads.append(torch.autograd.grad(loss.sum(), logits)[0])
    assert torch.equal(*losses)
    assert torch.equal(*grads)
    assert not grads[0][~said[:, 1:]].any()
    wrong = torch.where(said, (tokens + 5) % 13, tokens)
    assert not torch.equal(response_losses(logits, wrong, said), losses[0])


def test_padding_and_company_change_nothing() -> None:
    torch.manual_seed(0)
    model, batch = Llama(TINY).double(), conversations()
    task = Instruct(model)
    losses = task.score(batch)["loss"]
    for i, length in enumerate((batch["tokens"] >= 0).sum(1).tolist()):
        alone = {"tokens": batch["tokens"][i : i + 1, :length], "said": batch["said"][i : i + 1, :length]}
        close(task.score(alone)["loss"], losses[i : i + 1])
    found = task.loss(batch)
    close(found.terms["response"] * 8, losses[:6].sum())
    close(found.terms["replay"] * 8, losses[6:].sum())
    del batch["source"]
    close(task.loss(batch).total(), losses.mean())


@pytest.mark.system("instruction-tuning", "peer")
@pytest.mark.system("instruction-tuning", "dialogues")
def test_the_loss_is_trls(tmp_path: Path) -> None:
    """Their tokens, their mask and their mean over tokens, from the same messages by the same template."""
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    tokenizer = add_roles(Tokenizer.characters("".join(f"{x} {y}\n" for x, y in QUESTIONS.items())))
    tokenizer = tokenizer.with_specials({"pad_token": "<pad>"})
    tokenizer.save(tmp_path)
    rows = [
        {"prompt": [{"role": "user", "content": x}], "completion": [{"role": "assistant", "content": y}]}
        for x, y in QUESTIONS.items()
    ]
    first = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "4"}]
    rows.append({"prompt": [*first, *rows[0]["prompt"]], "completion": rows[0]["completion"]})
    records = [Dialogue("x", (*row["prompt"], *row["completion"]), since=len(row["prompt"])) for row in rows]
    torch.manual_seed(0)
    model = Llama(Llama.Config(tokenizer.vocab, 64, 32, 2, 4, 2, 48))
    model.save_pretrained(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    trainer = trl.SFTTrainer(
        model=theirs,
        args=trl.SFTConfig(output_dir=str(tmp_path / "out"), report_to=[], use_cpu=True, bf16=False, max_length=None,
                           per_device_train_batch_size=len(rows), completion_only_loss=True,
                           gradient_checkpointing=False, disable_tqdm=True),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path),
    )  # fmt: skip
    inputs = next(iter(trainer.get_train_dataloader()))
    expected = trainer.compute_loss(trainer.model, dict(inputs))
    arrays = encode_records(records, tokenizer, 64)
    said = inputs["labels"] != -100
    assert sorted(said.sum(1).tolist()) == sorted(arrays["said"].sum(1).tolist())
    rows_of = lambda tokens, real: sorted(row[keep].tolist() for row, keep in zip(tokens, real, strict=True))
    assert rows_of(arrays["tokens"], arrays["tokens"] >= 0) == rows_of(
        inputs["input_ids"], inputs["attention_mask"] > 0
    )
    ours = Instruct(model).loss(arrays).total()
    close(ours * len(rows) / arrays["said"].sum(), expected)


def test_exact_match_is_what_greedy_writing_finds() -> None:
    torch.manual_seed(0)
    tokenizer = add_roles(Tokenizer.characters("ab"))
    model = Llama(Llama.Config(tokenizer.vocab, 32, 32, 1, 4, 4, 48))
    texts = ["a", "b", "ab", "ba"]
    right = []
    for text in texts:  # answers of the model itself are exact, others are not
        prompt = tokenizer.encode_special(f"<|user|>{text}<|assistant|>")
        answer = generate(model.decoder(), [prompt], 4)[0]
        right.append((prompt, answer))
    rows = [p + a for p, a in right] + [p + a[:-1] + [(a[-1] + 1) % tokenizer.vocab] for p, a in right]
    width = max(map(len, rows))
    tokens = torch.tensor([row + [-1] * (width - len(row)) for row in rows])
    said = torch.tensor([[len(p) <= t < len(p) + 4 for t in range(width)] for p, _ in right * 2])
    scores = Instruct(model).score({"tokens": tokens, "said": said})
    assert scores["exact"].tolist() == [1.0] * 4 + [0.0] * 4


@pytest.mark.system("catastrophic-forgetting")
@pytest.mark.system("catastrophic-forgetting", "measured")
def test_general_and_domain_loss_stand_side_by_side() -> None:
    torch.manual_seed(0)
    task, batch = Instruct(Llama(TINY)), conversations()
    del batch["source"]
    general = {"x": torch.randint(61, (3, 7)), "y": torch.randint(61, (3, 7))}
    scores = score_set(task, [batch, general])
    assert set(scores) == {"loss", "exact", "perplexity", "general_loss", "general_perplexity"}
    model: Any = task.model
    close(scores["general_loss"], cross_entropy(model(general["x"]).flatten(0, 1), general["y"].flatten()).double(), 10)
    close(scores["loss"], task.score(batch)["loss"].mean().double())


def test_the_relative_change_of_weights() -> None:
    torch.manual_seed(0)
    before = Llama(TINY)
    after = Llama(TINY)
    after.load_state_dict({name: 1.25 * x for name, x in before.state_dict().items()})
    close(relative_change(after, before), 0.25)
    assert relative_change(before, before) == 0
