"""Scores, weights and contexts of the decoders, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.nn.recurrent.decoders import (
    SCORES,
    Additive,
    Carried,
    Current,
    Dot,
    EveryStep,
    FromStart,
    Previous,
    Scaled,
)
from tests.close import close

B, S, T, W = 2, 5, 4, 6


def source(cell: str = "gru") -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    h = torch.randn(B, S, W, generator=random)
    return (
        h,
        torch.randn(2 if cell == "lstm" else 1, 1, B, W, generator=random),
        torch.tensor([[1] * 5, [1] * 3 + [0] * 2]) > 0,
    )


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-attention-decoder", "scores")
@pytest.mark.parametrize("name", list(SCORES))
def test_scores(name: str) -> None:
    torch.manual_seed(0)
    score: Any = SCORES[name](W).double()
    s, h = torch.randn(B, T, W).double().requires_grad_(), torch.randn(B, S, W).double().requires_grad_()
    found = score(s, score.keys(h))
    assert found.shape == (B, T, S)
    one, other = s[1, 2], h[1, 3]
    expected = {
        "dot": lambda: one @ other,
        "scaled": lambda: one @ other / math.sqrt(W),
        "multiplicative": lambda: one @ (score.w.weight @ other),
        "additive": lambda: score.v.weight[0] @ (score.w.weight @ one + score.u.weight @ other).tanh(),
    }
    close(found[1, 2, 3], expected[name]())
    assert torch.autograd.gradcheck(lambda s, h: score(s, score.keys(h)), (s, h))


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-attention-decoder", "scores")
def test_a_dot_needs_equal_widths_and_the_scale_is_a_root() -> None:
    s, h = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
    close(Scaled(4)(s, h), Dot(4)(s, h) / 2)
    with pytest.raises(ValueError, match="equal widths, not 4 and 5; use additive"):
        Dot(4)(s, torch.randn(1, 3, 5))
    additive = Additive(4)
    additive.u = torch.nn.Linear(5, 4, bias=False)
    assert additive(s, additive.keys(torch.randn(1, 3, 5))).shape == (1, 2, 3)


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-attention-decoder", "weights")
@pytest.mark.parametrize("kind", [Current, Previous])
def test_weights_and_contexts(kind: Any) -> None:
    torch.manual_seed(0)
    net = kind("gru", 3, W, 1, 0.0, "additive")
    h, state, real = source()
    carried = net.begin(h, state, real)
    _, weights, _ = net(torch.randn(B, T, 3), carried)
    close(weights.sum(-1), torch.ones(B, T))
    assert (weights >= 0).all()
    assert (weights[1, :, 3:] == 0).all()  # padding
    net.score.v.weight.data.zero_()  # equal scores: the mean of the real states
    c, _ = net.look(state[0, -1][:, None], carried)
    close(c[0, 0], h[0].mean(0))
    close(c[1, 0], h[1, :3].mean(0))


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-encoder-decoder", "decoding")
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("kind", [FromStart, EveryStep, Current, Previous])
def test_a_target_at_once_is_a_target_step_by_step(kind: Any, cell: str) -> None:
    torch.manual_seed(0)
    net = kind(cell, 3, W, 1, 0.0, *(["scaled"] if kind in (Current, Previous) else []))
    y, carried = torch.randn(B, T, 3), net.begin(*source(cell))
    whole, _, last = net(y, carried)
    for t in range(T):
        out, _, state = net(y[:, t : t + 1], carried)
        carried = carried._replace(state=state)
        close(out[:, 0], whole[:, t])
    close(carried.state, last)


@pytest.mark.system("rnn-attention-decoder")
@pytest.mark.system("rnn-attention-decoder", "current", "previous")
def test_current_and_previous_states_look() -> None:
    """The first weights of the previous-state form come from s_0, those of the current-state form from s_1."""
    torch.manual_seed(0)
    h, state, real = source()
    before, now = Previous("gru", 3, W, 1, 0.0, "dot"), Current("gru", 3, W, 1, 0.0, "dot")
    y = torch.randn(B, 1, 3)
    _, weights, _ = before(y, before.begin(h, state, real))
    scores = (h @ state[0, 0][..., None])[..., 0].masked_fill(~real, -math.inf)
    close(weights[:, 0], scores.softmax(-1))
    s, _ = now.layers(y, state)
    _, weights, _ = now(y, now.begin(h, state, real))
    close(weights[:, 0], (h @ s.mT)[..., 0].masked_fill(~real, -math.inf).softmax(-1))


@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-encoder-decoder", "start", "every-step")
def test_the_fixed_contexts() -> None:
    h, state, real = source("lstm")
    start, every = FromStart("lstm", 3, W, 1, 0.0), EveryStep("lstm", 3, W, 1, 0.0)
    assert torch.equal(start.begin(h, state, real).state, state)  # s_0 = c, and the cell too
    carried = every.begin(h, state, real)
    assert not carried.state.any()
    y = torch.randn(B, T, 3)
    c = state[0, 0][:, None].expand(-1, T, -1)
    close(every(y, carried)[0], every.layers(torch.cat([y, c], -1), torch.zeros_like(state))[0])
    moved = Carried(state, *start.begin(h, state, real)[1:]).take(torch.tensor([1, 0]))
    assert torch.equal(moved.state[:, :, 0], state[:, :, 1])
    assert torch.equal(moved.h[0], h[1])
