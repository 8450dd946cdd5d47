"""Recurrent classifiers and taggers: padding, what two directions can do, and where attention looks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.models.text_classifier import TextClassifier, TextClassifierConfig
from tests.close import close


def fit(model: nn.Module, x: Tensor, y: Tensor, steps: int = 45, lr: float = 0.02) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr)
    for _ in range(steps):
        optimizer.zero_grad()
        logits = model(x)
        nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.flatten()).backward()
        optimizer.step()


@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "many-to-one")
@pytest.mark.system("sequence-batching")
@pytest.mark.system("sequence-batching", "models")
@pytest.mark.parametrize("direction", ["forward", "concatenated", "summed"])
@pytest.mark.parametrize("head", ["last", "attention", "each"])
def test_batched_is_single(direction: Any, head: Any) -> None:
    torch.manual_seed(0)
    model = TextClassifier(TextClassifierConfig(20, 3, 6, 8, 2, 0.0, direction=direction, head=head)).eval()
    x = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    alone = model(x[1:, :2])
    close(model(x)[1:] if head != "each" else model(x)[1:, :2], alone)


@pytest.mark.system("bidirectional-lstm")
@pytest.mark.system("bidirectional-lstm", "next-word")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_next_word_decides_the_tag(seed: int) -> None:
    """Teddy bears, Teddy Roosevelt: only a net that reads backwards too can tag a word by the one after it."""
    torch.manual_seed(seed)
    x = torch.randint(1, 5, (64, 6), generator=torch.Generator().manual_seed(seed))
    y = torch.cat([x[:, 1:] % 2, torch.zeros(64, 1, dtype=torch.long)], dim=1)
    right = {}
    for direction in ("forward", "summed"):
        model = TextClassifier(TextClassifierConfig(5, 2, 8, 16, 1, 0.0, direction=direction, head="each"))
        fit(model, x, y)
        right[direction] = float((model(x)[:, :-1].argmax(-1) == y[:, :-1]).float().mean())
    assert right["summed"] > 0.99
    assert right["forward"] < 0.8


@pytest.mark.system("att-blstm")
@pytest.mark.system("att-blstm", "trained", "keyword")
def test_attention_finds_the_keyword() -> None:
    """One of twelve words is a keyword of four; the largest weight is on it.

    The memory starts short (b_f = -4): an LSTM that keeps everything can be asked at any place, and is.
    """
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    x = torch.randint(5, 12, (128, 12), generator=random)
    y, at = torch.randint(4, (128,), generator=random), torch.randint(12, (128,), generator=random)
    x[torch.arange(128), at] = y + 1
    model = TextClassifier(TextClassifierConfig(12, 4, 8, 16, 1, 0.0))
    for name, bias in model.layers.layers.named_parameters():
        if name.startswith("bias_ih"):
            bias.data.chunk(4)[1].fill_(-4.0)
    fit(model, x, y, 50)
    assert (model(x).argmax(-1) == y).float().mean() > 0.98
    weights = model.weights(x)
    close(weights.sum(1), torch.ones(128))
    assert (weights.argmax(1) == at).float().mean() > 0.9
    with pytest.raises(ValueError, match="'last' has no weights"):
        TextClassifier(TextClassifierConfig(12, head="last")).weights(x)


@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "sentiment")
def test_order_decides_not_the_words() -> None:
    """ "good, not bad" and "bad, not good": the net tells them apart, counted words cannot."""
    torch.manual_seed(0)
    good, bad, no = 1, 2, 3
    x, y = torch.tensor([[good, no, bad], [bad, no, good]] * 8), torch.tensor([1, 0] * 8)
    for cell in ("rnn", "lstm", "gru"):
        model = TextClassifier(TextClassifierConfig(4, 2, 8, 8, 1, 0.0, cell=cell, direction="forward", head="last"))
        fit(model, x, y, 50)
        assert (model(x).argmax(-1) == y).all()
    assert torch.equal(x[0].sort().values, x[1].sort().values)


@pytest.mark.system("att-blstm", "summed")
def test_the_directions_are_added_then_weighed() -> None:
    """Embedding, both directions, their SUM, one vector by the weights, classes: by hand from the parts."""
    torch.manual_seed(0)
    model = TextClassifier(TextClassifierConfig(12, 4, 8, 16, 1, 0.0)).double().eval()
    x = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    assert model.config.direction == "summed"
    both, _ = model.layers.layers(model.embed(x[1:, :2]))
    h = both[..., :16] + both[..., 16:]
    a = (h.tanh() @ model.head.w).softmax(-1)
    close(model.weights(x)[1], torch.cat([a[0], torch.zeros(2).double()]))
    close(model(x)[1], model.head.out((a[0, :, None] * h[0]).sum(0).tanh()))


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="head 'first' is unknown; known: last, attention, each"):
        TextClassifierConfig(head="first")  # type: ignore[arg-type]
