"""Conditional GAN: what c does, both ways to say it, and that a constant c leaves the plain GAN."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.contracts import Wish, as_loss
from descend.losses.adversarial import discriminator_loss, non_saturating
from descend.models.conditional_gan import TINY, ConditionalDiscriminator, ConditionalGAN
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.sampling.chance import PerExample
from descend.tasks.adversarial import Adversarial
from tests.close import close

pytestmark = pytest.mark.system("conditional-gan")
ONE_HOT = replace(TINY, label_width=0, classes=3)


def make(config: object = ONE_HOT) -> tuple[ConditionalGAN, ConditionalDiscriminator]:
    torch.manual_seed(0)
    return ConditionalGAN(config).double(), ConditionalDiscriminator(config).double()  # type: ignore[arg-type]


@pytest.mark.system("conditional-gan", "constant")
@pytest.mark.parametrize("config", [ONE_HOT, TINY])
def test_with_a_constant_class_it_is_the_plain_gan(config: object) -> None:
    """The part of the first layer that reads c becomes a part of its bias: then outputs are the plain GAN's."""
    g, d = make(config)
    c = torch.full((5,), 1)
    plain_g = Generator(GANConfig(latent=3, outputs=4, width=8, depth=2)).double()
    plain_d = Discriminator(4, 8, 2).double()
    for ours, plain, inputs in ((g, plain_g, 3), (d, plain_d, 4)):
        state = {name: value.clone() for name, value in ours.state_dict().items() if not name.startswith("labels")}
        told = ours.labels(c[:1])[0].double()
        state["hidden.0.bias"] += state["hidden.0.weight"][:, inputs:] @ told
        state["hidden.0.weight"] = state["hidden.0.weight"][:, :inputs]
        plain.load_state_dict(state)
    z, x = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 1, 2, 2, dtype=torch.float64)
    close(g(z, c), plain_g(z).tanh().view(5, 1, 2, 2))
    close(d(x, c), plain_d(x.flatten(1)))


@pytest.mark.system("conditional-gan", "labels")
def test_one_hot_and_learned_labels() -> None:
    g, _ = make()
    close(g.labels(torch.tensor([2, 0])), torch.tensor([[0.0, 0, 1], [1, 0, 0]]))
    learned, d = make(TINY)
    assert learned.labels.weight.shape == d.labels.weight.shape == (2, 2)
    assert learned.labels.weight is not d.labels.weight
    z = torch.randn(1, 3, dtype=torch.float64)
    assert not torch.equal(learned(z, torch.tensor([0])), learned(z, torch.tensor([1])))


@pytest.mark.system("conditional-gan", "objective")
def test_both_players_are_told_the_class_in_every_term() -> None:
    g, d = make()
    task = Adversarial(g, d, lambda x, c: {"right": (c == 0).double()}, given=("y",))
    x, z = torch.randn(6, 1, 2, 2, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    c = torch.arange(6) % 3
    losses = [as_loss(move.loss()).total() for move in task.moves({"x": x, "z": z, "y": c})]  # type: ignore[union-attr]
    close(losses[0], discriminator_loss(d(x, c), d(g(z, c), c)))
    close(losses[1], non_saturating(d(g(z, c), c)))
    other = [as_loss(move.loss()).total() for move in task.moves({"x": x, "z": z, "y": (c + 1) % 3})]  # type: ignore[union-attr]
    assert all(abs(a - b) > 1e-4 for a, b in zip(losses, other, strict=True))
    assert float(task.score({"x": x, "z": z, "y": c})["right"].mean()) == pytest.approx(1 / 3)


@pytest.mark.system("conditional-gan", "chosen")
def test_a_class_is_asked_for() -> None:
    g, _ = make()
    g = g.float().eval()
    assert g.offers == {"classes"}
    classes = torch.tensor([2, 2, 0, 1])
    with torch.no_grad():
        made = g.generate(PerExample(0, 4), Wish(classes=classes))
        z = PerExample(0, 4).normal(3)
        close(made, g(z, classes))
        any_class = g.generate(PerExample(0, 300), Wish())
    assert any_class.shape == (300, 1, 2, 2)
