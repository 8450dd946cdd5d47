"""Variational autoencoders: the equations of all three, learning, sampling, and the exact case."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Generates, Wish
from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise
from descend.losses.variational import bernoulli_nll, gaussian_nll, importance_bound
from descend.models import model_class
from descend.models.conv_vae import ConvVAEConfig
from descend.models.flow_vae import FlowVAE, FlowVAEConfig
from descend.models.vae import TINY, VAE, VAEConfig
from descend.ops.latent import gaussian_kl, standard_normal_log_prob
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.sampling.chance import PerExample
from descend.theory.linear_vae import fit_linear_vae
from tests.close import close

FILES = ("vae", "conv_vae", "flow_vae")


def tiny(name: str) -> tuple[Any, Tensor, Tensor]:
    torch.manual_seed(0)
    file = import_module(f"descend.models.{name}")
    return (model_class(name)(file.TINY), *file.TINY_INPUT())


@pytest.mark.system("vae")
@pytest.mark.system("vae", "networks")
@pytest.mark.parametrize("name", FILES)
def test_the_parts_fit_together(name: str) -> None:
    model, x, eps = tiny(name)
    out, kl = model(x, eps)
    found = model.infer(x, eps)
    assert found.z.shape == eps.shape
    close(out, model.decode(found.z))
    close(out[1, 0], model.decode(found.z[1:, :1])[0, 0])  # batched = single
    close(kl, found.kl)
    close(model.mean(out), out.sigmoid())
    mu, log_var = model.encode(x)
    if name != "flow_vae":
        close(kl, gaussian_kl(mu, log_var))
        close(model.reconstruct(x), model.mean(model.decode(mu)))
    close(model.features(x), mu)


@pytest.mark.system("vae", "generate")
@pytest.mark.parametrize("name", FILES)
def test_new_images_need_no_encoder_and_can_be_remade(name: str) -> None:
    model, x, _ = tiny(name)
    assert isinstance(model, Generates)
    made = model.generate(PerExample(3, 4), Wish())
    assert made.shape == (4, *x.shape[1:])
    assert ((made > 0) & (made < 1)).all()
    setattr(model, "encoder", None)  # noqa: B010
    close(model.generate(PerExample(3, 1, first=2), Wish())[0], made[2])


def test_images_that_cannot_be_halved() -> None:
    with pytest.raises(ValueError, match="cannot be halved 3 times"):
        model_class("conv_vae")(ConvVAEConfig(image=(1, 28, 28), maps=(4, 4, 4)))


@pytest.mark.system("flow-posterior-vae")
@pytest.mark.system("flow-posterior-vae", "no-flow")
def test_a_flow_of_no_steps_is_the_vae() -> None:
    torch.manual_seed(0)
    flow = FlowVAE(FlowVAEConfig(TINY.image, TINY.hidden, TINY.latent, steps=0))
    plain = VAE(TINY)
    plain.load_state_dict(flow.state_dict())
    x, eps = torch.rand(3, 1, 4, 4), torch.randn(3, 2, 3)
    for ours, theirs in zip(flow(x, eps), plain(x, eps), strict=True):
        assert torch.equal(ours, theirs)


def train(model: Any, x: Tensor, error: Any, steps: int, lr: float, seed: int = 0, samples: int = 1) -> None:
    torch.set_num_threads(1)
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        batch = x[torch.randint(len(x), (128,), generator=random)]
        eps = torch.randn(len(batch), samples, model.config.latent, generator=random)
        out, kl = model(batch, eps)
        wide = batch[:, None].expand(-1, samples, *batch.shape[1:]).flatten(0, 1)
        return error(wide, out.flatten(0, 1)).mean() + kl.mean()

    minimise(model, loss, steps, AdamW(lr, weight_decay=0.0), Cosine(warmup=20, floor=0.01))
    model.eval()


@pytest.mark.system("vae", "linear")
@pytest.mark.parametrize("seed", range(3))
def test_a_trained_linear_vae_reaches_the_exact_likelihood(seed: int) -> None:
    """x ~ N(0, W Wᵀ + s² I): the ELBO of a linear VAE comes within 0.02 nats of probabilistic PCA."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(1000, 2, generator=random) @ torch.randn(2, 4, generator=random) * 1.5
    x = x + 0.5 * torch.randn(1000, 4, generator=random)
    exact = fit_linear_vae(x.double(), 2, noise=0.25)
    torch.manual_seed(seed)
    model = VAE(VAEConfig(image=(4,), hidden=(), latent=2, decoder="gaussian", variance=0.25))
    train(model, x, lambda x, f: gaussian_nll(x, f, 0.25), 1500, 2e-1, seed, samples=2)
    with torch.no_grad():
        out, kl = model(x, torch.randn(1000, 200, 2, generator=random))
        wide = x[:, None].expand(-1, 200, -1)
        error = gaussian_nll(wide.flatten(0, 1), out.flatten(0, 1), 0.25).view(1000, 200).mean(1)
    elbo, best = -(error + kl).mean(), exact.log_likelihood(x.double()).mean()
    assert best - 0.02 < elbo < best + 0.01  # + what 200 samples leave open


@pytest.mark.system("vae", "networks", "importance")
@pytest.mark.parametrize("name", FILES)
def test_digits_are_learned(name: str) -> None:
    """All three networks: far better than independent pixels, and many samples tighten the bound."""
    split = load_digits_split()
    x, held_out = ((part.x > 0.5).float() for part in (split.train, split.valid))
    sizes = {"vae": VAEConfig((1, 8, 8), (64,), 6), "flow_vae": FlowVAEConfig((1, 8, 8), (64,), 6, steps=3),
             "conv_vae": ConvVAEConfig((1, 8, 8), (8, 16), 32, 6, "gaussian", 0.05)}  # fmt: skip
    nll: Any = bernoulli_nll
    share = x.mean(0).clamp(1e-3, 1 - 1e-3).logit().expand_as(held_out)
    if name == "conv_vae":
        nll, share = partial(gaussian_nll, variance=0.05), x.mean(0).expand_as(held_out)
    torch.manual_seed(0)
    model: Any = model_class(name)(sizes[name])
    train(model, x, nll, 300 if name == "conv_vae" else 400, 8e-3)
    independent = nll(held_out, share).mean()
    with torch.no_grad():
        found = model.infer(held_out, torch.randn(len(held_out), 50, 6, generator=torch.Generator().manual_seed(1)))
        wide = held_out[:, None].expand(-1, 50, -1, -1, -1).flatten(0, 1)
        error = nll(wide, model.decode(found.z).flatten(0, 1)).view(-1, 50)
        weights = standard_normal_log_prob(found.z) - error - found.log_q
    elbo, bound = weights.mean(), importance_bound(weights).mean()
    assert -elbo < independent - 4
    assert elbo < bound < elbo + 6
