from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from descend.nn.norms import BatchNorm, BatchNormOfDeviation, LayerNormOutside, RMSNormOutside
from descend.ops.normalization import layer_norm
from tests.close import close


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double() + 1


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "modes")
@pytest.mark.parametrize(("shape", "theirs"), [((8, 3), nn.BatchNorm1d), ((4, 3, 5, 5), nn.BatchNorm2d)])
def test_training_output_and_gradients_are_those_of_torch(shape: tuple[int, ...], theirs: type[nn.Module]) -> None:
    ours, other = BatchNorm(3).double(), theirs(3).double()
    with torch.no_grad():
        for layer in (ours, other):
            layer.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
            layer.bias.copy_(torch.tensor([-1.0, 0.0, 1.0]))
    x, upstream = drawn(*shape).requires_grad_(), drawn(*shape, seed=1)
    close(ours(x), other(x))
    for a, b in zip(*(torch.autograd.grad(m(x), [x, m.weight, m.bias], upstream) for m in (ours, other)), strict=True):
        close(a, b)


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "running-variance")
def test_moving_variance_is_biased_here_and_unbiased_in_torch() -> None:
    """Momentum is 1 − α; after the same batches the two differ by n/(n − 1) of the variance alone."""
    ours, theirs = BatchNorm(3, alpha=0.9).double(), nn.BatchNorm1d(3, momentum=0.1).double()
    mean, biased, unbiased = torch.zeros(3).double(), torch.ones(3).double(), torch.ones(3).double()
    for step in range(5):
        x = drawn(6, 3, seed=step)
        ours(x), theirs(x)
        mean = 0.9 * mean + 0.1 * x.mean(0)
        biased = 0.9 * biased + 0.1 * x.var(0, correction=0)
        unbiased = 0.9 * unbiased + 0.1 * x.var(0)
    close(ours.running_mean, mean)
    close(theirs.running_mean, mean)
    close(ours.running_var, biased)
    close(theirs.running_var, unbiased)


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "running-deviation")
def test_dln_averages_the_deviation() -> None:
    layer = BatchNormOfDeviation(2, alpha=0.5).double()
    s = torch.ones(2).double()
    for step in range(4):
        x = drawn(6, 2, seed=step)
        layer(x)
        s = 0.5 * s + 0.5 * x.std(0, correction=0)
    close(layer.running_var, s.square())
    layer.eval()
    x = drawn(3, 2, seed=9)
    close(layer(x), (x - layer.running_mean) / (s.square() + 1e-5).sqrt())  # + ε; DLN prints −
    usual = BatchNorm(2, alpha=0.5).double()
    for step in range(4):
        usual(drawn(6, 2, seed=step))
    assert (layer.running_var < usual.running_var).all()  # (mean σ)² ≤ mean σ²


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "modes")
def test_in_use_an_example_does_not_see_the_others() -> None:
    layer = BatchNorm(3).double()
    for step in range(3):
        layer(drawn(8, 3, 2, 2, seed=step))
    layer.eval()
    x = drawn(4, 3, 2, 2, seed=7)
    before = layer.running_mean.clone()
    close(layer(x)[:1], layer(x[:1]))
    assert torch.equal(before, layer.running_mean)  # and nothing moves
    theirs = nn.BatchNorm2d(3).double().eval()
    theirs.load_state_dict(layer.state_dict(), strict=False)
    close(layer(x), theirs(x))


@pytest.mark.system("batch-norm")
def test_moving_statistics_do_not_touch_training() -> None:
    one, two = BatchNorm(3).double(), BatchNorm(3).double()
    two(drawn(8, 3, seed=5))
    x = drawn(8, 3)
    assert torch.equal(one(x), two(x))


@pytest.mark.system("batch-norm")
def test_a_batch_of_one_has_no_variance() -> None:
    with pytest.raises(ValueError, match="batch of 1"):
        BatchNorm(3)(torch.randn(1, 3))
    BatchNorm(3)(torch.randn(1, 3, 2, 2))  # an image has


@pytest.mark.system("batch-norm")
def test_gradcheck() -> None:
    x = drawn(4, 3).requires_grad_()
    assert torch.autograd.gradcheck(BatchNorm(3).double(), x)
    assert torch.autograd.gradcheck(LayerNormOutside(3).double(), x)
    assert torch.autograd.gradcheck(RMSNormOutside(3).double(), x)


@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "eps-places")
def test_layer_norm_forms() -> None:
    """VOM 12 and MF are nn.LayerNorm; VOM 9 has ε outside the root. Example of learned γ: [2, 1, .5, 1]."""
    x = drawn(2, 5, 4)
    inside, outside = nn.LayerNorm(4, eps=0.3).double(), LayerNormOutside(4, eps=0.3).double()
    close(inside(x), layer_norm(x, 0.3))
    with torch.no_grad():
        for layer in (inside, outside):
            layer.weight.copy_(torch.tensor([2.0, 1.0, 0.5, 1.0]))
            layer.bias.copy_(torch.tensor([0.0, 1.0, 0.0, -1.0]))
    mu, sigma = x.mean(-1, keepdim=True), x.std(-1, correction=0, keepdim=True)
    close(outside(x), outside.weight * (x - mu) / (sigma + 0.3) + outside.bias)
    close(inside(x), inside.weight * (x - mu) / (sigma.square() + 0.3).sqrt() + inside.bias)
    assert sum(p.numel() for p in outside.parameters()) == 2 * 4
    assert torch.equal(inside.train()(x), inside.eval()(x))
    close(outside(x[:1]), outside(x)[:1])


@pytest.mark.system("layer-norm")
@pytest.mark.system("group-norm")
def test_images_with_a_gain_for_each_channel() -> None:
    x = drawn(2, 6, 3, 3)
    close(nn.GroupNorm(1, 6).double()(x), layer_norm(x, dims=(1, 2, 3)))


@pytest.mark.system("instance-norm")
@pytest.mark.system("instance-norm", "images")
@pytest.mark.system("group-norm")
def test_torch_modules_in_the_table() -> None:
    x = drawn(2, 6, 3, 3)
    one = nn.InstanceNorm2d(6, affine=True).double()
    close(one(x), nn.GroupNorm(6, 6).double()(x))
    assert torch.equal(one.train()(x), one.eval()(x))


@pytest.mark.system("rms-norm")
@pytest.mark.system("rms-norm", "eps-places")
def test_rms_norm_forms() -> None:
    x = drawn(3, 8)
    llama, t5 = nn.RMSNorm(8, eps=0.2).double(), RMSNormOutside(8, eps=0.2).double()
    with torch.no_grad():
        for layer in (llama, t5):
            layer.weight.copy_(torch.arange(8.0))
    square = x.square().mean(-1, keepdim=True)
    close(llama(x), torch.arange(8.0) * x / (square + 0.2).sqrt())
    close(t5(x), torch.arange(8.0) * x / (square.sqrt() + 0.2))
    assert [name for name, _ in t5.named_parameters()] == ["weight"]  # no shift


@pytest.mark.system("normalization-comparison")
@pytest.mark.system("normalization-comparison", "train-and-eval")
@pytest.mark.system("batch-norm")
@pytest.mark.parametrize("name", ["batch", "layer", "group", "instance"])
def test_only_batch_norm_differs_between_training_and_use(name: str) -> None:
    x = drawn(4, 6, 3, 3)
    layer = {
        "batch": BatchNorm(6),
        "layer": nn.GroupNorm(1, 6),
        "group": nn.GroupNorm(2, 6),
        "instance": nn.InstanceNorm2d(6, affine=True),
    }[name].double()
    assert torch.equal(layer.train()(x), layer.eval()(x)) == (name != "batch")


def validation_loss(norm: type[nn.Module], batch: int, seed: int) -> float:
    """Two normalized layers on the digits: 800 examples in batches of this size, then 200 others."""
    torch.manual_seed(seed)
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
    one, two = (BatchNorm(32) if norm is BatchNorm else nn.GroupNorm(4, 32) for _ in range(2))
    net = nn.Sequential(nn.Linear(64, 32), one, nn.ReLU(), nn.Linear(32, 32), two, nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05 * batch / 16, momentum=0.9)
    for _ in range(800 // batch):
        rows = torch.randint(1000, (batch,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        return nn.functional.cross_entropy(net.eval()(x[1000:1200]), y[1000:1200]).item()


@pytest.mark.system("group-norm", "small-batches")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_group_norm_does_not_mind_small_batches(seed: int) -> None:
    """DLN-A.117: as many examples, the rate in proportion; with batches of 2 instead of 16 batch norm loses more."""
    batch, group = ([validation_loss(norm, b, seed) for b in (16, 2)] for norm in (BatchNorm, nn.GroupNorm))
    assert batch[1] - batch[0] > 0.8
    assert group[1] - group[0] < 0.4
