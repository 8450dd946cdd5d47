"""Heads: shapes, probabilities, and the way from a string to a distribution with parts that can be swapped."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.losses.language import causal_lm_loss, token_losses
from descend.losses.masked import masked_lm_loss
from descend.models.gpt2 import GPT2, TINY
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.heads import MaskedHead, Pipeline, Pooler, SpanHead, TiedHead
from descend.text.tokenizer import Tokenizer
from tests.close import close


class Embed(nn.Module):
    """Tokens and their positions."""

    def __init__(self, vocab: int, width: int):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(32, width)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        return x


@pytest.mark.system("output-heads-and-pipeline", "language-head", "classification-head", "by-hand")
@pytest.mark.system("shared-attention-core", "head")
@pytest.mark.system("output-heads-and-pipeline")
def test_from_a_string_to_both_kinds_of_prediction() -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.characters("The cat sat")
    tokens = torch.tensor([tokenizer.encode("The cat sat")])
    embed, body = Embed(tokenizer.vocab, 8), Encoder([EncoderBlock(8, 2, 16, nn.ReLU())])
    words = Pipeline(embed, body, nn.Linear(8, tokenizer.vocab))
    classes = Pipeline(embed, body, nn.Sequential(Pooler(8), nn.Linear(8, 2)))
    with torch.no_grad():
        p, q = words.probabilities(tokens), classes.probabilities(tokens)
        assert (p.shape, q.shape) == ((1, 11, tokenizer.vocab), (1, 2))
        close(p.sum(-1), torch.ones(1, 11))
        close(q.sum(-1), torch.ones(1))
        by_hand = words.head(body(embed.token(tokens) + embed.position.weight[:11])).exp()
        close(p, by_hand / by_hand.sum(-1, keepdim=True))


@pytest.mark.system("causal-lm-loss", "padding", "uniform")
@pytest.mark.system("output-heads-and-pipeline", "mean-loss", "padding")
@pytest.mark.system("padding-mask", "loss")
@pytest.mark.system("output-heads-and-pipeline")
def test_mean_cross_entropy_over_positions() -> None:
    """VOM 12.3.4: the mean over target positions; equal logits cost log V; padding is left out of the mean."""
    v, y = 50, torch.randint(50, (2, 7), generator=torch.Generator().manual_seed(0))
    logits = torch.randn(2, 7, v, generator=torch.Generator().manual_seed(1))
    close(causal_lm_loss(logits, y), nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()))
    close(causal_lm_loss(torch.zeros(2, 7, v), y), torch.tensor(math.log(v)))
    at = torch.arange(7) < torch.tensor([7, 3])[:, None]
    expected = nn.functional.cross_entropy(
        logits.transpose(1, 2), torch.where(at, y, -100), ignore_index=-100, reduction="mean"
    )
    close(masked_lm_loss(logits, y, at), expected)
    close(masked_lm_loss(logits, y, at), token_losses(logits, y)[at].mean())


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "head")
@pytest.mark.system("encoder-fine-tuning-heads")
def test_shapes_of_the_heads() -> None:
    x, table = torch.randn(2, 5, 8), torch.randn(11, 8)
    masked, span = MaskedHead(8, 11, 1e-12), SpanHead(8)
    assert masked(x, table).shape == (2, 5, 11)
    assert [part.shape for part in span(x)] == [(2, 5), (2, 5)]
    assert Pooler(8)(x).shape == (2, 8)
    assert Pooler(8)(x).abs().max() <= 1
    assert sum(p.numel() for p in span.parameters()) == 8 * 2 + 2
    linear = nn.Linear(8, 11)  # MF's own head
    assert sum(p.numel() for p in linear.parameters()) == 11 * 8 + 11


@pytest.mark.system("lm-weight-tying", "bias", "storage")
def test_a_tied_head_keeps_its_bias() -> None:
    """MF 33.6 on the body of a GPT: E h + b, where E is one matrix whose gradient has both parts; it saves |V| d."""
    torch.manual_seed(0)
    body, head = GPT2(TINY).double(), TiedHead(61).double()
    nn.init.normal_(head.bias)
    tokens = torch.randint(61, (2, 7), generator=torch.Generator().manual_seed(0))

    def logits(read: Tensor, write: Tensor) -> Tensor:
        x = read[tokens] + body.wpe.weight[:7]
        for block in body.h:
            x = block(x)
        return head(body.ln_f(x), write)

    e = body.wte.weight
    close(logits(e, e), body(tokens) + head.bias)
    both = torch.autograd.grad(logits(e, e).square().mean(), [e, head.bias])
    parts = [torch.autograd.grad(logits(*pair).square().mean(), e)[0] for pair in ((e, e.detach()), (e.detach(), e))]
    close(both[0], parts[0] + parts[1])
    close(both[1], 2 * logits(e, e).detach().mean((0, 1)) / 61)
    assert sum(p.numel() for p in head.parameters()) == sum(p.numel() for p in nn.Linear(32, 61).parameters()) - 61 * 32
