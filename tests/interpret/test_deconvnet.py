from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.deconvnet import deconvnet, deconvnet_of_layers, keep_strongest, unpool
from descend.interpret.gradients import guided_gradient, input_gradient, saliency
from tests.close import close
from tests.interpret.nets import vgg

X = torch.randn(3, 2, 12, 12, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "deconvnet")
@pytest.mark.parametrize("overlap", [False, True])
def test_any_network_equals_the_walk_through_its_layers(overlap: bool) -> None:
    net = vgg(overlap=overlap)
    walked = deconvnet_of_layers(list(net), X, 1)
    close(deconvnet(net, "5", X, 1), walked)
    x = X.clone().requires_grad_()
    a = net(x)
    (gradient,) = torch.autograd.grad(a, x, keep_strongest(a.detach(), 1))
    assert walked.abs().amax() > 0.01
    assert not torch.allclose(gradient, walked), "the ReLU makes the difference"


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "linear")
def test_the_linear_case_is_the_input_gradient() -> None:
    net = vgg(linear=True)
    x = X.clone().requires_grad_()
    a = net(x)
    (gradient,) = torch.autograd.grad(a, x, keep_strongest(a.detach(), 1))
    close(deconvnet(net, "5", X, 1), gradient)


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "deconvnet")
def test_by_hand() -> None:
    """Two 1×1 filters and a pool: the largest value 3·2 = 6 stands at (1, 0), and comes back through its filter."""
    conv = nn.Conv2d(1, 2, 1, bias=False)
    conv.weight.data = torch.tensor([3.0, -1.0]).view(2, 1, 1, 1)
    net = nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2))
    x = torch.tensor([[0.5, 1.0], [2.0, -4.0]]).view(1, 1, 2, 2)
    close(deconvnet(net, "2", x, 0)[0, 0], torch.tensor([[0.0, 0.0], [18.0, 0.0]]))
    # Map 1 is largest where x = -4: there it is 4, and its filter has the weight -1.
    close(deconvnet(net, "2", x, 1)[0, 0], torch.tensor([[0.0, 0.0], [0.0, -4.0]]))


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "deconvnet")
def test_it_finds_the_pattern_that_excites() -> None:
    """A filter that likes a vertical edge, in an image with one: the pattern lies there and nowhere else."""
    conv = nn.Conv2d(1, 1, 3, bias=False)
    conv.weight.data = torch.tensor([[-1.0, 0.0, 1.0]] * 3).view(1, 1, 3, 3)
    x = torch.zeros(1, 1, 9, 9)
    x[..., 3:6, 5:] = 1.0
    found = deconvnet(nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(7)), "2", x, 0)[0, 0]
    assert found.abs().sum(dim=0).nonzero().flatten().tolist() in ([4, 6], [3, 5])
    assert found.abs().sum(dim=1).nonzero().flatten().tolist() == [3, 4, 5]


def test_unpooling_is_torchs() -> None:
    a = torch.randn(2, 3, 8, 8)
    p, switches = F.max_pool2d(a, 2, return_indices=True)
    assert torch.equal(unpool(p, switches, a), F.max_unpool2d(p, switches, (2, 2)))


class Functional(nn.Module):
    """ReLUs as a function, a method, in place and as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.ModuleList(nn.Conv2d(2 if i == 0 else 8, 8, 3, padding=1) for i in range(4))
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        a, b, c, d = self.c
        x = F.relu(a(x))
        x = b(x).relu()
        x = torch.relu_(c(x))
        x = self.relu(d(x))
        return self.head(x.mean(dim=(2, 3)))


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "heat-maps")
def test_guided_backpropagation_is_the_rule_written_with_hooks() -> None:
    torch.manual_seed(0)
    net, y = Functional().double(), torch.tensor([0, 1, 2])
    x = X.clone().requires_grad_()
    a = x
    for conv in net.c:
        a = conv(a).relu()
        a.register_hook(lambda g: g.clamp_min(0))  # before torch's own ReLU masks it by a > 0
    z = net.head(a.mean(dim=(2, 3)))
    (expected,) = torch.autograd.grad(z.gather(1, y[:, None]).sum(), x)
    close(guided_gradient(net, X, y), expected)
    assert not torch.allclose(expected, input_gradient(net, X, y))


def test_saliency_is_the_largest_channel_and_leaves_the_model_as_it_was() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(8, 2)
    net = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), linear).train()
    x = torch.randn(1, 2, 2, 2)
    expected = linear.weight[1].detach().view(2, 2, 2).abs().amax(dim=0)
    close(saliency(net, x, torch.tensor([1]))[0], expected)
    assert net[1].training
    assert all(p.grad is None for p in net.parameters())


def test_mistakes() -> None:
    net = vgg()
    with pytest.raises(Mistake, match=r"units 0\.\.3, not 9"):
        deconvnet(net, "5", X, 9)
    with pytest.raises(Mistake, match="no layer 'conv'"):
        deconvnet(net, "conv", X, 0)
    with pytest.raises(Mistake, match="layer 0 is a Linear"):
        deconvnet_of_layers([nn.Linear(2, 2)], X, 0)
    with pytest.raises(Mistake, match="not a classifier"):
        saliency(net, X)
