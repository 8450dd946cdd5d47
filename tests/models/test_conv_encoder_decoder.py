"""The encoder-decoder: its two halves, its code, any size, and the detail that it loses against the U-Net."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models.conv_encoder_decoder import ConvEncoderDecoder, ConvEncoderDecoderConfig
from descend.models.unet import UNet, UNetConfig
from tests.close import close

pytestmark = pytest.mark.system("conv-encoder-decoder")


@pytest.mark.system("conv-encoder-decoder", "code")
def test_equal_to_a_plain_stack_of_layers() -> None:
    """The same weights in one nn.Sequential: there is no way around the code."""
    torch.manual_seed(0)
    model = ConvEncoderDecoder(ConvEncoderDecoderConfig(2, 3, 4, 2)).double()
    layers = [layer for level in model.down[:-1] for layer in (level, nn.MaxPool2d(2))] + [model.down[-1]]
    layers += [layer for pair in zip(model.up, model.convs, strict=True) for layer in pair]
    plain = nn.Sequential(*layers, model.head)
    x = torch.randn(2, 2, 12, 16, dtype=torch.float64)
    close(model(x), plain(x))
    assert model.encode(x).shape == (2, 16, 3, 4)
    assert model.maps(x).shape == (2, 4, 12, 16)


@pytest.mark.system("conv-encoder-decoder", "any-size")
@pytest.mark.parametrize("size", [(8, 8), (11, 14), (9, 5)])
def test_any_size(size: tuple[int, int]) -> None:
    model = ConvEncoderDecoder(ConvEncoderDecoderConfig(1, 2, 2, 2))
    assert model(torch.zeros(1, 1, *size)).shape == (1, 2, *size)


@pytest.mark.system("conv-encoder-decoder", "twin")
def test_it_is_the_u_net_without_the_skips_weights() -> None:
    """The only parameters that a U-Net has more are those of the 3×3 kernels that read the skips."""
    with torch.device("meta"):
        unet, twin = UNet(UNetConfig(padding=1)), ConvEncoderDecoder(ConvEncoderDecoderConfig())
    more = sum(9 * width * width for width in (64, 128, 256, 512))
    assert sum(p.numel() for p in unet.parameters()) - sum(p.numel() for p in twin.parameters()) == more


@pytest.mark.system("conv-encoder-decoder", "reconstruction")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_detail_is_lost_in_the_code(seed: int) -> None:
    """Trained to give back white noise, as many steps, the U-Net copies what does not fit through a code of 1/16."""
    errors = []
    for build in (
        lambda: UNet(UNetConfig(1, 1, 4, 2, 1)),
        lambda: ConvEncoderDecoder(ConvEncoderDecoderConfig(1, 1, 4, 2)),
    ):
        torch.manual_seed(seed)
        model: nn.Module = build()
        random = torch.Generator().manual_seed(seed)
        rule = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(80):
            x = torch.randn(8, 1, 16, 16, generator=random)
            rule.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            rule.step()
        errors.append(float(loss.detach()))
    assert errors[0] < 0.35 < 0.7 < errors[1]


def test_gradcheck() -> None:
    torch.manual_seed(1)
    model = ConvEncoderDecoder(ConvEncoderDecoderConfig(1, 2, 2, 1)).double()
    x = torch.randn(1, 1, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ConvEncoderDecoderConfig(width=0)
