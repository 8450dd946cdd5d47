"""Shards of an attention layer: their sum is the layer, in one process and in two."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from descend.nn.attention.multi_head import Attention
from descend.nn.attention.rotary import Rope
from descend.nn.attention.shards import heads_of, key_heads_of, shard
from tests.close import close
from tests.engine.two_shards import draw_input, make_layer
from tests.pair import run_pair

SLUG = "tensor-parallel-attention"
PARTS = ("q", "k", "v")


def rows_of(device: int, devices: int, layer: Attention, name: str) -> slice:
    """Which rows of a projection a device holds."""
    size, keys = layer.head_size, layer.k.out_features // layer.head_size
    at = heads_of(device, devices, layer.heads) if name == "q" else key_heads_of(device, devices, keys)
    return slice(at.start * size, at.stop * size)


@pytest.mark.system(SLUG, "shards")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("heads", "key_heads", "devices"), [(8, 8, 2), (8, 8, 8), (8, 4, 4), (8, 4, 8), (8, 1, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_sum_of_the_shards_is_the_layer(heads: int, key_heads: int, devices: int, causal: bool) -> None:
    layer, x = make_layer(heads, key_heads), draw_input()
    angles = Rope().angles(torch.arange(x.shape[1]), layer.head_size, x.shape[1])
    angles = (angles[0].double(), angles[1].double())
    mask = None if causal else torch.rand(2, 1, 1, x.shape[1], generator=torch.Generator().manual_seed(3)) < 0.7
    whole = layer(x, mask=mask, causal=causal, angles=angles)
    parts = [shard(layer, d, devices) for d in range(devices)]
    assert {part.heads for part in parts} == {heads // devices}
    found = sum((part(x, mask=mask, causal=causal, angles=angles) for part in parts), torch.zeros(()))
    close(found, whole)
    assert [part.out.bias is None for part in parts] == [False, *([True] * (devices - 1))]


@pytest.mark.system(SLUG, "gradients")
@pytest.mark.parametrize("key_heads", [8, 2])
def test_gradients_are_the_layers_cut(key_heads: int) -> None:
    """A replicated key head has on each device the gradient through the heads there: together the layer's."""
    devices, layer, x = 4, make_layer(8, key_heads), draw_input().requires_grad_()
    out = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(5))
    (of_x,) = torch.autograd.grad((layer(x) * out).sum(), x, retain_graph=True)
    (layer(x) * out).sum().backward()
    parts, sums = [shard(layer, d, devices) for d in range(devices)], torch.zeros_like(x)
    found = {name: torch.zeros_like(layer.get_parameter(f"{name}.weight")) for name in PARTS}
    columns = []
    for d, part in enumerate(parts):
        y = x.detach().requires_grad_()
        (part(y) * out).sum().backward()
        assert y.grad is not None
        sums += y.grad
        columns.append(part.out.weight.grad)
        for name in PARTS:
            found[name][rows_of(d, devices, layer, name)] += part.get_parameter(f"{name}.weight").grad  # type: ignore[arg-type]
    close(sums, of_x)
    close(torch.cat(columns, 1), layer.out.weight.grad)  # type: ignore[arg-type]
    for name in PARTS:
        close(found[name], layer.get_parameter(f"{name}.weight").grad)


@pytest.mark.system(SLUG, "replicated")
def test_one_key_head_is_on_every_device() -> None:
    layer = make_layer(8, 1)
    for d in range(4):
        part = shard(layer, d, 4)
        assert torch.equal(part.k.weight, layer.k.weight)
        assert torch.equal(part.v.weight, layer.v.weight)
        assert part.q.weight.shape[0] == layer.q.weight.shape[0] // 4
    assert [key_heads_of(d, 8, 2) for d in range(8)] == [slice(0, 1)] * 4 + [slice(1, 2)] * 4


@pytest.mark.system(SLUG, "refused")
def test_heads_that_cannot_be_dealt_out() -> None:
    assert [heads_of(d, 8, 96) for d in (0, 7)] == [slice(0, 12), slice(84, 96)]
    with pytest.raises(ValueError, match="8 heads cannot be dealt out evenly to 3 devices"):
        shard(make_layer(8, 8), 0, 3)
    with pytest.raises(ValueError, match="6 key heads and 4 devices"):
        key_heads_of(0, 4, 6)


@pytest.mark.system(SLUG, "two-processes")
def test_two_processes(tmp_path: Path) -> None:
    """Both have the layer's output and the gradient of x; each has the gradients of its own shard."""
    done = run_pair("tests.engine.two_shards", str(tmp_path), timeout=120)
    assert done.returncode == 0, done.stderr
    for key_heads in (8, 1):
        layer, x = make_layer(8, key_heads), draw_input().requires_grad_()
        y = layer(x, causal=True)
        y.square().sum().backward()
        for rank in range(2):
            found = load_file(tmp_path / f"{key_heads}-{rank}.safetensors")
            close(found["y"], y)
            close(found["x"], grad(x))
            close(found["q"], grad(layer.q.weight)[rows_of(rank, 2, layer, "q")])
        if key_heads == 8:
            close(found["k"], grad(layer.k.weight)[rows_of(1, 2, layer, "k")])


def grad(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad
