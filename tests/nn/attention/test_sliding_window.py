"""Window attention by chunks against the masked dense form: shapes, padding, global tokens, gradients, memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import (
    Everywhere,
    GlobalWindow,
    SeparateGlobalWindow,
    WindowAttention,
    dilated_attend,
    global_places,
    window_attend,
)
from descend.nn.encoder import EncoderBlock
from descend.ops.attention.dot_product import attention
from descend.ops.attention.patterns import dilated, window, with_global
from tests.close import close
from tests.nn.dense import dense, kept_for_backward, qkv


@pytest.mark.system("sliding-window-attention", "masked-dense")
@pytest.mark.system("sliding-window-attention")
@pytest.mark.system("sparse-softmax")
@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(1, 150), st.integers(0, 90), st.integers(1, 7))
def test_equals_masked_dense(t: int, w: int, d: int) -> None:
    q, k, v = qkv(t)
    close(dilated_attend(q, k, v, w, d), dense(q, k, v, dilated(t, w, d)))
    if d == 1:
        close(window_attend(q, k, v, w), dense(q, k, v, window(t, w)))


@pytest.mark.system("sliding-window-attention", "full")
@pytest.mark.system("sliding-window-attention")
def test_a_window_over_all_is_full_attention() -> None:
    q, k, v = qkv(40)
    close(window_attend(q, k, v, 39), dense(q, k, v, None))
    assert (window_attend(q, k, v, 38) - dense(q, k, v, None)).abs().max() > 1e-4


@pytest.mark.system("sliding-window-attention")
@pytest.mark.parametrize("stride", [1, 3])
def test_padding_is_not_seen(stride: int) -> None:
    q, k, v = qkv(70)
    keep = torch.ones(2, 70, dtype=torch.bool)
    keep[0, 50:], keep[1, 60:] = False, False
    y = dilated_attend(q, k, v, 5, stride, keep)
    assert y.isfinite().all()
    for text, length in ((0, 50), (1, 60)):
        short = [x[text : text + 1, :length] for x in (q, k, v)]
        close(y[text : text + 1, :length], dilated_attend(*short, 5, stride))


@pytest.mark.system("sliding-window-attention")
def test_gradients() -> None:
    inputs = [x.requires_grad_() for x in qkv(7, size=2)]
    assert torch.autograd.gradcheck(lambda q, k, v: dilated_attend(q, k, v, 1, 2), inputs, fast_mode=True)
    grads = torch.autograd.grad(window_attend(*inputs, 2).square().sum(), inputs)
    expected = torch.autograd.grad(dense(*inputs, window(7, 2)).square().sum(), inputs)
    for a, b in zip(grads, expected, strict=True):
        close(a, b)


@pytest.mark.system("sliding-window-attention", "memory")
@pytest.mark.system("sliding-window-attention")
def test_memory_is_linear() -> None:
    """What is kept for the backward pass doubles with t; of the dense form it quadruples."""
    short, long = (kept_for_backward(lambda q, k, v: window_attend(q, k, v, 64), qkv(t)) for t in (2048, 4096))
    assert long < 2.1 * short
    full = kept_for_backward(lambda q, k, v: dense(q, k, v, None), qkv(2048))
    assert short < full / 8


@pytest.mark.system("sliding-window-attention", "dilated")
@pytest.mark.system("sliding-window-attention")
def test_in_a_block_it_reaches_its_radius() -> None:
    torch.manual_seed(0)
    block = EncoderBlock(8, 2, 16, torch.nn.GELU())
    state = block.state_dict()
    block.attn = WindowAttention(8, 2, radius=2, stride=3)
    block.load_state_dict(state)  # the same parameters under the same names
    x = torch.randn(1, 30, 8, requires_grad=True)
    [grad] = torch.autograd.grad(block(x)[0, 15].sum(), x)
    assert grad[0].abs().sum(-1).nonzero().flatten().tolist() == [9, 12, 15, 18, 21]
    with pytest.raises(ValueError, match="both directions"):
        block(x, causal=True)
    with pytest.raises(ValueError, match="radius -1"):
        WindowAttention(8, 2, -1)


def roles() -> Tensor:
    """Padding, and two, one and no global tokens."""
    found = torch.ones(3, 45, dtype=torch.long)
    found[0, [0, 30]], found[1, 44] = 2, 2
    found[2, 40:] = 0
    return found


@pytest.mark.system("longformer", "shared")
@pytest.mark.system("longformer")
def test_global_window_equals_masked_dense() -> None:
    """The book's form: one set of projections, so it is full attention under the mask of MF 35.5.1."""
    torch.manual_seed(0)
    attn, full = GlobalWindow(12, 3, radius=4).double(), SelfAttention(12, 3).double()
    full.load_state_dict(attn.state_dict())
    x, role = torch.randn(3, 45, 12, dtype=torch.float64), roles()
    y = attn(x, role[:, None, None])
    for text in range(3):
        mask = with_global(window(45, 4), (role[text] == 2).nonzero().flatten()) & (role[text] > 0)
        q, k, v = (p(x[text]).unflatten(-1, (3, 4)).transpose(0, 1) for p in (full.q, full.k, full.v))
        expected = full.out(attention(q, k, v, mask | torch.eye(45, dtype=torch.bool))[0].transpose(0, 1).flatten(-2))
        close(y[text][role[text] > 0], expected[role[text] > 0])
    close(attn(x), attn(x, torch.ones(3, 1, 1, 45)))


@pytest.mark.system("longformer")
def test_separate_projections_are_for_the_global_rows_alone() -> None:
    torch.manual_seed(0)
    attn = SeparateGlobalWindow(12, 3, radius=4).double()
    x, mask = torch.randn(3, 45, 12, dtype=torch.float64), roles()[:, None, None]
    before = attn(x, mask)
    torch.nn.init.normal_(attn.v_global.weight)
    changed = (attn(x, mask) != before).any(-1)
    assert torch.equal(changed, roles() == 2)
    same = SeparateGlobalWindow(12, 3, radius=4).double()
    shared = GlobalWindow(12, 3, radius=4).double()
    same.load_state_dict({**shared.state_dict(), **{f"{p}_global.{w}": getattr(getattr(shared, p), w)
                          for p in "qkv" for w in ("weight", "bias")}})  # fmt: skip
    close(same(x, mask), shared(x, mask))  # with equal matrices it is the book's form


def test_keys_seen_everywhere() -> None:
    q, k, v = qkv(30)
    places, real = global_places(torch.arange(30) == torch.tensor([[3], [9]]))
    assert places.tolist() == [[3], [9]]
    keep = torch.ones(2, 30, dtype=torch.bool)
    rows = torch.arange(2)[:, None]
    keep[rows, places] = False
    y = window_attend(q, k, v, 2, keep, Everywhere(k[rows, places], v[rows, places], real))
    for text, place in enumerate((3, 9)):
        mask = window(30, 2)
        mask[:, place] = True
        others = torch.arange(30) != place
        close(y[text][others], dense(*(x[text : text + 1] for x in (q, k, v)), mask)[0][others])
