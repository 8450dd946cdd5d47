"""BigBird attention by gathered blocks against the masked dense form."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.nn.attention.big_bird import BigBirdAttention, big_bird_plan, block_attend
from descend.ops.attention.patterns import big_bird, of_tokens
from tests.close import close
from tests.nn.dense import dense, kept_for_backward, qkv

SLUG = "bigbird"


@pytest.mark.system(SLUG, "masked-dense")
@pytest.mark.system(SLUG)
@pytest.mark.system("sparse-softmax")
@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(13, 90), st.integers(1, 2), st.integers(0, 3), st.integers(0, 3))
def test_equals_masked_dense(t: int, radius: int, count: int, seed: int) -> None:
    q, k, v = qkv(t)
    n = -(-t // 4)
    mask = of_tokens(big_bird(n, radius, 1, count, 2, seed), 4, t)
    close(block_attend(q, k, v, big_bird_plan(n, radius, 1, count, 2, seed), 4), dense(q, k, v, mask))


@pytest.mark.system(SLUG, "masked-dense")
@pytest.mark.system(SLUG)
def test_two_ends_and_padding() -> None:
    q, k, v = qkv(60)
    keep = torch.ones(2, 60, dtype=torch.bool)
    keep[0, 41:] = False
    y = block_attend(q, k, v, big_bird_plan(15, 1, 2, 1, 2, 3), 4, keep)
    mask = of_tokens(big_bird(15, 1, 2, 1, 2, 3), 4, 60) & keep[:, None, None]
    close(y[keep], dense(q, k, v, mask)[keep])


@pytest.mark.system(SLUG)
def test_gradients() -> None:
    inputs = [x.requires_grad_() for x in qkv(14, size=2)]
    plan = big_bird_plan(7, 1, 1, 1, 2, 0)
    assert torch.autograd.gradcheck(lambda q, k, v: block_attend(q, k, v, plan, 2), inputs, fast_mode=True)


@pytest.mark.system(SLUG, "linear")
@pytest.mark.system(SLUG)
def test_memory_is_linear_and_rows_are_bounded() -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return block_attend(q, k, v, big_bird_plan(q.shape[1] // 16, 1, 1, 3, 2, 0), 16)

    short, long = (kept_for_backward(call, qkv(t)) for t in (2048, 4096))
    assert long < 2.1 * short
    assert short < kept_for_backward(lambda q, k, v: dense(q, k, v, None), qkv(2048)) / 8
    assert big_bird_plan(64, 1, 1, 3, 2, 0).shape[-1] <= 3 + 2 + 3


@pytest.mark.system(SLUG, "module")
@pytest.mark.system(SLUG)
def test_module() -> None:
    torch.manual_seed(0)
    a, b, c = (BigBirdAttention(8, 2, size=2, count=1, seed=seed) for seed in (1, 1, 2))
    for other in (b, c):
        other.load_state_dict(a.state_dict())
    x = torch.randn(1, 41, 8)
    assert torch.equal(a(x), b(x))
    assert torch.equal(a(x), a(x))
    assert not torch.equal(a(x), c(x))  # another seed, other blocks
    mask = (torch.arange(41) < 33)[None, None, None]
    other = x.clone()
    other[:, 33:] = 5.0
    close(a(x, mask)[:, :33], a(other, mask)[:, :33])
    short = x[:, :5]
    q, k, v = (p(short).unflatten(-1, (2, 4)) for p in (a.q, a.k, a.v))
    close(a(short), a.out(dense(q, k, v, None).flatten(-2)))  # the ends and one block: full attention
    with pytest.raises(ValueError, match="both directions"):
        a(x, causal=True)
    with pytest.raises(ValueError, match="blocks of 0 tokens"):
        BigBirdAttention(8, 2, size=0)


@pytest.mark.system(SLUG)
def test_texts_of_the_ends_and_one_block_are_dense_and_longer_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    attn = BigBirdAttention(8, 2, size=2, count=0, radius=0).double()
    q, k, v = qkv(8, size=4)
    assert (attn.mix(q, k, v, None, False) - dense(q, k, v, None)).abs().max() > 1e-3  # block 1 does not see block 2
    monkeypatch.setattr(attn, "plan", None)  # 3 blocks of 2 tokens or fewer need none
    for t in (1, 5, 6):
        part = [x[:, :t] for x in (q, k, v)]
        close(attn.mix(*part, None, False), dense(*part, None))
