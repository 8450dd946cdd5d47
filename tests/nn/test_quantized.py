"""Layers of codes: what they keep of a layer, and that they compute with nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from descend.nn.quantized import QuantizedLinear
from tests.close import close


def make_linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(inputs, outputs, bias)


@pytest.mark.system("post-training-quantization")
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("group", [32, 16, 0])
@pytest.mark.parametrize("inputs", [64, 45])
def test_a_layer_of_codes_is_within_half_a_step(bits: int, group: int, inputs: int) -> None:
    linear = make_linear(inputs, 12)
    layer = QuantizedLinear.of(linear, bits, group)
    size = group or inputs
    steps = layer.scales.repeat_interleave(size, 1)[:, :inputs]
    error = (layer.weight - linear.weight).abs()
    assert (error <= steps / 2 * (1 + 1e-5)).all()
    assert (error > steps / 3).any()
    assert layer.scales.shape == (12, -(-inputs // size))
    x = torch.randn(3, 5, inputs)
    close(layer(x), x @ layer.weight.T + linear.bias)
    close(layer.linear()(x), layer(x))


@pytest.mark.parametrize("bits", [8, 4])
def test_layout_of_the_codes(bits: int) -> None:
    """Codes ±1 at the ends of a group, two to a byte, the first in the low half."""
    linear = nn.Linear(32, 1, bias=False)
    linear.weight.data = torch.linspace(-1, 1, 32)[None]
    layer = QuantizedLinear.of(linear, bits)
    most = 127 if bits == 8 else 7
    close(layer.scales, torch.tensor([[1 / most]]))
    assert layer.bias is None
    if bits == 8:
        assert layer.codes.dtype == torch.int8
        assert layer.codes[0, [0, -1]].tolist() == [-127, 127]
    else:
        assert layer.codes.dtype == torch.uint8
        assert layer.codes.shape == (1, 16)
        wanted = [round(x * 7) + 8 for x in torch.linspace(-1, 1, 32).tolist()]
        assert [n for byte in layer.codes[0].tolist() for n in (byte & 15, byte >> 4)] == wanted


@pytest.mark.system("post-training-quantization", "zero-range")
def test_a_group_of_zeros_stays_zero() -> None:
    linear = make_linear(64, 3)
    with torch.no_grad():
        linear.weight[1] = 0
        linear.weight[2, :32] = 0
    for bits in (8, 4):
        layer = QuantizedLinear.of(linear, bits)
        assert (layer.weight[1] == 0).all()
        assert (layer.weight[2, :32] == 0).all()
        assert layer(torch.ones(1, 64)).isfinite().all()


@pytest.mark.system("post-training-quantization", "oracles")
def test_groups_of_32_are_q8_0_of_gguf() -> None:
    """gguf keeps the step as a half-precision number; the codes are the same."""
    gguf = pytest.importorskip("gguf")
    linear = make_linear(96, 7)
    layer = QuantizedLinear.of(linear, 8, 32)
    packed = gguf.quants.quantize(linear.weight.detach().numpy(), gguf.GGMLQuantizationType.Q8_0)
    blocks = np.frombuffer(packed.tobytes(), dtype=np.uint8).reshape(7, 3, 34)
    steps = torch.from_numpy(blocks[..., :2].copy().view(np.float16)[..., 0].astype(np.float32))
    codes = torch.from_numpy(blocks[..., 2:].copy().view(np.int8).reshape(7, 96))
    assert torch.equal(codes, layer.codes)
    assert torch.equal(steps, layer.scales.half().float())


def test_bits_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="5 bits; weights are kept in 8 or 4"):
        QuantizedLinear(4, 4, bits=5)
    broken = make_linear(4, 4)
    with torch.no_grad():
        broken.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN among the weights"):
        QuantizedLinear.of(broken)
