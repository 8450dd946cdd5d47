"""Encoder-decoders: padding, decoding = teacher forcing on what was written, a reversal learned and its alignment."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.models.seq2seq import TINY_INPUT, Seq2Seq, Seq2SeqConfig
from descend.sampling.beam import beam_search
from descend.sampling.generate import generate
from tests.close import close

CONTEXTS = ["start", "every-step", "current", "previous"]


def small(context: Any, cell: Any = "gru", score: Any = "additive", width: int = 12) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(Seq2SeqConfig(61, width, 1, 0.0, cell, context, score)).eval()


@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-encoder-decoder", "decoding")
@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_padding_and_decoding(context: str, cell: str) -> None:
    model, (source, target) = small(context, cell), TINY_INPUT()
    padded = torch.nn.functional.pad(source, (0, 3))
    close(model(padded, target), model(source, target))
    close(model(padded, target, padded != 0), model(source, target))
    written = generate(model.decoder(source), torch.zeros(2, 1, dtype=torch.long), 6)
    read = torch.tensor([[0, *row[:-1]] for row in written])
    assert model(source, read).argmax(-1).tolist() == written  # reading its own words
    ours = beam_search(model.decoder(source), torch.zeros(2, 1, dtype=torch.long), beams=3, tokens=5)
    for i, row in enumerate(ours):
        for found in row[:1]:
            read = torch.tensor([[0, *found.tokens[:-1]]])
            log_p = model(source[i : i + 1], read).log_softmax(-1)
            total = log_p[0, torch.arange(5), torch.tensor(found.tokens)].sum()
            close(torch.tensor(found.log_p), total.detach())


@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-encoder-decoder", "start")
def test_the_first_state_is_the_encoders_last() -> None:
    model, (source, _) = small("start", "lstm"), TINY_INPUT()
    _, (h, c) = model.encoder.layers(model.embed(source))
    state = model.encode(source).state
    close(state[0], h)
    close(state[1], c)


def trained(context: Any, steps: int, length: int = 5) -> tuple[Seq2Seq, Tensor, Tensor]:
    """Words reversed, on all lengths up to `length`: teacher forcing, then writing."""
    torch.manual_seed(1)
    model = Seq2Seq(Seq2SeqConfig(10, 32, 1, 0.0, "gru", context, "additive"))
    random, optimizer = torch.Generator().manual_seed(0), torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(steps):
        x, y = pairs(64, length, random)
        optimizer.zero_grad()
        read = torch.cat([torch.zeros(64, 1, dtype=torch.long), y[:, :-1]], dim=1)
        logits = model(x, read)
        nn.functional.cross_entropy(logits[y > 0], y[y > 0]).backward()
        optimizer.step()
    return model.eval(), *pairs(64, length, random)


def pairs(n: int, length: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sources of words 2..9 and their reversal with an end (1); 0 is padding and start."""
    x = torch.randint(2, 10, (n, length), generator=random)
    lengths = torch.randint(2, length + 1, (n,), generator=random)
    places = torch.arange(length)
    x = torch.where(places < lengths[:, None], x, 0)
    back = x.gather(1, (lengths[:, None] - 1 - places).clamp(min=0))
    y = torch.where(places < lengths[:, None], back, 0)
    y = torch.cat([y, torch.zeros(n, 1, dtype=torch.long)], dim=1)
    return x, y.scatter(1, lengths[:, None], 1)


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-attention-decoder", "alignment")
@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "many-to-many")
def test_a_reversal_and_its_alignment() -> None:
    model, x, y = trained("current", 110, 4)
    written = generate(model.decoder(x), torch.zeros(len(x), 1, dtype=torch.long), 5, stop=[1])
    right = [[t for t in row if t] for row in y.tolist()]
    assert sum(a == b for a, b in zip(written, right, strict=True)) / len(right) > 0.8
    full = (x > 0).all(1)
    weights = model.alignment(x[full], torch.cat([torch.zeros_like(y[full][:, :1]), y[full][:, :-1]], dim=1))
    close(weights.sum(-1), torch.ones(weights.shape[:2]))
    looked = weights[:, :3].argmax(-1).float().mean(0)
    assert (looked.diff() < 0).all()  # from the end to the beginning


@pytest.mark.system("rnn-encoder-decoder", "toy-task")
@pytest.mark.parametrize("context", ["start", "every-step"])
def test_a_short_reversal_through_one_vector(context: str) -> None:
    """Sources of 2 or 3 words, targets one longer with their end; greedy, the net reads its own words."""
    model, x, y = trained(context, 170, 3)
    written = generate(model.decoder(x), torch.zeros(len(x), 1, dtype=torch.long), 5, stop=[1])
    right = [[t for t in row if t] for row in y.tolist()]
    assert sum(a == b for a, b in zip(written, right, strict=True)) / len(right) > 0.8
    assert {len(row) for row in written} == {3, 4}


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="context 'middle' is unknown"):
        small("middle")
    model, (source, target) = small("start"), TINY_INPUT()
    with pytest.raises(ValueError, match="has no alignment"):
        model.alignment(source, target)
    with pytest.raises(ValueError, match="2 sources need as many beginnings"):
        generate(model.decoder(source), [[0]], 2)


@pytest.mark.parametrize("context", ["start", "every-step", "current", "previous"])
def test_a_source_is_as_long_as_its_words_and_at_least_one(context: str) -> None:
    """Padding is known by its number, or by a mask; an empty source counts as the one word at its beginning."""
    model, (source, target) = small(context).eval(), TINY_INPUT()
    source[0, 1:], source[1, 4:] = 0, 0
    with torch.no_grad():
        logits = model(source, target)
        close(model(source, target, source != 0), logits)
        close(model(source[:1, :1], target[:1]), logits[:1])
        close(model(source[1:, :4], target[1:]), logits[1:])
        everything = model(source, target, torch.ones_like(source, dtype=torch.bool))
        assert (everything - logits).abs().amax(dim=(1, 2)).min() > 1e-4
        nothing = torch.zeros_like(source)
        close(model(nothing, target), model(nothing[:, :1], target))
