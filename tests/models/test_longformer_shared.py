"""MF's Longformer: shared projections and dilation, against the equation with its t × t mask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.models.longformer import Windows
from descend.models.longformer_shared import (
    TINY,
    TINY_INPUT,
    LongformerShared,
    LongformerSharedConfig,
    LongformerSharedForSequenceClassification,
)
from descend.models.roberta import Roberta, RobertaConfig
from descend.nn.encoder_decoder import attention_weights
from tests.close import close

SLUG = "longformer"


def seen(mask: Tensor, radius: int, stride: int) -> Tensor:
    """(b, 1, t, t): whom each token sees, by the definition of N(i)."""
    t = mask.shape[1]
    apart = torch.arange(t)[:, None] - torch.arange(t)
    near = (apart % stride == 0) & (apart.abs() <= radius * stride)
    is_global = mask == 2
    return ((near | is_global[:, None] | is_global[:, :, None]) & (mask > 0)[:, None])[:, None]


@pytest.mark.system("sliding-window-attention", "strides")
@pytest.mark.system(SLUG, "shared")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("strides", [(1,), (3,), (1, 2)])
def test_each_layer_is_attention_under_its_mask(strides: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model, (tokens, mask) = LongformerShared(replace(TINY, strides=strides)).double().eval(), TINY_INPUT()
    x = model.embed_tokens(tokens)
    for layer, radius in enumerate((2, 3)):
        block: Any = model.encoder.blocks[layer]
        allowed = seen(mask, radius, (strides * 2)[layer])
        a = attention_weights(block.attn, x, x, allowed)  # (b, h, t, t)
        values = block.attn.v(x).unflatten(-1, (4, 8)).transpose(1, 2)
        y = block.attn.out((a @ values).transpose(1, 2).flatten(-2))
        close(block.attn(x, mask[:, None, None])[mask > 0], y[mask > 0])
        x = block(x, mask[:, None, None])
    close(model.hidden(tokens, mask), x)


@pytest.mark.system(SLUG, "full")
@pytest.mark.system(SLUG)
def test_a_window_over_all_is_the_full_encoder_with_global_tokens_too() -> None:
    """Which the released form is not: its global rows have other matrices."""
    torch.manual_seed(0)
    wide = LongformerShared(replace(TINY, windows=Windows((40,)), strides=(1,))).eval()
    numbers = {name: getattr(TINY, name) for name in ("vocab", "context", "width", "depth", "heads", "hidden")}
    full = Roberta(RobertaConfig(**numbers, segments=1, dropout=0.0)).eval()
    full.load_state_dict(wide.state_dict())
    tokens, mask = TINY_INPUT()
    close(wide.hidden(tokens, mask)[mask > 0], full.hidden(tokens, mask > 0)[mask > 0])


@pytest.mark.system(SLUG)
def test_strides_reach_further_for_the_same_cost() -> None:
    """One window of radius 2 is 2 tokens wide to each side, with stride 3 it is 6."""
    for stride in (1, 3):
        torch.manual_seed(0)
        model = LongformerShared(replace(TINY, depth=1, windows=Windows((4,)), strides=(stride,))).eval()
        x = model.embed_tokens(TINY_INPUT()[0]).detach().requires_grad_()
        block: Any = model.encoder.blocks[0]
        block.attn(x)[0, 6].sum().backward()
        assert x.grad is not None
        reached = x.grad[0].abs().sum(-1).nonzero().flatten().tolist()
        assert reached == [6 + stride * m for m in range(-2, 3)]


@pytest.mark.system(SLUG)
def test_the_first_token_is_global_for_a_classifier() -> None:
    torch.manual_seed(0)
    model, (tokens, _) = LongformerSharedForSequenceClassification(TINY).eval(), TINY_INPUT()
    other = tokens.clone()
    other[:, -1] = (tokens[:, -1] + 1 - 3) % 58 + 3  # beyond the reach of both layers, 2 + 6 tokens
    assert (model(tokens) - model(other)).abs().max() > 1e-7


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="3 strides for 2 layers"):
        LongformerSharedConfig(depth=2, strides=(1, 2, 3))
