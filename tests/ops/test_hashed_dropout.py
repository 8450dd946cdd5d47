"""Dropout by a hash: shares, sizes, slopes and independence; the same mask with compiled code and without."""

from __future__ import annotations

import pytest
import torch

from descend.native import dropout as native
from descend.nn.dropout import inverted_drop
from descend.ops.hashed_dropout import drop_by_key, drop_hashed, hash_places
from tests.close import close

pytestmark = pytest.mark.system("dropout")
N = 200_000


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6])
def test_shares_and_independence(p: float) -> None:
    """Values are dropped at the rate p; neighbours, and places of other keys, independently of each other."""
    ones = torch.ones(N, dtype=torch.float64)
    masks = torch.stack([drop_by_key(ones, p, key) for key in (3, 4, 3 + 2**32, 2**61 + 7)]) > 0
    bound = 5 * (p * (1 - p) / N) ** 0.5
    assert ((masks.double().mean(1) - (1 - p)).abs() < bound).all()
    spread = masks.double() - (1 - p)
    for step in (1, 2, 16, 64, 1433):
        assert ((spread[:, step:] * spread[:, :-step]).mean(1).abs() < 5 * p * (1 - p) / N**0.5).all()
    for a in range(4):
        for b in range(a):
            assert (spread[a] * spread[b]).mean().abs() < 5 * p * (1 - p) / N**0.5


def test_bits_are_even() -> None:
    found = hash_places(N, 12345)
    assert found.min() >= 0
    assert found.max() < 2**32
    bits = (found[:, None] >> torch.arange(32) & 1).double().mean(0)
    assert ((bits - 0.5).abs() < 5 * 0.5 / N**0.5).all()


def test_value_and_slope_of_a_given_mask() -> None:
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    torch.manual_seed(1)
    y = drop_hashed(x, 0.3)
    mask = (y != 0).double()
    close(y, inverted_drop(x, mask, 0.3))
    (slope,) = torch.autograd.grad(y.sum(), x)
    close(slope, mask / 0.7)
    torch.manual_seed(1)
    assert torch.equal(drop_hashed(x, 0.3), y)
    assert not torch.equal(drop_hashed(x, 0.3), y)
    assert drop_hashed(x, 0.3, training=False) is x
    assert drop_hashed(x, 0.0) is x
    with pytest.raises(ValueError, match="below 1"):
        drop_hashed(x, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_mask_without_a_compiler(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1000, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    settings = [(p, key) for p in (0.2, 0.6) for key in (0, 5, 2**40 + 1, 2**62 - 1)]
    ours = [drop_by_key(x, *setting) for setting in settings]
    monkeypatch.setattr(native, "usable", lambda x: False)
    for y, setting in zip(ours, settings, strict=True):
        assert torch.equal(y, drop_by_key(x, *setting))
    assert drop_by_key(x.bfloat16(), 0.5, 1).dtype == torch.bfloat16
