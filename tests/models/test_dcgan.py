"""DCGAN: the paper's maps and weights, any side that doubles, pixels in −1..1, and how its weights start."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from descend.contracts import Wish
from descend.models.dcgan import DCGAN, TINY, DCGANConfig, ImageDiscriminator
from descend.sampling.chance import PerExample
from tests.close import close

pytestmark = pytest.mark.system("dcgan")


@pytest.mark.system("dcgan", "shapes")
def test_maps_and_weights_of_the_paper() -> None:
    with torch.device("meta"):
        g, d = DCGAN(DCGANConfig()), ImageDiscriminator(DCGANConfig())
    shapes = []
    for layer in (g.norm, *g.ups, g.last, d.first, *d.downs):
        layer.register_forward_hook(lambda _, __, out: shapes.append((*out.shape[1:],)))
    d(g(torch.zeros(2, 100, device="meta")))
    up = [(1024, 4, 4), (512, 8, 8), (256, 16, 16), (128, 32, 32)]
    assert shapes == [*up, (3, 64, 64), *reversed(up)]
    assert sum(p.numel() for p in g.parameters() if p.dim() > 1) == 18_851_200


@pytest.mark.system("dcgan", "sides")
@pytest.mark.parametrize(("side", "depth"), [(28, 2), (32, 3), (64, 4), (8, 2)])
@pytest.mark.parametrize("kernel", [4, 5])
def test_images_of_any_side_that_doubles(side: int, depth: int, kernel: int) -> None:
    config = replace(TINY, side=side, depth=depth, kernel=kernel)
    images = DCGAN(config)(torch.randn(3, 3))
    assert images.shape == (3, 2, side, side)
    assert ImageDiscriminator(config)(images).shape == (3,)


@pytest.mark.system("dcgan", "sides")
def test_a_side_that_does_not_double_is_refused() -> None:
    with pytest.raises(ValueError, match=r"side 30 is not divisible by 2\^2"):
        DCGANConfig(side=30, depth=2)


@pytest.mark.system("dcgan", "range")
def test_pixels_and_probabilities_are_in_range() -> None:
    torch.manual_seed(0)
    g, d = DCGAN(TINY), ImageDiscriminator(TINY)
    images = g(20 * torch.randn(16, 3))
    assert images.abs().max() <= 1
    probability = d(images).sigmoid()
    assert 0 < probability.min() < probability.max() < 1


@pytest.mark.system("dcgan", "start")
def test_layers_and_their_start() -> None:
    torch.manual_seed(0)
    g, d = DCGAN(replace(TINY, latent=50, width=32)), ImageDiscriminator(replace(TINY, width=32))
    for layer in (*g.modules(), *d.modules()):
        assert not isinstance(layer, nn.MaxPool2d | nn.AvgPool2d)
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear) and layer.weight.numel() > 3000:
            assert abs(layer.weight.std() / 0.02 - 1) < 0.1
    names = [type(layer).__name__ for layer in d.downs[0]]
    assert names == ["Conv2d", "BatchNorm2d", "LeakyReLU"]
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in (d.first, g.last))
    assert [type(layer).__name__ for layer in g.ups[0]] == ["ConvTranspose2d", "BatchNorm2d", "ReLU"]


def test_the_generator_is_the_layers_that_it_names() -> None:
    torch.manual_seed(0)
    g, z = DCGAN(TINY).double(), torch.randn(5, 3, dtype=torch.float64)
    first = nn.functional.batch_norm(
        (z @ g.first.weight.T).view(5, 8, 2, 2), None, None, g.norm.weight, g.norm.bias, training=True
    ).relu()
    conv, norm, _ = g.ups[0]
    second = nn.functional.conv_transpose2d(first, conv.weight, stride=2, padding=2, output_padding=1)
    second = nn.functional.batch_norm(second, None, None, norm.weight, norm.bias, training=True).relu()
    last = nn.functional.conv_transpose2d(second, g.last.weight, g.last.bias, 2, 2, 1)
    close(g(z), last.tanh())


@pytest.mark.system("dcgan", "sampled")
def test_one_sample_of_a_batch_can_be_made_again() -> None:
    torch.manual_seed(0)
    g = DCGAN(TINY).eval()
    with torch.no_grad():
        many = g.generate(PerExample(0, 5), Wish())
        one = g.generate(PerExample(0, 1, first=3), Wish())
    close(many[3:4], one)
