"""Autoencoders: sizes, encode and decode apart, linear ones against PCA, learning digits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.classic.pca import PCA
from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise
from descend.losses.reconstruction import half_squared_error, squared_error
from descend.metrics.probe import probe_accuracy
from descend.models.autoencoder import SIZES, TINY, TINY_INPUT, Autoencoder, AutoencoderConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from tests.close import close


def digits(n: int = 1000) -> tuple[Tensor, Tensor, Tensor]:
    split = load_digits_split()
    return split.train.x[:n].float(), split.valid.x.float(), split.valid.y


def learn(config: AutoencoderConfig, x: Tensor, steps: int, seed: int = 0, lr: float = 4e-3) -> Autoencoder:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, random = Autoencoder(config), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        batch = x[torch.randint(len(x), (64,), generator=random)]
        return half_squared_error(batch, model(batch)).mean()

    minimise(model, loss, steps, AdamW(lr, weight_decay=0.0), Cosine(warmup=20, floor=0.01))
    return model.eval()


@pytest.mark.system("autoencoder")
@pytest.mark.system("autoencoder", "encode-decode")
def test_the_equation() -> None:
    """z = f(W x + b), y = g(W' z + b'), layer by layer."""
    torch.manual_seed(0)
    model, x = Autoencoder(TINY), TINY_INPUT()
    w = dict(model.named_parameters())
    z = torch.tanh(x.flatten(1) @ w["encoder.0.weight"].T + w["encoder.0.bias"])
    z = z @ w["encoder.1.weight"].T + w["encoder.1.bias"]
    close(model.encode(x), z)
    y = torch.tanh(z @ w["decoder.0.weight"].T + w["decoder.0.bias"])
    y = y @ w["decoder.1.weight"].T + w["decoder.1.bias"]
    close(model.decode(z), y.view_as(x))
    close(model(x), model.decode(model.encode(x)))
    close(model.features(x), z)


@pytest.mark.system("deep-autoencoder")
@pytest.mark.system("deep-autoencoder", "sizes", "mirror")
def test_the_deep_one() -> None:
    config = SIZES["hinton-2006"]
    assert config.widths == (784, 1000, 500, 250, 30)
    with torch.device("meta"):
        model = Autoencoder(config)
    down = [(layer.in_features, layer.out_features) for layer in model.encoder]
    up = [(layer.out_features, layer.in_features) for layer in model.decoder]
    assert up[::-1] == down
    assert model.encode(torch.empty(2, 1, 28, 28, device="meta")).shape == (2, 30)
    assert model(torch.empty(2, 1, 28, 28, device="meta")).shape == (2, 1, 28, 28)


@pytest.mark.system("linear-autoencoder-is-pca")
@pytest.mark.system("linear-autoencoder-is-pca", "subspace")
@pytest.mark.system("autoencoder")
@pytest.mark.parametrize("seed", range(3))
def test_a_linear_autoencoder_learns_the_subspace_of_pca(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(200, 6, generator=random) @ torch.randn(6, 6, generator=random) + 1
    model = learn(AutoencoderConfig(image=(6,), hidden=(), latent=2), x, 1200, seed, lr=3e-2)
    pca = PCA.fit(x, 2)
    assert squared_error(x, model(x)).mean() < 1.005 * pca.residual
    ours = torch.linalg.qr(model.state_dict()["decoder.0.weight"]).Q
    assert torch.linalg.svdvals(ours.T @ pca.components).min() > 0.999


@pytest.mark.system("autoencoder", "baseline", "codes-classify")
@pytest.mark.system("deep-autoencoder", "beats-pca")
@pytest.mark.parametrize("seed", range(3))
def test_digits(seed: int) -> None:
    """Held-out digits: far below the mean image, below PCA with as many codes, and codes that a probe can read."""
    x, held_out, y = digits(1258)
    model = learn(AutoencoderConfig(image=(1, 8, 8), hidden=(128, 64), latent=6), x, 1000, seed)
    error = squared_error(held_out, model(held_out)).mean()
    mean_image = squared_error(held_out, x.mean(0).expand_as(held_out)).mean()
    assert error < 0.35 * mean_image
    pca = PCA.fit(x.flatten(1), 6)
    flat = held_out.flatten(1)
    assert error < squared_error(flat, pca.inverse(pca.transform(flat))).mean()
    assert probe_accuracy(model.encode(held_out), y) > 0.7
