"""The ELBO as a task: its terms, beta, binarised pixels, and the bound that scoring gives."""

from __future__ import annotations

import pytest
import torch

from descend.losses.variational import bernoulli_nll, importance_bound
from descend.models.vae import TINY, VAE
from descend.ops.latent import gaussian_kl, gaussian_kl_units, standard_normal_log_prob
from descend.tasks import variational
from descend.tasks.variational import Variational
from tests.close import close


def made(samples: int = 3) -> tuple[VAE, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model = VAE(TINY).double()
    x = torch.rand(5, *TINY.image, dtype=torch.float64)
    return model, {"x": x, "eps": torch.randn(5, samples, TINY.latent, dtype=torch.float64)}


@pytest.mark.system("vae", "elbo")
@pytest.mark.system("beta-vae")
@pytest.mark.system("beta-vae", "one-is-vae", "monitor")
def test_both_terms_by_hand() -> None:
    model, batch = made()
    mu, log_var = model.encode(batch["x"])
    z = mu[:, None] + (log_var / 2).exp()[:, None] * batch["eps"]
    errors = torch.stack([bernoulli_nll(batch["x"], model.decode(z[:, i])) for i in range(3)], 1)
    for beta in (1.0, 4.0):
        found = Variational(model, bernoulli_nll, beta).negative_elbo(batch)
        close(found.terms["reconstruction"], errors.mean())
        close(found.terms["weighted_kl"], beta * gaussian_kl(mu, log_var).mean())
        close(found.told["posterior_kl"], gaussian_kl(mu, log_var).mean())


@pytest.mark.system("beta-vae", "schedule")
def test_a_weight_of_every_example() -> None:
    model, batch = made()
    batch["beta"] = torch.tensor([0.0, 0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    kl = gaussian_kl(*model.encode(batch["x"]))
    close(Variational(model, bernoulli_nll).negative_elbo(batch).terms["weighted_kl"], (batch["beta"] * kl).mean())


@pytest.mark.system("vae", "importance", "elbo")
def test_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss, parts and bound of each example, however many samples are decoded at once; active units of a set."""
    model, batch = made(7)
    task = Variational(model, bernoulli_nll, 2.0)
    found = task.score(batch)
    inferred = model.infer(batch["x"], batch["eps"])
    errors = task.errors(batch["x"], model.decode(inferred.z))
    close(found["reconstruction"], errors.mean(1))
    close(found["loss"], errors.mean(1) + 2 * inferred.kl)
    weights = standard_normal_log_prob(inferred.z) - errors - inferred.log_q
    close(found["nll"], -importance_bound(weights))
    assert (found["nll"] < -weights.mean(1)).all()  # tighter than the ELBO of the same samples
    monkeypatch.setattr(variational, "ROWS", 10)
    for name, value in task.score(batch).items():
        close(value, found[name])
    units = gaussian_kl_units(*model.encode(batch["x"]))
    close(found["kl_units"], units)
    judged = task.judge({"loss": 1.0}, {"kl_units": units})
    assert judged == {"loss": 1.0, "active_units": float((units.mean(0) > 0.01).sum())}


def test_pixels_are_drawn_with_their_grey_as_probability() -> None:
    model, batch = made(1)
    batch["u"] = torch.rand(batch["x"].shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    black = (batch["u"] < batch["x"]).double()
    plain = Variational(model, bernoulli_nll).negative_elbo({"x": black, "eps": batch["eps"]}).total()
    close(Variational(model, bernoulli_nll).negative_elbo(batch).total(), plain)
