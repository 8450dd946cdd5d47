"""The typical CNN against plain torch, the ConvNetJS network with its training, and where the parameters sit."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from descend.data.images.augment import Augment, Mirror, Shift
from descend.models.typical_cnn import TypicalCNN, TypicalCNNConfig, dense_share, parameters_of, ranges
from descend.models.vgg import SIZES as VGGS
from descend.models.vgg import VGG
from descend.optim.rules import Adadelta
from tests.close import close

pytestmark = pytest.mark.system("typical-cnn")
CONFIG = TypicalCNNConfig((2, 13, 10), 4, (3, 5), convs=2, kernel=3, hidden=(9, 7))


@pytest.mark.system("typical-cnn", "equation")
def test_equal_to_plain_torch() -> None:
    torch.manual_seed(0)
    model = TypicalCNN(CONFIG).double()
    x = torch.randn(3, 2, 13, 10, dtype=torch.float64)
    w = model.state_dict()
    y = x
    for pair in ((0, 2), (5, 7)):
        for i in pair:
            y = F.relu(F.conv2d(y, w[f"layers.{i}.weight"], w[f"layers.{i}.bias"], padding=1))
        y = F.max_pool2d(y, 2)
    close(model.maps(x), y)
    y = y.flatten(1)
    assert y.shape == (3, 5 * 3 * 2)
    for i in (1, 4):
        y = F.relu(y @ w[f"dense.{i}.weight"].T + w[f"dense.{i}.bias"])
    close(model.features(x), y)
    close(model(x), y @ w["head.weight"].T + w["head.bias"])


def test_gradcheck() -> None:
    torch.manual_seed(1)
    model = TypicalCNN(TypicalCNNConfig((1, 4, 4), 2, (2,), kernel=3, hidden=(3,))).double()
    x = torch.randn(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


@pytest.mark.system("typical-cnn", "convnetjs")
def test_the_convnetjs_network() -> None:
    """16, 20, 20 maps of side 32, 16, 8; the first layer has 1216 parameters."""
    model = TypicalCNN(TypicalCNNConfig())
    convs = [m for m in model.layers if isinstance(m, nn.Conv2d)]
    assert [m.weight.shape for m in convs] == [(16, 3, 5, 5), (20, 16, 5, 5), (20, 20, 5, 5)]
    assert parameters_of(convs[0], nn.Conv2d) == 1216
    x, sides = torch.zeros(1, 3, 32, 32), []
    for layer in model.layers:
        x = layer(x)
        sides.append(x.shape[-1])
    assert sides == [32, 32, 16, 16, 16, 8, 8, 8, 4]
    assert model.head.in_features == 320


@pytest.mark.system("typical-cnn", "dense-share")
def test_most_parameters_are_dense() -> None:
    with torch.device("meta"):
        vgg = VGG(VGGS["vgg-16"])
    assert round(dense_share(vgg), 3) == 0.894
    model = TypicalCNN(CONFIG)
    dense = (30 * 9 + 9) + (9 * 7 + 7) + (7 * 4 + 4)
    assert parameters_of(model, nn.Linear) == dense
    assert dense_share(model) == dense / sum(p.numel() for p in model.parameters())


@pytest.mark.system("typical-cnn", "ranges")
def test_ranges_report_activations_and_gradients() -> None:
    torch.manual_seed(0)
    model, x, y = TypicalCNN(CONFIG), torch.randn(5, 2, 13, 10), torch.tensor([0, 1, 2, 3, 0])
    model.head.weight.grad = torch.ones_like(model.head.weight)
    found = ranges(model, x, y)
    assert found["input"].activation == (x.min().item(), x.max().item())
    first = model.layers[0](x)
    assert found["layers.0"].activation == (first.min().item(), first.max().item())
    assert found["layers.1"].activation == (0.0, first.max().item())
    leaf = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(F.cross_entropy(model(leaf), y), leaf)
    close(torch.tensor(found["input"].gradient), torch.stack([g.min(), g.max()]))
    assert found["layers.0"].gradient[0] < 0 < found["layers.0"].gradient[1]
    assert torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight))  # the pass leaves no trace
    assert model.layers[0].weight.grad is None
    assert not model.layers[0]._forward_hooks


@pytest.mark.system("typical-cnn", "training")
def test_it_learns_with_adadelta_and_shifts() -> None:
    """The demo's optimizer and augmentation, on a few digits enlarged to three channels of 16×16."""
    torch.manual_seed(0)
    data = load_digits()
    x = torch.tensor(data.images[:100] / 16, dtype=torch.float32)[:, None]
    x = F.interpolate(x, size=(16, 16), mode="bilinear").expand(-1, 3, -1, -1).contiguous()
    y = torch.tensor(data.target[:100] % 2)
    model = TypicalCNN(TypicalCNNConfig((3, 16, 16), 2, (8, 8), kernel=5))
    optimizer = Adadelta(lr=1.0).build(model)
    augment = Augment((Shift(2), Mirror()))
    losses = []
    for step in range(40):
        loss = F.cross_entropy(model(augment.augment_seeded(x, step)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.6
    assert losses[-1] < 0.8 * losses[0]


def test_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="images of 8×7 are too small for 3 pools"):
        TypicalCNNConfig((1, 8, 7))
    with pytest.raises(ValueError, match="kernel 4: give an odd number"):
        TypicalCNNConfig(kernel=4)
