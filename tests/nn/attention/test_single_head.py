from __future__ import annotations

import pytest
import torch

from descend.nn.attention.single_head import SingleHead, TiedHead
from descend.ops.attention.dot_product import causal_mask, unscaled_attention
from tests.close import close

X = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("unscaled-self-attention", "projections")
@pytest.mark.system("unscaled-self-attention")
def test_identity_projections_give_the_parameter_free_form() -> None:
    head = SingleHead(4, 4, scale=1.0).double()
    with torch.no_grad():
        for part in (head.q, head.k, head.v):
            part.weight.copy_(torch.eye(4))
            part.bias.zero_()
        z, a = head(X)
    expected = unscaled_attention(X, X, X)
    close(z, expected[0])
    close(a, expected[1])


@pytest.mark.system("unscaled-self-attention", "without-biases")
@pytest.mark.system("qkv-soft-attention")
def test_is_torch_attention_and_counts_its_weights() -> None:
    torch.manual_seed(2)
    head = SingleHead(4, 3, 6, bias=False).double()
    with torch.no_grad():
        z, a = head(X, causal_mask(5))
        theirs = torch.nn.functional.scaled_dot_product_attention(head.q(X), head.k(X), head.v(X), is_causal=True)
    close(z, theirs)
    close(a.sum(-1), torch.ones(2, 5, dtype=torch.float64))
    assert sum(p.numel() for p in head.parameters()) == 2 * 4 * 3 + 4 * 6


@pytest.mark.system("unscaled-self-attention", "tied")
@pytest.mark.system("unscaled-self-attention")
def test_tied_projections_make_the_scores_symmetric() -> None:
    torch.manual_seed(3)
    tied, free = TiedHead(4, 3).double(), SingleHead(4, 3).double()
    close(tied.scores(X), tied.scores(X).mT)
    assert (free.scores(X) - free.scores(X).mT).abs().max() > 0.1
    assert sum(p.numel() for p in tied.parameters()) < sum(p.numel() for p in free.parameters())
