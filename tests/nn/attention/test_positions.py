from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.nn.attention.multi_head import Attention, attend
from descend.nn.attention.positions import (
    AddPositions,
    Alibi,
    AppendPositions,
    FractionPositions,
    IndexPositions,
    LearnedPositions,
    SinusoidalPositions,
)
from descend.ops.attention.dot_product import causal_mask, scores, weigh
from descend.ops.attention.positions import sinusoidal
from descend.ops.attention.properties import worst_equivariance_error
from tests.close import close

X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(3))


@pytest.mark.system("additive-position-information", "difference")
@pytest.mark.system("sinusoidal-positional-encoding", "learnable")
@pytest.mark.system("additive-position-information")
@pytest.mark.parametrize("code", [SinusoidalPositions(8), LearnedPositions(10, 8)], ids=["sinusoidal", "learned"])
def test_the_same_token_at_two_positions_differs_by_the_positions(code: nn.Module) -> None:
    e = torch.randn(8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        x, p = AddPositions(code)(e.expand(1, 10, 8)), code(torch.arange(10))
    assert x.shape == (1, 10, 8)
    close(x[0, 7] - x[0, 2], p[7] - p[2])
    assert not torch.allclose(x[0, 7], x[0, 2])


@pytest.mark.system("additive-position-information", "no-root")
@pytest.mark.system("additive-position-information")
def test_added_to_the_input_as_it_is_without_the_root_of_the_width() -> None:
    close(AddPositions(SinusoidalPositions(8))(X), X + sinusoidal(torch.arange(6), 8))
    half = AddPositions(SinusoidalPositions(8))(X.bfloat16())
    assert half.dtype == torch.bfloat16


@pytest.mark.system("additive-position-information", "order", "switch")
@pytest.mark.system("attention-permutation-equivariance", "positions")
@pytest.mark.system("additive-position-information")
@pytest.mark.system("attention-permutation-equivariance")
def test_attention_sees_the_order_only_with_positions() -> None:
    torch.manual_seed(0)
    attention = Attention(8, 2).double()
    x = X.double()
    assert worst_equivariance_error(attention, x) < 1e-12
    for code in (SinusoidalPositions(8), LearnedPositions(6, 8), IndexPositions(), FractionPositions()):
        seen = nn.Sequential(AddPositions(code), attention)
        assert worst_equivariance_error(seen, x) > 1e-4, type(code).__name__
    assert worst_equivariance_error(nn.Sequential(nn.Identity(), attention), x) < 1e-12, "none"


@pytest.mark.system("additive-position-information", "switch")
@pytest.mark.system("position-encoding-labs", "rejected")
@pytest.mark.system("position-encoding-labs")
def test_appended_codes_widen_the_vectors() -> None:
    x = AppendPositions(IndexPositions())(X)
    assert x.shape == (2, 6, 9)
    assert x[1, :, -1].tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.equal(x[..., :8], X)
    assert AppendPositions(SinusoidalPositions(4))(X).shape == (2, 6, 12)
    short, long = (FractionPositions()(torch.arange(n))[1] for n in (5, 10))
    assert short != long


@pytest.mark.system("learned-position-embeddings", "table", "limit")
@pytest.mark.system("learned-position-embeddings")
def test_learned_positions_are_a_table_with_an_end() -> None:
    code = LearnedPositions(512, 4)
    assert sum(p.numel() for p in code.parameters()) == 512 * 4
    assert code(torch.arange(512)).shape == (512, 4)
    with pytest.raises(Mistake, match=r"position 512 has no embedding: there are 512, 0\.\.511"):
        code(torch.arange(1000))
    with pytest.raises(Mistake, match="position -1"):
        code(torch.tensor([-1, 0]))
    code(torch.arange(3)).sum().backward()
    used = code.table.weight.grad.abs().sum(-1) > 0
    assert used.nonzero().flatten().tolist() == [0, 1, 2], "only the rows that were used have a gradient"


@pytest.mark.system("alibi", "any-layer")
@pytest.mark.system("alibi")
def test_alibi_is_a_mask_of_attend() -> None:
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 7, 4, 5) for _ in range(3))
    bias = Alibi(4)(7, 7)
    ours = attend(q, k, v, causal=True, mask=bias)
    heads = [x.transpose(1, 2) for x in (q, k, v)]
    theirs, a = weigh(scores(heads[0], heads[1]) + bias, heads[2], causal_mask(7))
    close(ours, theirs.transpose(1, 2))
    assert (a.triu(1) == 0).all()
    assert list(Alibi(4).parameters()) == []
    assert Alibi(4).state_dict() == {}, "nothing to save"


@pytest.mark.system("alibi", "any-length")
@pytest.mark.system("alibi")
def test_alibi_prefers_near_keys_at_any_length() -> None:
    """With equal scores a weight falls by exp(−m) a step, whatever the length."""
    for t in (5, 50):
        a = Alibi(2)(t, t).masked_fill(~causal_mask(t), -torch.inf).softmax(-1)[0, 0]
        close(a[-1, -2] / a[-1, -1], torch.exp(-Alibi(2).slopes[0]))
        assert (a[-1, 1:] > a[-1, :-1]).all()
