"""Sparse softmax: torch's own sparse softmax, the masked dense form, the Jacobian."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention
from descend.ops.attention.patterns import dilated, window, with_global
from descend.ops.attention.sparse import neighbours, sparse_attention, sparse_jacobian, sparse_softmax
from tests.close import close

SLUG = "sparse-softmax"


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def permitted(t: int, share: float = 0.4) -> Tensor:
    chosen = torch.rand(t, t, generator=torch.Generator().manual_seed(3)) < share
    return chosen | torch.eye(t, dtype=torch.bool)


@pytest.mark.system(SLUG, "torch")
@pytest.mark.system(SLUG)
def test_against_torch_sparse() -> None:
    """torch.sparse.softmax leaves out what is not stored. A stored 0 counts: a permitted score may be 0."""
    s, allowed = random(9, 9), permitted(9)
    s[0, 0] = 0.0
    index = allowed.nonzero().T
    stored = torch.sparse_coo_tensor(index, s[allowed], (9, 9), check_invariants=True)
    close(sparse_softmax(s, allowed), torch.sparse.softmax(stored, 1).to_dense())


@pytest.mark.system(SLUG, "masked-dense")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("allowed", [permitted(12), window(12, 2), with_global(dilated(12, 1, 3), torch.tensor([4]))])
def test_sparse_equals_masked_dense(allowed: Tensor) -> None:
    q, k, v = (random(2, 3, 12, 5, seed=i) for i in range(3))
    index, real = neighbours(allowed)
    assert index.shape[-1] == allowed.sum(-1).max()  # no more is computed than the largest set
    y, a = sparse_attention(q, k, v, index, real)
    expected, dense = attention(q, k, v, allowed)
    close(y, expected)
    close(torch.zeros(2, 3, 12, 12, dtype=torch.float64).scatter_add(-1, index.expand(2, 3, -1, -1), a), dense)


@pytest.mark.system(SLUG, "full")
@pytest.mark.system(SLUG)
def test_all_permitted_is_full_attention() -> None:
    q, k, v = (random(7, 4, seed=i) for i in range(3))
    close(sparse_attention(q, k, v, *neighbours(torch.ones(7, 7, dtype=torch.bool)))[0], attention(q, k, v)[0])


@pytest.mark.system(SLUG, "jacobian")
@pytest.mark.system(SLUG)
def test_jacobian() -> None:
    """A_j (δ_jk − A_k) on permitted entries and exactly 0 elsewhere, also by autograd."""
    s, allowed = random(6), permitted(6)[2]
    found = sparse_jacobian(sparse_softmax(s, allowed))
    close(found, torch.autograd.functional.jacobian(lambda s: sparse_softmax(s, allowed), s))
    assert not found[~allowed].any()
    assert not found[:, ~allowed].any()
    assert found[allowed][:, allowed].all()


@pytest.mark.system(SLUG, "backward")
@pytest.mark.system(SLUG)
def test_gradients_on_permitted_entries_only() -> None:
    index, real = neighbours(window(6, 1))
    inputs = [random(6, 3, seed=i).requires_grad_() for i in range(3)]
    assert torch.autograd.gradcheck(lambda q, k, v: sparse_attention(q, k, v, index, real)[0], inputs)
    q, k, v = inputs
    [grad] = torch.autograd.grad(sparse_attention(q, k, v, index, real)[0][0].sum(), v)
    assert grad[:2].all()
    assert not grad[2:].any()


def test_an_empty_set_gives_zeros() -> None:
    allowed = torch.tensor([[True, False], [False, False]])
    close(sparse_softmax(random(2, 2), allowed), torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
