"""The U-Net against its equations in numpy and scipy, the paper's sizes, and what its skips are for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.signal import correlate2d

from descend.models.conv_encoder_decoder import ConvEncoderDecoder, ConvEncoderDecoderConfig
from descend.models.unet import UNet, UNetConfig
from tests.close import close

pytestmark = pytest.mark.system("unet")


def by_hand(model: UNet, image: np.ndarray) -> np.ndarray:
    """One image (c, h, w) through the equations, in float64, with nothing of torch but the weights."""
    w = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    c = model.config

    def conv(x: np.ndarray, name: str) -> np.ndarray:
        kernels, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        pad = c.padding if kernels.shape[2] == 3 else 0
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
        maps = [sum(correlate2d(x[i], k[i], "valid") for i in range(len(x))) for k in kernels]
        return np.stack(maps) + bias[:, None, None]

    def convs(x: np.ndarray, name: str) -> np.ndarray:
        for layer in (0, 3):
            x = np.maximum(conv(x, f"{name}.{layer}"), 0)
        return x

    def pool(x: np.ndarray) -> np.ndarray:
        rows, columns = range(0, x.shape[1], 2), range(0, x.shape[2], 2)
        return np.array([[[m[i : i + 2, j : j + 2].max() for j in columns] for i in rows] for m in x])

    def up(x: np.ndarray, name: str) -> np.ndarray:
        kernel, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        blocks = np.einsum("ihw,ioab->ohawb", x, kernel)  # each pixel becomes a block of 2×2
        return blocks.reshape(len(bias), 2 * x.shape[1], 2 * x.shape[2]) + bias[:, None, None]

    skips, h = [], image
    for level in range(c.depth):
        skips.append(convs(h, f"down.{level}"))
        h = pool(skips[-1])
    h = convs(h, f"down.{c.depth}")
    for level, s in enumerate(reversed(skips)):
        h = up(h, f"ups.{level}.up")
        height, width = min(h.shape[1], s.shape[1]), min(h.shape[2], s.shape[2])
        top, left = (s.shape[1] - height) // 2, (s.shape[2] - width) // 2
        s = s[:, top : top + height, left : left + width]
        h = convs(np.concatenate([s, h[:, :height, :width]]), f"ups.{level}.convs")
    return conv(h, "head")


@pytest.mark.system("unet", "equation")
@pytest.mark.parametrize(
    ("config", "size"),
    [
        (UNetConfig(2, 3, 3, 2, padding=1), (8, 12)),
        (UNetConfig(1, 2, 2, 2, padding=1), (7, 9)),
        (UNetConfig(1, 2, 2, 1, padding=0), (20, 23)),
    ],
    ids=["same", "odd", "valid"],
)
def test_equal_to_the_equations(config: UNetConfig, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    model = UNet(config).double()
    x = torch.randn(2, config.channels, *size, dtype=torch.float64)
    close(model(x), torch.from_numpy(np.stack([by_hand(model, image.numpy()) for image in x])))


@pytest.mark.system("unet", "sizes")
def test_published_sizes() -> None:
    """572 in, 388 out; the maps that are copied across are 568, 280, 136 and 64 pixels wide."""
    config = UNetConfig()
    with torch.device("meta"):
        model, x = UNet(config), torch.empty(1, 1, 572, 572)
        bottom, skips = model.contract(x)
        out = model(x)
    assert bottom.shape == (1, 1024, 28, 28)
    assert [tuple(s.shape[1:3]) for s in skips] == [(64, 568), (128, 280), (256, 136), (512, 64)]
    assert out.shape == (1, 2, 388, 388)
    assert config.size(572) == 388


@pytest.mark.system("unet", "sizes")
@pytest.mark.parametrize("side", [61, 64, 70, 77])
def test_the_size_is_told_before_the_run(side: int) -> None:
    config = UNetConfig(width=2, depth=2)
    assert UNet(config)(torch.zeros(1, 1, side, side)).shape[2:] == (config.size(side),) * 2
    same = UNetConfig(width=2, depth=3, padding=1)
    assert UNet(same)(torch.zeros(1, 1, side, 33)).shape[2:] == (same.size(side), 33)
    with pytest.raises(ValueError, match="too small for 4 levels"):
        UNetConfig().size(100)


@pytest.mark.system("unet", "concatenation")
def test_joining_doubles_the_channels() -> None:
    with torch.device("meta"):
        model = UNet(UNetConfig())
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    for level, width in enumerate((512, 256, 128, 64)):
        assert shapes[f"ups.{level}.up.weight"] == (2 * width, width, 2, 2)
        assert shapes[f"ups.{level}.convs.0.weight"] == (width, 2 * width, 3, 3)


@pytest.mark.system("unet", "concatenation")
def test_the_input_is_reached_through_every_skip() -> None:
    """With the bottom and all other skips cut off, the gradient still comes through."""
    torch.manual_seed(0)
    model = UNet(UNetConfig(1, 2, 4, 3, 1)).double()
    x = torch.randn(1, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    bottom, skips = model.contract(x)
    for level in range(3):
        kept = [s if i == level else s.detach() for i, s in enumerate(skips)]
        gradient = torch.autograd.grad(model.expand(bottom.detach(), kept).sum(), x, retain_graph=True)[0]
        assert gradient.abs().sum() > 0


@pytest.mark.system("unet", "not-an-autoencoder")
@pytest.mark.system("conv-encoder-decoder")
def test_a_u_net_is_not_an_autoencoder() -> None:
    """The bottom alone does not give a U-Net's output: its skips depend on the image. A code gives its twin's."""
    torch.manual_seed(0)
    unet = UNet(UNetConfig(1, 2, 4, 2, 1))
    x = torch.randn(2, 1, 16, 16)
    bottom, skips = unet.contract(x)
    assert torch.equal(unet.head(unet.expand(bottom, skips)), unet(x))
    zeroed = unet.head(unet.expand(bottom, [torch.zeros_like(s) for s in skips]))
    assert (zeroed - unet(x)).norm() > 0.3 * unet(x).norm()
    swapped = unet.head(unet.expand(bottom, [s.flip(0) for s in skips]))  # the other image's skips
    assert (swapped - unet(x)).norm() > 0.3 * unet(x).norm()
    twin = ConvEncoderDecoder(ConvEncoderDecoderConfig(1, 2, 4, 2))
    assert torch.equal(twin.decode(twin.encode(x), 16, 16), twin(x))


def test_gradcheck() -> None:
    torch.manual_seed(1)
    model = UNet(UNetConfig(1, 2, 2, 1, 1)).double()
    x = torch.randn(1, 1, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


@pytest.mark.system("unet", "generator")
def test_an_image_from_an_image() -> None:
    """As a generator: three channels in, three out, any size."""
    model = UNet(UNetConfig(channels=3, classes=3, width=4, depth=3, padding=1))
    assert model(torch.randn(1, 3, 21, 30)).shape == (1, 3, 21, 30)


@pytest.mark.system("unet", "generator")
def test_it_learns_to_change_an_image() -> None:
    """As a generator: the negative of an image with its colours exchanged, of images that it has not seen."""
    torch.manual_seed(0)
    change = lambda x: -x.roll(1, 1)
    model = UNet(UNetConfig(3, 3, 8, 2, padding=1, norm="batch"))
    rule = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        x = torch.randn(8, 3, 16, 16)
        rule.zero_grad()
        (model(x) - change(x)).square().mean().backward()
        rule.step()
    x = torch.randn(8, 3, 16, 16)
    with torch.no_grad():
        assert (model.eval()(x) - change(x)).square().mean() < 0.5  # a constant answer has 1


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="padding 2"):
        UNetConfig(padding=2)
    with pytest.raises(ValueError, match="at least 1"):
        UNetConfig(depth=0)
