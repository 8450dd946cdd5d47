"""Features that are mostly zeros: the same numbers and slopes as the full product, and found out once."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.native import graph as native
from descend.nn.graph import features
from descend.nn.graph.features import FeatureLinear, find_entries
from tests.close import close


def words(n: int = 200, d: int = 300, density: float = 0.02) -> Tensor:
    """A bag of words for each node; some have none."""
    random = torch.Generator().manual_seed(0)
    present = torch.rand(n, d, generator=random, dtype=torch.float64) < density
    return present * torch.rand(n, d, generator=random, dtype=torch.float64)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_full_product(bias: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(native, "usable", lambda *x: False)
    x, layer = words(), FeatureLinear(300, 7, bias=bias).double()
    assert find_entries(x) is not None
    y = layer(x)
    close(y, F.linear(x, layer.weight, layer.bias))
    slope = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = torch.autograd.grad(y, list(layer.parameters()), slope)
    theirs = torch.autograd.grad(F.linear(x, layer.weight, layer.bias), list(layer.parameters()), slope)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    float32 = layer.float()
    close(float32(x.float()), F.linear(x.float(), layer.weight, layer.bias))


def test_dropout_of_what_is_there() -> None:
    """Each entry is dropped or doubled; the mean over many draws is the product without dropout."""
    x, layer = words(400), FeatureLinear(300, 300, dropout=0.5).double()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(300))
    torch.manual_seed(0)
    y = layer(x)
    there = x != 0
    assert y[~there].eq(0).all()
    ratio = y[there] / x[there]
    assert set(ratio.round().tolist()) == {0.0, 2.0}
    assert abs(ratio.mean() - 1) < 5 / len(ratio) ** 0.5
    torch.manual_seed(0)
    assert torch.equal(layer(x), y)
    layer.eval()
    close(layer(x), x)


def test_what_is_multiplied_as_it_is() -> None:
    assert find_entries(words().requires_grad_()) is None  # its zeros are variables
    assert find_entries(words(d=60)) is None  # narrow
    assert find_entries(words(density=0.5)) is None  # full
    assert find_entries(torch.zeros(0, 300)) is None
    assert find_entries(torch.zeros(5, 300)) is not None
    x, layer = words(density=0.5), FeatureLinear(300, 7).double()
    close(layer(x), x @ layer.weight.t())


def test_found_out_once_and_again_after_a_change() -> None:
    x = words()
    entries = find_entries(x)
    assert find_entries(x) is entries
    layer = FeatureLinear(300, 7).double()
    before = layer(x)
    x[0] = 0
    x[0, 5] = 3.0
    assert find_entries(x) is not entries
    close(layer(x)[0], 3 * layer.weight[:, 5])
    close(layer(x)[1:], before[1:])
    count = len(features.kept)
    del x, entries
    gc.collect()
    assert len(features.kept) < count  # nothing is kept longer than the tensor
