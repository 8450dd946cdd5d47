"""LeNet-5 against a forward pass in numpy and scipy, and its published shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.signal import correlate2d
from torch import Tensor

from descend.models.lenet import LeNet, LeNetConfig
from tests.close import close

pytestmark = pytest.mark.system("lenet")


def by_hand(model: LeNet, image: np.ndarray) -> np.ndarray:
    """One image (c, h, w) through the equations, in float64, with nothing of torch but the weights."""
    w = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}

    def conv(x: np.ndarray, name: str) -> np.ndarray:
        kernels, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        maps = [sum(correlate2d(x[i], k[i], "valid") for i in range(len(x))) for k in kernels]
        return np.tanh(np.stack(maps) + bias[:, None, None])

    def pool(x: np.ndarray) -> np.ndarray:
        rows = range(0, x.shape[1], 2), range(0, x.shape[2], 2)
        return np.array([[[m[i : i + 2, j : j + 2].mean() for j in rows[1]] for i in rows[0]] for m in x])

    x = pool(conv(pool(conv(image, "c1")), "c3")).reshape(-1)
    for name in ("f5", "f6"):
        x = np.tanh(w[f"{name}.weight"] @ x + w[f"{name}.bias"])
    return w["out.weight"] @ x + w["out.bias"]


@pytest.mark.system("lenet", "equation")
@pytest.mark.parametrize(
    "config",
    [LeNetConfig(), LeNetConfig((1, 28, 28), classes=7), LeNetConfig((3, 11, 13), classes=4, kernel=3)],
    ids=["lenet-5", "28x28", "odd-colour"],
)
def test_equal_to_the_equations(config: LeNetConfig) -> None:
    torch.manual_seed(0)
    model = LeNet(config).double()
    x = torch.randn(2, *config.image, dtype=torch.float64)
    close(model(x), torch.from_numpy(np.stack([by_hand(model, image.numpy()) for image in x])))


@pytest.mark.system("lenet", "shapes")
def test_published_shapes() -> None:
    """28-14-10-5, six and sixteen maps."""
    model, seen = LeNet(LeNetConfig()), []

    def note(_module: torch.nn.Module, _given: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append(tuple(out.shape[1:]))

    for name in ("c1", "pool", "c3", "f5", "f6", "out"):
        getattr(model, name).register_forward_hook(note)
    model(torch.zeros(1, 1, 32, 32))
    assert seen == [(6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 5, 5), (120,), (84,), (10,)]
    assert model.config.maps(32) == (28, 14, 10, 5)


def test_parts_of_the_forward_pass() -> None:
    """Maps, then features, then the head."""
    torch.manual_seed(0)
    model, x = LeNet(LeNetConfig()), torch.randn(2, 1, 32, 32)
    assert model.maps(x).shape == (2, 16, 5, 5)
    assert model.features(x).shape == (2, 84)
    assert torch.equal(model.head(model.features(x)), model(x))


def test_gradcheck() -> None:
    torch.manual_seed(1)
    model = LeNet(LeNetConfig((1, 8, 8), classes=2, kernel=3)).double()
    x = torch.randn(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


def test_too_small_an_image_is_refused() -> None:
    with pytest.raises(ValueError, match="images of 8×32 are too small for LeNet with kernel 5"):
        LeNetConfig((1, 8, 32))
    LeNetConfig((1, 8, 8), kernel=3)
