"""Autoencoding: the terms of its loss, the clean target, and what is reported."""

from __future__ import annotations

import pytest
import torch

from descend.losses.reconstruction import squared_error
from descend.models.autoencoder import TINY, Autoencoder
from descend.nn.corruption import MaskingCorruption
from descend.tasks.autoencode import Autoencode
from tests.close import close


def made() -> tuple[Autoencoder, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model = Autoencoder(TINY).double()
    return model, {name: torch.rand(5, *TINY.image, dtype=torch.float64) for name in ("x", "u")}


@pytest.mark.system("autoencoder", "losses")
@pytest.mark.system("sparse-autoencoder")
@pytest.mark.system("sparse-autoencoder", "activations", "reported")
def test_the_sparse_loss() -> None:
    """½ ‖x − y‖² and λ times the activations of the code, apart; weights do not matter for the second."""
    model, batch = made()
    task = Autoencode(model, sparsity=0.3)
    [move] = task.moves(batch)
    found = move.value()
    a = model.encode(batch["x"])
    close(found.terms["reconstruction"], squared_error(batch["x"], model(batch["x"])).mean() / 2)
    close(found.terms["sparsity"], 0.3 * a.abs().sum(1).mean())
    assert found.told["near_zero"] == (a.abs() < 0.01).double().mean()
    decoder = list(model.decoder.parameters())
    assert set(torch.autograd.grad(found.terms["sparsity"], decoder, allow_unused=True)) == {None}
    close(task.score(batch)["loss"].mean(), found.total())
    assert "sparsity" not in Autoencode(model).loss(batch).terms


@pytest.mark.system("denoising-autoencoder")
@pytest.mark.system("denoising-autoencoder", "clean-target", "from-the-stream")
def test_the_target_is_the_clean_image() -> None:
    model, batch = made()
    task = Autoencode(model, MaskingCorruption(0.5))
    spoilt = batch["x"] * (batch["u"] >= 0.5)
    close(task.loss(batch).total(), squared_error(batch["x"], model(spoilt)).mean() / 2)
    close(task.loss(batch).total(), task.loss(batch).total())  # nothing is drawn inside
    found = task.score(batch)
    close(found["error_of_input"], squared_error(batch["x"], spoilt))
    close(found["squared_error"], squared_error(batch["x"], model(spoilt)))
