"""Styles, equalised layers and pixel norms: the statistics that they promise, against torch where it has them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from descend.nn.adversarial.equalised import EqualConv2d, EqualLinear, pixel_norm
from descend.nn.adversarial.style import AdaIN, MappingNetwork, PixelNoise, adaptive_instance_norm
from tests.close import close


@pytest.mark.system("stylegan")
@pytest.mark.system("stylegan", "adain")
def test_maps_get_the_styles_mean_and_scale() -> None:
    torch.manual_seed(0)
    x = 3 + 2 * torch.randn(2, 3, 5, 7, dtype=torch.float64)
    scale, shift = torch.randn(2, 2, 3, dtype=torch.float64)
    found = adaptive_instance_norm(x, scale, shift)
    close(found.mean(dim=(2, 3)), shift)
    close(found.std(dim=(2, 3), unbiased=False), scale.abs(), loosen=100)  # ε in the root
    plain = F.instance_norm(x, eps=1e-8)
    close(found, scale[..., None, None] * plain + shift[..., None, None])
    again = adaptive_instance_norm(5 * found + 1, scale.abs(), shift)  # the last style is what counts
    close(again, adaptive_instance_norm(x, scale.abs() * scale.sign(), shift), loosen=100)


@pytest.mark.system("stylegan", "adain")
def test_the_layer_starts_with_scale_one() -> None:
    torch.manual_seed(0)
    layer = AdaIN(3, 4)
    x = torch.randn(2, 3, 6, 6)
    close(layer(x, torch.zeros(2, 4)), F.instance_norm(x, eps=1e-8))


@pytest.mark.system("stylegan", "noise")
def test_noise_is_weighed_by_channel() -> None:
    layer = PixelNoise(3)
    x, noise = torch.randn(2, 3, 2, 2), torch.randn(2, 4)
    assert torch.equal(layer(x, noise), x)  # B = 0 at the start
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.0, 1.0, 2.0]))
    added = layer(x, noise) - x
    close(added[:, 1], noise.view(2, 2, 2), loosen=10)
    close(added[:, 2], 2 * noise.view(2, 2, 2), loosen=10)
    assert torch.equal(layer(x, noise)[:, 0], x[:, 0])


@pytest.mark.system("stylegan", "mapping")
def test_mapping_is_dense_layers_of_normalized_noise() -> None:
    torch.manual_seed(0)
    net = MappingNetwork(4, 5, 2)
    z = torch.randn(3, 4)
    h = z / z.square().mean(dim=1, keepdim=True).sqrt()
    for layer in net.layers:
        h = F.leaky_relu(F.linear(h, layer.weight * layer.scale, layer.bias * layer.speed), 0.2)
    close(net(z), h)
    close(net(7 * z), net(z), loosen=10)  # the length of z does not matter


@pytest.mark.system("progressive-gan")
@pytest.mark.system("progressive-gan", "layers")
def test_equalised_layers_start_as_hes_and_step_alike() -> None:
    torch.manual_seed(0)
    conv, dense = EqualConv2d(8, 400, 3, 1), EqualLinear(72, 400)
    for layer in (conv, dense):
        assert abs((layer.weight * layer.scale).std() / math.sqrt(2 / 72) - 1) < 0.03
    x = torch.randn(2, 8, 5, 5)
    close(conv(x), F.conv2d(x, conv.weight * math.sqrt(2 / 72), conv.bias, padding=1))
    y = torch.randn(3, 72)
    close(dense(y), F.linear(y, dense.weight * math.sqrt(2 / 72)))
    slow = EqualLinear(72, 5, speed=0.01)
    slow(y).sum().backward()
    full = nn.Linear(72, 5, bias=False)
    full(y).sum().backward()
    assert slow.weight.grad is not None
    assert full.weight.grad is not None
    close(slow.weight.grad, full.weight.grad * slow.scale)  # a hundredth of He's scale


@pytest.mark.system("progressive-gan")
@pytest.mark.system("progressive-gan", "layers")
def test_pixel_norm_is_torchs_rms_norm_over_channels() -> None:
    x = torch.randn(2, 6, 3, 3)
    theirs = F.rms_norm(x.movedim(1, -1), (6,), eps=1e-8).movedim(-1, 1)
    close(pixel_norm(x), theirs)
