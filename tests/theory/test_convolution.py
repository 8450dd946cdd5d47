"""Sizes, counts and receptive fields against torch and against each other."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from descend.theory.convolution import (
    Field,
    conv_flops,
    conv_macs,
    conv_parameters,
    conv_weights,
    dense_parameters,
    exact_size,
    fitting_padding,
    grouped_saving,
    layers_needed,
    output_size,
    receptive_field,
    remaining_share,
    same_padding,
    separable_macs,
    stacks,
    transposed_size,
    whole_size,
)
from tests.close import close

SIZES, FIELD, SEPARABLE = "padding-and-stride-arithmetic", "receptive-field", "depthwise-separable-convolution"


@pytest.mark.system("padding-and-stride-arithmetic", "size")
@pytest.mark.system("convolution-and-cross-correlation", "length")
@pytest.mark.system(SIZES)
def test_floor_is_torchs_size() -> None:
    for n, k, p, s, d in itertools.product((7, 8, 11), (1, 2, 3), (0, 1, 2), (1, 2, 3), (1, 2, 3)):
        y = F.conv1d(torch.zeros(1, 1, n), torch.zeros(1, 1, k), None, s, p, d)
        assert output_size(n, k, p, s, d) == y.shape[-1]
        up = F.conv_transpose1d(torch.zeros(1, 1, n), torch.zeros(1, 1, k), None, s, min(p, k - 1))
        assert transposed_size(n, k, min(p, k - 1), s) == up.shape[-1]


@pytest.mark.system("padding-and-stride-arithmetic", "refused")
@pytest.mark.system(SIZES)
def test_the_book_refuses_what_torch_floors() -> None:
    """DLN: 7 pixels, K = 3: strides 1 and 2 fit, stride 3 gives 2.33 and needs padding 1."""
    assert [whole_size(7, 3, stride=s) for s in (1, 2)] == [5, 3]
    with pytest.raises(ValueError, match=r"= 2\.333; padding 1 makes it whole"):
        whole_size(7, 3, stride=3)
    assert whole_size(7, 3, 1, 3) == 3
    with pytest.raises(ValueError, match="no padding makes it whole"):
        whole_size(8, 3, stride=2)  # 5 + 2P is odd for every P
    assert fitting_padding(8, 3, 2) is None
    for n, k, s in itertools.product(range(5, 12), (2, 3, 5), (1, 2, 3, 4)):
        found = fitting_padding(n, k, s)
        whole = [p for p in range(20) if exact_size(n, k, p, s).denominator == 1]
        assert found == (whole[0] if whole else None)
    with pytest.raises(ValueError, match="does not fit"):
        output_size(3, 5)


@pytest.mark.system("padding-and-stride-arithmetic", "same")
@pytest.mark.system(SIZES)
def test_same_padding_keeps_the_size() -> None:
    for k, d in itertools.product((1, 3, 5, 7), (1, 2, 3)):
        assert whole_size(13, k, same_padding(k, d), 1, d) == 13
    with pytest.raises(ValueError, match="odd"):
        same_padding(4)


@pytest.mark.system("cnn-inductive-biases", "dense-cost")
@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "parameters", "flops")
@pytest.mark.system("grouped-and-depthwise-convolution")
@pytest.mark.system("grouped-and-depthwise-convolution", "weights")
@pytest.mark.system(SEPARABLE)
def test_counts_are_the_layers_own() -> None:
    for c_in, c_out, kernel, groups in ((3, 6, (5, 5), 1), (8, 12, (3, 1), 4), (6, 6, (3, 3), 6), (4, 2, (1, 1), 1)):
        module = nn.Conv2d(c_in, c_out, kernel, groups=groups)
        assert conv_weights(c_in, c_out, kernel, groups) == module.weight.numel()
        assert conv_parameters(c_in, c_out, kernel, groups) == sum(p.numel() for p in module.parameters())
        assert grouped_saving(c_in, c_out, kernel, groups) == groups
    assert dense_parameters((3, 4), (5,)) == sum(p.numel() for p in nn.Linear(12, 5).parameters())
    assert conv_flops(3, 6, (5, 5), (28, 28)) == 2 * conv_macs(3, 6, (5, 5), (28, 28)) == 2 * 450 * 784


@pytest.mark.system("grouped-and-depthwise-convolution")
@pytest.mark.system("grouped-and-depthwise-convolution", "erratum")
def test_erratum_of_the_depthwise_saving() -> None:
    """MF prints C_out / C_in, which is 1 for 64 and 64; the weights fall by C_out = 64."""
    full, depthwise = conv_weights(64, 64, (3, 3)), conv_weights(64, 64, (3, 3), groups=64)
    assert full / depthwise == 64


@pytest.mark.system("depthwise-separable-convolution", "share")
@pytest.mark.system(SEPARABLE)
def test_remaining_share_is_exact() -> None:
    """1/C_out + 1/K², for any C_in and any image."""
    for c_in, c_out, k, side in itertools.product((1, 16, 64), (8, 128), (1, 3, 5), (7, 56)):
        close(separable_macs(c_in, c_out, (k, k), (side, side)).remaining, remaining_share(c_out, k))


@pytest.mark.system("receptive-field", "calculator")
@pytest.mark.system(FIELD)
def test_receptive_fields() -> None:
    """DLN: 3, 5, 7, .., 21 for 3×3; downsampling makes it grow faster."""
    assert [receptive_field([(3,)] * depth).size for depth in (1, 2, 3, 10)] == [3, 5, 7, 21]
    assert receptive_field([(3, 2)] * 4).size == 31
    assert receptive_field([(7, 2, 3), (3, 2, 1)]) == Field(11, 4, -5)
    assert receptive_field([(3, 1, 0, 1), (3, 1, 0, 2), (3, 1, 0, 4)]).size == 15
    assert [layers_needed(d, 3) for d in (1, 3, 5, 10)] == [1, 3, 5, 10]
    assert layers_needed(5, 5) == 3
    assert Field(3, 2, -1).join(Field(7, 2, 0)) == Field(8, 2, -1)
    with pytest.raises(ValueError, match="jumps 1 and 2"):
        Field().join(Field(3, 2))


@pytest.mark.system("receptive-field", "small-filters")
@pytest.mark.system(FIELD)
def test_small_filters_stacked() -> None:
    """DLN-A.167: five 3×3 layers see 11×11 with 45 C² weights against 121 C², and five nonlinearities for one."""
    small, large = stacks([(3, 5), (11, 1)], channels=64, side=14)
    assert small.receptive_field == large.receptive_field == 11
    assert (small.weights, large.weights) == (45 * 64**2, 121 * 64**2)
    assert (small.nonlinearities, large.nonlinearities) == (5, 1)
    assert small.flops / large.flops == 45 / 121


@pytest.mark.system("receptive-field", "calculator", "measured")
@pytest.mark.system(FIELD)
def test_start_and_jump_place_the_field() -> None:
    """Output i depends on exactly the pixels start + i · jump .. + size − 1."""
    stack = [(3, 2, 1), (2, 1, 0), (3, 3, 1)]
    net = nn.Sequential(*(nn.Conv1d(1, 1, k, s, p, bias=False) for k, s, p in stack)).double()
    x = torch.randn(1, 1, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y, field = net(x), receptive_field(stack)
    for i in range(2, y.shape[-1] - 2):
        [g] = torch.autograd.grad(y[0, 0, i], x, retain_graph=True)
        first = field.start + i * field.jump
        assert torch.equal(g[0, 0].nonzero().flatten(), torch.arange(first, first + field.size))
