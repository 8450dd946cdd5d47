"""The multilayer perceptron: the books' networks, numbers and gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import descend.models as models
from descend.errors import Mistake
from descend.models.mlp import LAYOUT, MLP, MLPConfig, Partial
from descend.weights.layout import config_from_json
from tests.close import close

pytestmark = pytest.mark.system("mlp")


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def with_weights(config: MLPConfig, weights: list[object], biases: list[object]) -> MLP:
    model = MLP(config).double()
    with torch.no_grad():
        for layer, w, b in zip(model.layers, weights, biases, strict=True):
            layer.weight.copy_(t(w))
            layer.bias.copy_(t(b))
    return model


@pytest.mark.system("mlp", "all-values")
def test_forward_of_vom() -> None:
    """VOM-5.2: 2-3-1, ReLU then sigmoid."""
    model = with_weights(
        MLPConfig(2, (3,), 1, head="sigmoid"),
        [[[0.2, 0.4], [-0.5, 0.3], [0.1, -0.2]], [[0.6, -0.4, 0.5]]],
        [[0.1, -0.1, 0.2], [-0.2]],
    )
    (z1, a1), (z2, y) = model.trace(t([[1.0, 0.5]]))
    close(z1, t([[0.5, -0.45, 0.2]]))
    close(a1, t([[0.5, 0.0, 0.2]]))
    close(z2, t([[0.2]]))
    close(y, t([[0.5498339973]]), loosen=10)  # printed to ten digits
    close(model(t([[1.0, 0.5]])), y)


def test_gradients_of_s940() -> None:
    """S940-1.5: a 3-layer tanh network, loss ½‖h₃ − target‖²."""
    weights: list[object] = [
        [[0.13, -0.13, 0.64], [0.1, -0.54, 0.36], [1.3, 0.95, -0.7], [-1.27, -0.62, 0.04]],
        [
            [-2.33, -0.22, -1.25, -0.73],
            [-0.54, -0.32, 0.41, 1.04],
            [-0.13, 1.37, -0.67, 0.35],
            [0.9, 0.09, -0.74, -0.92],
        ],
        [[-0.46, 0.22, -1.01, -0.21], [-0.16, 0.54, 0.21, 0.36]],
    ]
    biases: list[object] = [[-0.65, -0.13, 0.78, 1.49], [-1.26, 1.51, 1.35, 0.78], [0.26, -0.31]]
    model = with_weights(MLPConfig(3, (4, 4), 2, activations=("tanh",), head="tanh"), weights, biases)
    x = t([[0.5, -1.0, 0.25]]).requires_grad_()
    loss = (model(x) - t([[1.0, 0.0]])).square().sum() / 2
    loss.backward()
    close(loss, t(0.5596493246), loosen=10)
    close(x.grad, t([[-0.2589322037, -0.2671932733, 0.2736907637]]), loosen=10)
    first = [
        [0.05451202516, -0.1090240503, 0.02725601258],
        [0.03160628353, -0.06321256706, 0.01580314177],
        [-0.1307614532, 0.2615229063, -0.06538072658],
        [-0.02383983908, 0.04767967815, -0.01191991954],
    ]
    close(model.layers[0].weight.grad, t(first), loosen=10)


@pytest.mark.system("mlp", "count")
@pytest.mark.parametrize(
    ("config", "count"),
    [(MLPConfig(2, (2,), 1), 9), (MLPConfig(2, (3,), 1), 13), (MLPConfig(600, (60, 40), 10), 38_910)],
)
def test_parameter_counts(config: MLPConfig, count: int) -> None:
    """MF-3.2.1 and DLN-Pytorch-MyNet."""
    assert config.parameters == count
    assert sum(p.numel() for p in MLP(config).parameters()) == count


@pytest.mark.system("mlp", "my-net")
def test_mynet_flattens_an_image() -> None:
    torch.manual_seed(0)
    model, image = MLP(MLPConfig(600, (60, 40), 10)), torch.randn(1, 3, 10, 20)
    assert model(image).shape == (1, 10)
    layers = [module for linear in model.layers for module in (linear, nn.ReLU())][:-1]
    close(model(image), nn.Sequential(nn.Flatten(), *layers)(image))


@pytest.mark.system("mlp", "any-widths")
def test_every_layer_may_have_its_own_activation() -> None:
    torch.manual_seed(0)
    model = MLP(MLPConfig(3, (4, 5), 6, activations=("tanh", "sigmoid"), head="softmax"))
    x = torch.randn(7, 3)
    first, second, last = model.layers
    close(model(x), last(second(first(x).tanh()).sigmoid()).softmax(-1))
    close(model(x).sum(-1), torch.ones(7))


def test_affine_layers_alone_are_one_affine_map() -> None:
    torch.manual_seed(0)
    model = MLP(MLPConfig(3, (8, 8), 2, activations=("identity",))).double()
    a, b = torch.randn(2, 1, 3, dtype=torch.float64)
    close(model((a + b) / 2), (model(a) + model(b)) / 2)


def test_no_hidden_layer_is_a_linear_map() -> None:
    model = MLP(MLPConfig(3, (), 2))
    assert len(model.layers) == 1


@pytest.mark.system("mlp", "connections")
def test_full_connections_are_a_dense_layer() -> None:
    dense, partial = nn.Linear(4, 3), Partial(4, [range(4)] * 3)
    partial.load_state_dict(dense.state_dict())
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    close(partial(x), dense(x))


@pytest.mark.system("mlp", "connections")
def test_missing_connections_never_carry_anything(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MLP(MLPConfig(4, (3,), 2, activations=("tanh",)))
    model.layers[0] = Partial(4, [[0, 1], [2], []])
    optim = torch.optim.AdamW(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randn(16, 2)
    for _ in range(5):
        optim.zero_grad()
        (model(x) - y).square().mean().backward()
        optim.step()
    missing = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]]).bool()
    weight = model.layers[0].weight.detach()
    assert (weight[missing] == 0).all()
    assert (weight[~missing] != 0).all()
    moved = x.clone()
    moved[:, 3] += 1  # nobody is connected to it
    assert torch.equal(model(moved), model(x))
    model.save_pretrained(tmp_path)
    close(models.load(tmp_path)(x), model(x))


def test_gradcheck() -> None:
    torch.manual_seed(0)
    model = MLP(MLPConfig(3, (4, 3), 2, activations=("tanh", "sigmoid"), head="softmax")).double()
    assert torch.autograd.gradcheck(model, (torch.randn(2, 3, dtype=torch.float64, requires_grad=True),))


def test_wrong_configs_are_named() -> None:
    with pytest.raises(ValueError, match="2 activations for 3 hidden layers"):
        MLPConfig(hidden=(4, 4, 4), activations=("relu", "tanh"))
    with pytest.raises(Mistake, match=r"config.json: head = swish: must be one of identity, relu"):
        config_from_json(MLPConfig, LAYOUT, {"head": "swish"}, Path("config.json"))
