"""Fine-tuning: each head learns its task, scores are torch's, and a pre-trained encoder beats a new one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.data.streams.arrays import Shuffled
from descend.data.text.masking import Corruption, Dynamic, Masking
from descend.models.bert import (
    TINY,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from descend.tasks.fine_tune import ClassifyText, FindSpan, TagTokens
from descend.tasks.masked import MaskedLanguage
from descend.weights.labels import Labels
from descend.weights.transfer import take_over
from tests.close import close
from tests.tasks.topics import CLS, FIRST, MASK, PAD, SEP, VOCAB, texts, train

CONFIG = replace(TINY, vocab=VOCAB, context=24, depth=1, labels=Labels(("a", "b", "c")))


def padded(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of 3 to 9 words, their mask and topics."""
    x, topic = texts(n, 9, seed)
    lengths = torch.randint(4, 11, (n,), generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(10) < lengths[:, None]
    return torch.where(mask, x, PAD), mask, topic


def tags(n: int, seed: int) -> dict[str, Tensor]:
    """The tag of a word is the topic, raised by one after a word with an even number."""
    x, mask, topic = padded(n, seed)
    even = torch.cat([torch.zeros(n, 1), (x[:, :-1] % 2 == 0) & (x[:, :-1] >= FIRST)], dim=1).long()
    at = mask & (torch.arange(10) > 0)
    return {"x": x, "mask": mask, "y": (topic[:, None] + even) % 3, "at": at}


def spans(n: int, seed: int) -> dict[str, Tensor]:
    """[CLS] word [SEP] words: where, in the second part, is the run of that word?"""
    random = torch.Generator().manual_seed(seed)
    x = FIRST + torch.randint(20, (n, 12), generator=random)
    asked = FIRST + 20 + torch.randint(10, (n,), generator=random)
    first = 3 + torch.randint(6, (n,), generator=random)
    last = first + torch.randint(3, (n,), generator=random)
    place = torch.arange(12)
    x = torch.where((place >= first[:, None]) & (place <= last[:, None]), asked[:, None], x)
    x[:, 0], x[:, 1], x[:, 2] = CLS, asked, SEP
    at = (place > 2).expand(n, -1)
    mask = torch.ones(n, 12, dtype=torch.bool)
    return {"x": x, "mask": mask, "segments": at.long(), "at": at, "y": torch.stack([first, last], dim=1)}


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "tagging")
def test_a_tagger_learns_from_its_neighbours() -> None:
    torch.manual_seed(0)
    task = TagTokens(BertForTokenClassification(CONFIG))
    b = tags(50, 0)
    logits = task.model(b["x"], b["mask"])
    [(_, loss, _)] = task.moves(b)
    close(loss(), F.cross_entropy(logits.transpose(1, 2), torch.where(b["at"], b["y"], -100)))
    train(task, (tags(48, step) for step in range(90)), lr=8e-3)
    with torch.no_grad():
        assert task.eval().score(tags(200, 999))["accuracy"].mean() > 0.9


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "span")
def test_answers_are_found() -> None:
    torch.manual_seed(0)
    task = FindSpan(BertForQuestionAnswering(CONFIG), longest=3)
    b = spans(50, 0)
    start, end = task.model(b["x"], b["mask"], b["segments"])
    [(_, loss, _)] = task.moves(b)
    close(loss(), (F.cross_entropy(start, b["y"][:, 0]) + F.cross_entropy(end, b["y"][:, 1])) / 2)
    train(task, (spans(48, step) for step in range(110)), lr=8e-3)
    with torch.no_grad():
        scores = {k: float(v.mean()) for k, v in task.eval().score(spans(200, 999)).items()}
    assert scores["f1"] > 0.9
    assert scores["f1"] >= scores["exact"] > 0.8


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "pairs")
def test_pairs_are_classified_with_their_segments() -> None:
    """Is the second text's word an even one? It stands at place 3 or 4, and the segments say where."""
    torch.manual_seed(0)
    task: Any = ClassifyText(BertForSequenceClassification(replace(CONFIG, labels=Labels())))

    def batch(n: int, seed: int) -> dict[str, Tensor]:
        random = torch.Generator().manual_seed(seed)
        x = FIRST + torch.randint(6, (n, 5), generator=random)
        first = 3 + torch.randint(2, (n, 1), generator=random)
        x[:, 0] = CLS
        segments = (torch.arange(5) == first).long()
        return {"x": x, "segments": segments, "y": (x * segments).sum(1) % 2}

    train(task, (batch(48, step) for step in range(100)), lr=1e-2)
    with torch.no_grad():
        assert task.eval().score(batch(200, 999))["accuracy"].mean() > 0.9
        blind = {**batch(200, 999), "segments": torch.zeros(200, 5, dtype=torch.long)}
        assert task.score(blind)["accuracy"].mean() < 0.85


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "classification", "against-scratch")
@pytest.mark.system("bert")
@pytest.mark.system("bert", "fine-tuned")
@pytest.mark.system("mlm")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_pre_trained_encoder_beats_a_new_one(seed: int) -> None:
    """Few labelled texts of three words a topic; the test texts have none of those words, but pre-training saw them."""
    corrupt = Corruption(Masking(), VOCAB, MASK, (PAD, CLS, SEP, MASK))
    torch.manual_seed(10 * seed)
    source = BertForMaskedLM(CONFIG)
    stream = Dynamic(Shuffled({"x": texts(256, 9, seed)[0]}, 32, 1 + seed), corrupt, 1 + seed)
    train(MaskedLanguage(source), (next(stream) for _ in range(90)), lr=5e-3)
    few, topic = texts(24, 9, 5, range(3))
    test, right = texts(300, 9, 6, range(3, 12))
    accuracy = {}
    for start in ("pre-trained", "new"):
        torch.manual_seed(10 * seed + 1)
        task = ClassifyText(BertForSequenceClassification(CONFIG))
        if start == "pre-trained":
            take_over(task.model, source, ("embed", "encoder"))
        train(task, ({"x": few, "y": topic} for _ in range(25)), lr=1e-3)
        with torch.no_grad():
            accuracy[start] = float(task.eval().score({"x": test, "y": right})["accuracy"].mean())
    assert accuracy["pre-trained"] > 0.65  # one of the three seeds leaves two topics in one, the others none
    assert accuracy["new"] < 0.45
