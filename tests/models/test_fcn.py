"""FCN: bilinear up-sampling against torch, the dense layers of a VGG as convolutions, fusion by sum, any size."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from descend.models.fcn import FCN, FCNConfig, Twice, bilinear, from_vgg, upsample
from descend.models.vgg import VGG, VGGConfig
from tests.close import close

pytestmark = pytest.mark.system("fcn")


def small(stride: int = 8, classes: int = 4) -> FCN:
    torch.manual_seed(0)
    return FCN(FCNConfig(3, classes, (4, 6, 8, 10, 12), (1, 1, 2, 1, 1), 16, 3, stride, 0.0)).double()


@pytest.mark.system("fcn", "up-sampling")
@pytest.mark.parametrize("factor", [2, 4, 8])
def test_up_sampling_is_bilinear_interpolation(factor: int) -> None:
    """Equal to torch's, away from the edge, where torch repeats the last pixel and a transposed convolution fades."""
    s = torch.randn(2, 3, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, theirs = upsample(s, factor), F.interpolate(s, scale_factor=factor, mode="bilinear")
    assert ours.shape == theirs.shape
    inner = slice(factor, -factor)
    close(ours[:, :, inner, inner], theirs[:, :, inner, inner])
    close(bilinear(factor).sum().item(), float(factor**2))  # each pixel is spread over f² pixels


@pytest.mark.system("fcn", "up-sampling")
def test_learnt_up_sampling_starts_bilinear() -> None:
    s = torch.randn(2, 3, 6, 5, generator=torch.Generator().manual_seed(1))
    layer = Twice(3)
    close(layer(s), upsample(s, 2))
    assert layer.weight.requires_grad


@pytest.mark.system("fcn", "forms")
@pytest.mark.parametrize(("stride", "fused"), [(32, ()), (16, (3,)), (8, (3, 2))])
def test_the_three_forms_as_written(stride: int, fused: tuple[int, ...]) -> None:
    """With nothing of the model's forward but its layers; fusion is a sum."""
    model = small(stride)
    assert model.config.fused == fused
    x = torch.randn(1, 3, 64, 96, dtype=torch.float64)
    p: list[torch.Tensor] = []
    for stage in model.stages:
        p.append(stage(p[-1] if p else x))
    s = model.score(model.fc7(model.fc6(p[4]).relu()).relu())
    if stride < 32:
        s = model.twice[0](s) + model.scores[0](p[3])
    if stride < 16:
        s = model.twice[1](s) + model.scores[1](p[2])
    assert s.shape[2:] == (64 // stride, 96 // stride)
    close(model(x), upsample(s, stride))


@pytest.mark.system("fcn", "any-size")
@pytest.mark.parametrize("stride", [32, 16, 8])
@pytest.mark.parametrize("size", [(32, 32), (50, 77), (1, 33)])
def test_any_image_size(stride: int, size: tuple[int, int]) -> None:
    assert small(stride)(torch.zeros(1, 3, *size, dtype=torch.float64)).shape == (1, 4, *size)


@pytest.mark.system("fcn", "erratum")
@pytest.mark.system("vgg", "features")
def test_a_dense_layer_is_a_convolution_of_the_grids_size() -> None:
    """A VGG's f7 is the FCN's map at the one place where fc6 sees the whole grid; larger images have more places."""
    torch.manual_seed(0)
    vgg = VGG(VGGConfig((3, 20, 20), 5, (1, 2), (4, 6), grid=5, hidden=12, dropout=0.0)).double().eval()
    model = from_vgg(vgg, classes=4, stride=2).double().eval()
    assert model.config.kernel == 5
    x = torch.randn(2, 3, 20, 20, dtype=torch.float64)
    close(model.maps(x)[:, :, 2, 2], vgg.features(x))
    assert model.maps(torch.zeros(1, 3, 20, 28, dtype=torch.float64)).shape == (1, 12, 5, 7)
    assert model(x).shape == (2, 4, 20, 20)


@pytest.mark.system("fcn", "erratum")
def test_published_shape_of_vgg_16() -> None:
    with torch.device("meta"):
        model = FCN(FCNConfig())
        pools = model.pools(torch.empty(1, 3, 224, 224))
    assert [tuple(p.shape[1:3]) for p in pools] == [(64, 112), (128, 56), (256, 28), (512, 14), (512, 7)]
    assert model.fc6.weight.shape == (4096, 512, 7, 7)
    assert model.fc7.weight.shape == (4096, 4096, 1, 1)
    shapes = [tuple(weight.shape) for name, weight in model.scores.named_parameters() if name.endswith("weight")]
    assert shapes == [(21, 512, 1, 1), (21, 256, 1, 1)]


def test_gradcheck() -> None:
    torch.manual_seed(1)
    model = FCN(FCNConfig(1, 2, (2, 2), (1, 1), 3, 3, 2, 0.0)).double()
    x = torch.randn(1, 1, 6, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="stride 64: the backbone's maps have 32, 16, 8, 4, 2"):
        FCNConfig(stride=64)
    with pytest.raises(ValueError, match="2 widths for 1 stages"):
        FCNConfig(widths=(4, 4), convs=(1,), stride=2)
    with pytest.raises(ValueError, match="odd side"):
        FCNConfig(kernel=4)
