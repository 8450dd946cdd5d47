"""Training with rounded weights: the numbers of the codes, and weights that learn through them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.models.lenet import LeNet, LeNetConfig
from descend.nn.fake_quantized import FakeQuantizedLinear, RoundedInput, fake_quantize_model
from descend.nn.quantized import quantize
from tests.close import close

SLUG = "quantization-aware-training"


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    conv = nn.Conv2d(2, 5, 3, stride=2, padding=1)
    return nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(5 * 16, 7), nn.ReLU(), nn.Linear(7, 3, bias=False))


@pytest.mark.system(SLUG, "same-numbers")
@pytest.mark.parametrize(("bits", "group"), [(8, 0), (4, 16)])
def test_it_computes_as_the_quantized_model(bits: int, group: int) -> None:
    model, x = make_model(), torch.randn(4, 2, 8, 8)
    plain, names = model(x), list(model.state_dict())
    kept = dict(model.named_parameters())
    assert fake_quantize_model(model, bits, group) == ["0", "3", "5"]
    found = model(x)
    assert not torch.equal(found, plain)
    assert list(model.state_dict()) == names
    assert all(p is kept[name] for name, p in model.named_parameters())
    coded = make_model()
    quantize(coded, bits, group)
    close(found, coded(x))


@pytest.mark.system(SLUG, "straight-through")
def test_gradients_are_those_of_the_rounded_weights() -> None:
    """∂L/∂W is what autograd finds for Ŵ in its place."""
    torch.manual_seed(1)
    plain, x, out = nn.Linear(6, 4), torch.randn(5, 6), torch.randn(5, 4)
    layer = FakeQuantizedLinear.of(plain, 4, 0, nn.Identity())
    layer(x).mul(out).sum().backward()
    close(layer.weight.grad, out.T @ x)
    close(layer.bias.grad, out.sum(0))


@pytest.mark.system(SLUG, "activations", "straight-through")
def test_activations_by_the_range_that_was_seen() -> None:
    rounded = RoundedInput()
    x = torch.linspace(-1, 1.55, 256)
    close(rounded(x), x)  # steps of 0.01 between −1 and 1.55 fall on the codes
    assert (float(rounded.low), float(rounded.high)) == pytest.approx((-1, 1.55))
    rounded(x * 3)
    assert float(rounded.high) == pytest.approx(1.55 * 1.02)  # a hundredth of the way
    rounded.eval()
    wide = torch.tensor([-9.0, 0.2, 9.0], requires_grad=True)
    y = rounded(wide)
    assert (y[0].item(), y[2].item()) == pytest.approx((float(rounded.low), float(rounded.high)))
    y.sum().backward()
    assert wide.grad is not None
    assert wide.grad.tolist() == [0, 1, 0]


@pytest.mark.system(SLUG, "training")
@pytest.mark.system(SLUG)
def test_a_classifier_learns_with_rounded_weights() -> None:
    """Four groups of images are told apart with 4 bits; the codes of the trained weights answer alike."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(2)
    centres = torch.randn(4, 1, 32, 32, generator=random)
    y = torch.arange(64) % 4
    x = centres[y] + 0.3 * torch.randn(64, 1, 32, 32, generator=random)
    model = LeNet(LeNetConfig(classes=4))
    assert len(fake_quantize_model(model, 4, 0, activations=True)) == 5
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    first = nn.functional.cross_entropy(model(x), y)
    loss = first
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert loss < first / 5, (loss, first)
    plain = LeNet(LeNetConfig(classes=4))
    plain.load_state_dict(model.state_dict())
    quantize(plain, 4, 0)
    model.eval()
    plain.eval()
    with torch.no_grad():
        assert (model(x).argmax(1) == y).all()
        assert (plain(x).argmax(1) == y).all()


def test_nothing_to_round() -> None:
    with pytest.raises(Mistake, match="a ReLU has no linear layer and no convolution"):
        fake_quantize_model(nn.ReLU(), 8)
