"""Lookup is the one-hot product; the gradient reaches only the rows that were looked up."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models.gpt2 import SIZES
from descend.ops.backward.layers import embedding_backward
from descend.ops.embedding import lookup, lookup_by_product, lookup_columns, one_hot, parameters
from tests.close import close

SLUG = "embedding-lookup"
IDS = torch.tensor([[3, 0, 3], [1, 3, 0]])


@pytest.mark.system("embedding-lookup", "layouts", "one-hot")
@pytest.mark.system(SLUG)
def test_lookup_is_the_one_hot_product_in_both_layouts() -> None:
    e = torch.randn(6, 4, dtype=torch.float64)
    close(lookup(IDS, e), e[IDS])
    assert torch.equal(lookup_by_product(IDS, e), lookup(IDS, e))
    layer = nn.Embedding(6, 4).double()
    assert torch.equal(layer(IDS), lookup(IDS, layer.weight))
    columns = one_hot(IDS[0], 6).double().T  # DLN: W is N x V, one-hot vectors are columns
    assert torch.equal(lookup_columns(columns, e.T), lookup(IDS[0], e).T)


@pytest.mark.system("embedding-lookup", "gradient")
@pytest.mark.system(SLUG)
def test_unused_rows_get_no_gradient_and_repeated_ones_the_sum() -> None:
    e = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    g = torch.randn(2, 3, 4, dtype=torch.float64)
    (lookup(IDS, e) * g).sum().backward()
    assert e.grad is not None
    assert not e.grad[[2, 4, 5]].any()
    close(e.grad[3], g[0, 0] + g[0, 2] + g[1, 1])
    close(e.grad, embedding_backward(IDS, g, 6))
    assert torch.autograd.gradcheck(lambda e: lookup(IDS, e), e)


@pytest.mark.system("embedding-lookup", "four-uses")
@pytest.mark.system(SLUG)
def test_the_four_uses_are_those_of_torch() -> None:
    given = torch.randn(6, 4)
    frozen, trained = (nn.Embedding.from_pretrained(given.clone(), freeze=f) for f in (True, False))
    assert torch.equal(frozen(IDS), lookup(IDS, given))
    assert not frozen.weight.requires_grad
    assert trained.weight.requires_grad


@pytest.mark.system("embedding-lookup", "sizes")
@pytest.mark.system(SLUG)
def test_published_sizes() -> None:
    gpt2 = SIZES["gpt2"]
    assert parameters(gpt2.vocab, gpt2.width) == nn.Embedding(gpt2.vocab, gpt2.width, device="meta").weight.numel()
    assert parameters(50_257, 768) == 38_597_376
    assert parameters(50_257, 12_288) == 617_558_016
    assert parameters(50_000, 512) == 25_600_000


@pytest.mark.system("one-hot-words")
def test_a_number_without_a_row_is_named() -> None:
    for ids, named in ((torch.tensor([1, 9]), 9), (torch.tensor([-1]), -1)):
        for call in (lambda ids: lookup(ids, torch.zeros(4, 2)), lambda ids: one_hot(ids, 4)):
            with pytest.raises(ValueError, match=f"token {named} has no row: the embedding has rows 0..3"):
                call(ids)
    assert lookup(torch.empty(0, dtype=torch.long), torch.zeros(4, 2)).shape == (0, 2)


@pytest.mark.system(SLUG, "one-based")
def test_tokens_counted_from_one() -> None:
    """VOM 12: X = E[t, :] with t in 1..V is the row t − 1 here; t = 0 and t = V + 1 have no row."""
    e, t = torch.randn(5, 3), torch.tensor([1, 5, 2])
    found = lookup(t - 1, e)
    assert torch.equal(found, torch.stack([e[0], e[4], e[1]]))
    for wrong in (0, 6):
        with pytest.raises(ValueError, match="has no row"):
            lookup(torch.tensor([wrong]) - 1, e)
