from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.grad_cam import coarse_cam, grad_cam
from descend.interpret.layers import as_maps, feature_maps
from descend.interpret.occlusion import list_places, occlusion
from descend.interpret.overlay import colour_heat, overlay_heat, rescale_heat
from descend.interpret.rollout import rollout, rollout_heat
from tests.close import close
from tests.interpret.nets import Cam, Tokens


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "heat-maps")
def test_grad_cam_is_the_class_activation_map_after_average_pooling() -> None:
    torch.manual_seed(0)
    net, x, y = Cam(), torch.randn(2, 3, 6, 8), torch.tensor([4, 1])
    a = net.conv(x).detach()
    cam = torch.einsum("bk,bkij->bij", net.head.weight[y], a).clamp_min(0) / 48
    close(grad_cam(net, x, y, "conv"), cam)
    close(grad_cam(net, x, y), cam)  # the last convolution by itself
    for p in net.parameters():
        p.requires_grad_(False)
    with torch.no_grad():  # a report is made without gradients, and a frozen network has none
        close(grad_cam(net, x, y), cam)


@pytest.mark.system("filter-visualization")
def test_grad_cam_finds_the_object_it_was_built_to_see() -> None:
    """A network that adds up the red channel: heat lies on the red square, not on the green one."""
    net = Cam()
    with torch.no_grad():
        net.conv.weight.zero_()
        net.conv.weight[0, 0, 1, 1] = net.conv.weight[1, 1, 1, 1] = 1
        net.conv.bias.zero_()  # type: ignore[union-attr]
        net.head.weight.zero_()
        net.head.weight[2, 0] = net.head.weight[3, 1] = 1
    x = torch.zeros(1, 3, 12, 12)
    x[0, 0, 1:5, 1:5] = 1
    x[0, 1, 7:11, 7:11] = 1
    red, green = (grad_cam(net, x, torch.tensor([k]))[0] > 0 for k in (2, 3))
    assert torch.equal(red, x[0, 0] > 0)
    assert torch.equal(green, x[0, 1] > 0)


def test_tokens_are_maps_too() -> None:
    torch.manual_seed(0)
    net, x = Tokens(), torch.randn(2, 1, 8, 8)
    t = feature_maps(net, "block", x)[:, 1:]
    alpha = net.head.weight[0].detach() / 17  # every token alike: the mean of the gradient is the gradient
    expected = (t @ alpha).view(2, 4, 4).clamp_min(0)
    close(coarse_cam(net, x, torch.tensor([0, 0]), "block"), expected)
    assert as_maps(torch.zeros(1, 2 + 15, 7), 3, 5).shape == (1, 7, 3, 5)
    with pytest.raises(Mistake, match="do not form a grid"):
        as_maps(torch.zeros(1, 8, 7), 16, 16)
    with pytest.raises(Mistake, match="no maps"):
        as_maps(torch.zeros(1, 8), 16, 16)


class Count(nn.Module):
    """Class 1 against class 0 by the sum of the pixels' squares; counts its calls."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        z = x.square().sum(dim=(1, 2, 3))
        return torch.stack([torch.zeros_like(z), z], dim=1)


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "heat-maps")
def test_occlusion_is_the_loop_over_places() -> None:
    torch.manual_seed(0)
    net, x = Count(), torch.randn(2, 3, 7, 6) / 5
    found = occlusion(net, x, torch.tensor([1, 0]), side=3, stride=2, batch=5)
    assert found.shape == (2, 3, 3)
    assert net.calls == 1 + 4  # 18 covered images, 5 at a time
    for b, y in enumerate((1, 0)):
        for r, top in enumerate((0, 2, 4)):
            for s, left in enumerate((0, 2, 3)):  # the last patch ends at the edge
                covered = x[b : b + 1].clone()
                covered[..., top : top + 3, left : left + 3] = 0
                drop = net(x[b : b + 1]).softmax(1)[0, y] - net(covered).softmax(1)[0, y]
                close(found[b, r, s], drop, loosen=3)  # a difference of probabilities
    assert list_places(7, 3, 3).tolist() == [0, 3, 4]
    with pytest.raises(Mistake, match="does not fit"):
        occlusion(net, x, side=9)


def test_rollout_by_hand() -> None:
    first = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])[None]  # two heads
    second = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]] * 2)[None]
    # mean heads: [[.5, .5], [.5, .5]] -> [[.75, .25], [.25, .75]]; second -> [[.5, .5], [.5, .5]]
    close(rollout([first])[0], torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    close(rollout([first, second])[0], torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    eye = torch.eye(5).expand(1, 3, 5, 5)
    close(rollout([eye, eye])[0], torch.eye(5))
    maps = [torch.randn(2, 3, 17, 17, generator=torch.Generator().manual_seed(i)).softmax(-1) for i in range(3)]
    r = rollout(maps)
    close(r.sum(-1), torch.ones(2, 17))
    heat = rollout_heat(maps, 32, 32)
    close(heat.flatten(1), r[:, 0, 1:])
    close(
        rollout_heat([m[:, :, 1:, 1:] for m in maps], 32, 32).flatten(1),
        rollout([m[:, :, 1:, 1:] for m in maps]).mean(1),
    )
    with pytest.raises(Mistake, match="square"):
        rollout([torch.zeros(1, 2, 3, 4)])


def test_overlay() -> None:
    heat = torch.tensor([[[0.0, 1.0], [2.0, 4.0]], [[3.0, 3.0], [3.0, 3.0]]])
    close(rescale_heat(heat)[0], torch.tensor([[0.0, 0.25], [0.5, 1.0]]))
    assert not rescale_heat(heat)[1].any()
    close(colour_heat(torch.ones(1, 1, 1)).flatten(), torch.tensor([0.85, 0.1, 0.1]))
    out = overlay_heat(torch.rand(2, 1, 8, 8), heat)
    assert out.shape == (2, 3, 8, 8)
    assert 0 <= float(out.min()) <= float(out.max()) <= 1


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "activation-maps")
def test_feature_maps_are_the_layers_outputs() -> None:
    torch.manual_seed(0)
    net, x = Cam(), torch.randn(2, 3, 6, 6)
    close(feature_maps(net, "conv", x), F.conv2d(x, net.conv.weight, net.conv.bias, padding=1))
    twice = nn.Sequential(net.conv, nn.Conv2d(4, 3, 1), net.conv)
    with pytest.raises(Mistake, match="ran 2 times"):
        feature_maps(twice, "0", x)
