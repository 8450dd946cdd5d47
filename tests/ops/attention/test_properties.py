from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.attention.multi_head import Attention
from descend.nn.attention.single_head import SingleHead
from descend.nn.mlp import MLP
from descend.ops.attention.dot_product import attention, causal_mask, unscaled_attention
from descend.ops.attention.properties import (
    attention_by_query,
    equivariance_error,
    invariance_error,
    joint_rank,
    worst_equivariance_error,
)
from tests.close import close

X = torch.randn(5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
ORDER = torch.tensor([3, 0, 4, 1, 2])


class EncoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
        self.attention, self.mlp = Attention(8, 2), MLP(8, 16, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.mlp(x))


@pytest.mark.system("attention-permutation-equivariance", "block", "not-invariant")
@pytest.mark.system("attention-permutation-equivariance")
def test_a_whole_block_is_equivariant_and_not_invariant() -> None:
    torch.manual_seed(0)
    block, x = EncoderBlock().double(), X[None]
    assert worst_equivariance_error(block, x) < 1e-12
    assert invariance_error(block, x, ORDER) > 0.1
    assert invariance_error(lambda x: block(x).mean(-2), x, ORDER) < 1e-12, "pooled"


@pytest.mark.system("attention-permutation-equivariance", "causal-mask")
@pytest.mark.system("attention-permutation-equivariance")
def test_a_causal_mask_breaks_it() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        return attention(x, x, x, causal_mask(x.shape[-2]))[0]

    assert equivariance_error(masked, X, ORDER) > 0.1
    assert worst_equivariance_error(masked, X) > 0.1


@pytest.mark.system("attention-permutation-equivariance", "any-layer")
def test_the_worst_order_counts_not_the_best() -> None:
    """Two rows: some of the drawn orders leave them as they are, without any error."""
    found = worst_equivariance_error(lambda x: x * torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [2.0]]))
    assert found == 4  # (2, 1) gives (2, 3), the outputs in that order are (6, 1)


@pytest.mark.system("attention-permutation-equivariance", "sentences")
@pytest.mark.system("attention-permutation-equivariance")
def test_the_dog_bit_the_man_gives_the_same_outputs_as_the_man_bit_the_dog() -> None:
    the, dog, bit, man = X[:4]
    one = torch.stack([the, dog, bit, the, man])
    other = torch.stack([the, man, bit, the, dog])
    a, b = (unscaled_attention(s, s, s)[0] for s in (one, other))
    close(a[a[:, 0].argsort()], b[b[:, 0].argsort()])


@pytest.mark.system("attention-properties", "span")
@pytest.mark.system("unscaled-self-attention", "span")
@pytest.mark.system("attention-properties")
def test_outputs_stay_in_the_span_of_the_values() -> None:
    x = X[:3]
    random = torch.Generator().manual_seed(1)
    w = [torch.randn(8, 8, dtype=torch.float64, generator=random) for _ in range(3)]
    z = attention(x @ w[0], x @ w[1], x @ w[2])[0]
    assert joint_rank(x @ w[2], z) == joint_rank(x @ w[2], x @ w[2]) == 3
    assert joint_rank(x, z) == 6, "not the span of the inputs, once there is a W^V"
    assert joint_rank(x, unscaled_attention(x, x, x)[0]) == 3
    torch.manual_seed(0)
    bent = MLP(8, 16, nn.ReLU()).double()(z).detach()
    assert joint_rank(x @ w[2], bent) > 3, "the feed-forward part leaves it"


@pytest.mark.system("attention-properties", "loop")
@pytest.mark.system("scaled-dot-product-attention", "loop")
@pytest.mark.system("attention-properties")
def test_the_loop_over_queries_is_the_matrix_form() -> None:
    random = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(n, d, dtype=torch.float64, generator=random) for n, d in ((4, 3), (6, 3), (6, 2)))
    close(attention_by_query(q, k, v), attention(q, k, v)[0])


@pytest.mark.system("attention-properties", "smooth", "dynamic")
@pytest.mark.system("scaled-dot-product-attention", "gradients")
@pytest.mark.system("attention-properties")
def test_smooth_in_all_inputs_and_weights_from_the_content() -> None:
    torch.manual_seed(5)
    head = SingleHead(8, 3).double()
    x = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: head(x)[0], (x,))
    one, other = (head(s)[1].detach() for s in (X, X.flip(-1)))
    assert (one - other).abs().max() > 0.01, "other content, other weights, the same parameters"


@pytest.mark.system("attention-properties", "one-length")
@pytest.mark.system("attention-properties")
def test_a_fixed_mixing_has_one_length() -> None:
    torch.manual_seed(5)
    mixing, head = nn.Linear(5, 5).double(), SingleHead(8, 3).double()
    assert head(X[:4])[0].shape == (4, 8)
    assert mixing(X.T).shape == (8, 5)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        mixing(X[:4].T)
