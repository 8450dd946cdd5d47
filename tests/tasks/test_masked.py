"""Pre-training as a task: what is scored, what λ = 0 means, and that it learns what it should."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.contracts import as_loss
from descend.data.streams.arrays import Shuffled
from descend.data.text.masking import Corruption, Dynamic, Masking, mask_arrays
from descend.metrics.by_frequency import accuracy_by_frequency
from descend.models.bert import TINY, BertForMaskedLM, BertForPreTraining
from descend.models.roberta import TINY as TINY_ROBERTA
from descend.models.roberta import RobertaForMaskedLM
from descend.tasks.masked import MaskedAndNext, MaskedLanguage
from descend.weights.transfer import take_over
from tests.close import close
from tests.tasks.topics import CLS, FIRST, MASK, PAD, SEP, VOCAB, WORDS, texts, train

CONFIG = replace(TINY, vocab=VOCAB, context=24, depth=1)
CORRUPT = Corruption(Masking(), VOCAB, MASK, (PAD, CLS, SEP, MASK))


def pairs(n: int, seed: int) -> dict[str, Tensor]:
    """[CLS] six words [SEP] six words; the second half is of the same topic (0) or of another text's (1)."""
    a, topic = texts(n, 6, seed)
    b, other = texts(n, 6, seed + 1)
    follows = (torch.arange(n) % 2 == 0) | (topic == other)
    same = FIRST + topic[:, None] * WORDS + (b[:, 1:] - FIRST) % WORDS
    second = torch.where(follows[:, None], same, b[:, 1:])
    x = torch.cat([a, torch.full((n, 1), SEP), second], dim=1)
    segments = torch.cat([torch.zeros(n, 8), torch.ones(n, 6)], dim=1).long()
    return mask_arrays({"x": x, "segments": segments, "follows": (~follows).long()}, CORRUPT, seed)


@pytest.mark.system("mlm")
@pytest.mark.system("next-sentence-prediction")
@pytest.mark.system("next-sentence-prediction", "joint")
@pytest.mark.system("bert")
@pytest.mark.system("bert", "joint")
def test_loss_and_scores_are_torchs() -> None:
    torch.manual_seed(0)
    b = pairs(9, 0)
    task = MaskedAndNext(BertForPreTraining(CONFIG).eval(), weight=0.5)
    with torch.no_grad():
        words, follows = task.model(b["x"], None, b["segments"])
    labels = torch.where(b["at"], b["y"], -100)
    expected = F.cross_entropy(words.transpose(1, 2), labels), F.cross_entropy(follows, b["follows"])
    [(_, loss, _)] = task.moves(b)
    close(as_loss(loss()).total(), expected[0] + 0.5 * expected[1])
    scores = task.score(b)
    close(scores["loss"].mean(), expected[0])
    close(scores["next_loss"].mean(), expected[1])
    assert scores["accuracy"].shape == (int(b["at"].sum()),)
    assert abs(float(expected[1]) - math.log(2)) < 0.05  # at the start a guess


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "no-next-sentence")
@pytest.mark.system("bert")
@pytest.mark.system("bert", "joint")
@pytest.mark.system("next-sentence-prediction")
def test_without_next_sentences_it_is_masked_language_modelling() -> None:
    torch.manual_seed(0)
    b = pairs(9, 0)
    both = BertForPreTraining(CONFIG).eval()
    alone = BertForMaskedLM(CONFIG).eval()
    take_over(alone, both, ("embed", "encoder", "masked"))
    [(_, joint, _)] = MaskedAndNext(both, weight=0.0).moves({**b, "segments": torch.zeros_like(b["segments"])})
    [(_, only, _)] = MaskedLanguage(alone).moves(b)
    close(as_loss(joint()).total(), as_loss(only()).total())


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "nothing-chosen")
def test_a_batch_in_which_nothing_is_masked() -> None:
    b = {**pairs(2, 0), "at": torch.zeros(2, 14, dtype=torch.bool)}
    task = MaskedLanguage(BertForMaskedLM(CONFIG))
    [(_, loss, _)] = task.moves(b)
    as_loss(loss()).total().backward()
    assert as_loss(loss()).total() == 0
    assert task.score(b)["loss"].shape == (0,)


def stream(steps: int, seed: int) -> Iterator[dict[str, Tensor]]:
    inner = Dynamic(Shuffled({"x": texts(256, 11, 0)[0]}, 32, seed), CORRUPT, seed)
    return (next(inner) for _ in range(steps))


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "frequency")
@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "trained")
def test_learns_to_read_the_context() -> None:
    """Below the entropy of a guess by frequency (log 36), near log 12: the topic is read from the other words."""
    torch.manual_seed(0)
    model = RobertaForMaskedLM(replace(TINY_ROBERTA, vocab=VOCAB, depth=1, pad=PAD))
    task = MaskedLanguage(model)
    train(task, stream(90, 1), lr=5e-3)
    valid = mask_arrays({"x": texts(300, 11, 99)[0]}, CORRUPT, 0)
    with torch.no_grad():
        task.eval()
        scores = task.score(valid)
        loss = float(scores["loss"].mean())
        counts = torch.bincount(texts(256, 11, 0)[0].flatten(), minlength=VOCAB)
        (few, rare), (many, frequent) = accuracy_by_frequency(
            scores["accuracy"], valid["y"][valid["at"]], counts, [int(counts[FIRST:].median())]
        )
        blind = {**valid, "x": torch.where(valid["at"], MASK, PAD)}  # nothing to read
        guess = task.score(blind)
    assert math.log(12) - 0.1 < loss < math.log(36) - 0.5
    assert guess["loss"].mean() > math.log(36) - 0.1
    unigram = float((valid["y"][valid["at"]] == counts[FIRST:].argmax() + FIRST).float().mean())
    assert scores["accuracy"].mean() > 1.5 * unigram
    assert few * rare + many * frequent == pytest.approx(float(scores["accuracy"].sum()))


@pytest.mark.system("next-sentence-prediction")
@pytest.mark.system("next-sentence-prediction", "joint")
@pytest.mark.system("bert")
@pytest.mark.system("bert", "joint", "unigram")
def test_joint_pre_training_lowers_both_losses() -> None:
    torch.manual_seed(0)
    task = MaskedAndNext(BertForPreTraining(CONFIG))
    before = {k: float(v.mean()) for k, v in task.score(pairs(200, 999)).items()}
    train(task, (pairs(32, 2 * step) for step in range(170)))
    with torch.no_grad():
        after = {k: float(v.mean()) for k, v in task.eval().score(pairs(200, 999)).items()}
    assert after["loss"] < before["loss"] - 0.5
    assert after["loss"] < math.log(36) - 0.3  # the entropy of 36 equally frequent words
    assert after["next_loss"] < before["next_loss"] - 0.25
    assert after["next_accuracy"] > 0.8


@pytest.mark.system("next-sentence-prediction", "first-token")
def test_the_answer_is_read_from_the_first_token() -> None:
    """DLN says that the output at [CLS] is not used in pre-training; without it there is nothing to answer from."""
    torch.manual_seed(0)
    b, model = pairs(5, 0), BertForPreTraining(CONFIG).eval()
    hidden = model.hidden(b["x"], None, b["segments"]).detach().requires_grad_()
    close(model(b["x"], None, b["segments"])[1], model.follows(model.pooler(hidden)))
    F.cross_entropy(model.follows(model.pooler(hidden)), b["follows"]).backward()
    assert hidden.grad is not None
    assert hidden.grad[:, 0].abs().amin(1).max() > 0
    assert not hidden.grad[:, 1:].any()


@pytest.mark.system("next-sentence-prediction", "bag-of-words")
def test_counted_words_solve_pairs_of_separable_topics() -> None:
    """VOM 13.3.2: nothing about order or coherence is needed; the topics of both halves, counted, are enough."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2 * VOCAB, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def counted(n: int, seed: int) -> tuple[Tensor, Tensor]:
        b = pairs(n, seed)
        halves = [F.one_hot(half, VOCAB).sum(1).float() for half in (b["y"][:, 1:7], b["y"][:, 8:])]
        return torch.cat(halves, dim=1), b["follows"]

    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for step in range(120):
        x, y = counted(64, 2 * step)
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    x, y = counted(500, 9999)
    assert (net(x).argmax(1) == y).float().mean() > 0.95
