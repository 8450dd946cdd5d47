"""A perceptron of chosen parts is what it says: against torch's own modules, for every part."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.models.layered import NORMS, STARTS, Layered, LayeredConfig
from descend.models.mlp import MLP, MLPConfig
from descend.nn.activations import ACTIVATIONS
from tests.close import close


def test_without_norms_it_is_the_books_network() -> None:
    torch.manual_seed(0)
    ours = Layered(LayeredConfig(inputs=3, hidden=(5, 4), outputs=2, activation="tanh"))
    books = MLP(MLPConfig(inputs=3, hidden=(5, 4), outputs=2, activations=("tanh",)))
    for mine, other in zip([*ours.layers, ours.head], books.layers, strict=True):
        other.load_state_dict(mine.state_dict())
    x = torch.randn(6, 3)
    close(ours(x), books(x))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation(name: str) -> None:
    torch.manual_seed(0)
    model = Layered(LayeredConfig(inputs=3, hidden=(5,), outputs=2, activation=name)).eval()
    x = torch.randn(6, 3)
    close(model(x), model.head(ACTIVATIONS[name]().eval()(model.layers[0](x))))


@pytest.mark.parametrize("name", NORMS)
def test_every_norm(name: str) -> None:
    torch.manual_seed(0)
    model = Layered(LayeredConfig(inputs=3, hidden=(5,), outputs=2, norm=name)).train()  # type: ignore[arg-type]
    x = torch.randn(6, 3)
    z = NORMS[name](5)(model.layers[0](x))
    close(model(x), model.head(z.tanh()))


@pytest.mark.parametrize(
    ("name", "deviation"),
    [
        ("he-normal", (2 / 300) ** 0.5),
        ("xavier-uniform", (2 / 700) ** 0.5),
        ("lecun-normal", 300**-0.5),
        ("small", 0.01),
    ],
)
def test_starts_have_their_spread(name: str, deviation: float) -> None:
    torch.manual_seed(0)
    w = STARTS[name](torch.empty(400, 300))
    assert abs(float(w.std()) / deviation - 1) < 0.02


def test_a_misspelt_activation_is_named() -> None:
    with pytest.raises(Mistake, match="relu"):
        LayeredConfig(activation="rellu")


def test_dropout_is_in_training_only() -> None:
    torch.manual_seed(0)
    model = Layered(LayeredConfig(inputs=3, hidden=(50,), outputs=2, dropout=0.5))
    x = torch.randn(4, 3)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))
    assert isinstance(model.drop, nn.Dropout)
