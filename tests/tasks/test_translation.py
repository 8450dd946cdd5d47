"""pix2pix and CycleGAN as games: every term, who judges what, and who stands still."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Batch, as_loss
from descend.losses.adversarial import LeastSquares, NonSaturating, Relativistic, discriminator_loss, non_saturating
from descend.losses.cycle import cycle_loss, l1_distance
from descend.tasks.adversarial import GameRules
from descend.tasks.translation import TranslatePairs, TranslateUnpaired, TwoWays
from tests.close import close
from tests.tasks.adversarial_cases import Judge, quality


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def pairs(l1: float = 100.0) -> tuple[TranslatePairs, Batch]:
    torch.manual_seed(0)
    task = TranslatePairs(nn.Conv2d(3, 2, 3, padding=1), Judge(), quality, GameRules(), l1).double()
    return task, {"source": numbers(4, 3, 6, 6), "x": numbers(4, 2, 6, 6)}


@pytest.mark.system("pix2pix")
@pytest.mark.system("pix2pix", "objective")
def test_pix2pix_is_a_conditional_gan_and_l1() -> None:
    task, batch = pairs(l1=7.0)
    source, target = batch["source"], batch["x"]
    made = task.g(source)
    moves = [as_loss(move.loss()) for move in task.moves(batch)]  # type: ignore[union-attr]
    close(moves[0].total(), discriminator_loss(task.d(target, source), task.d(made, source)))
    close(moves[1].terms["loss"], non_saturating(task.d(made, source)))
    close(moves[1].terms["l1"], 7 * (made - target).abs().mean())
    scores = task.score(batch)
    close(scores["l1"].mean(), (made - target).abs().mean())


def unpaired(loss: object = None, identity: float = 0.0, r1: float = 0.0) -> tuple[TranslateUnpaired, Batch]:
    torch.manual_seed(0)
    g, d = (TwoWays(*(nn.Conv2d(2, n, 3, padding=1) for _ in range(2))) for n in (2, 1))
    task = TranslateUnpaired(g, d, quality, loss or LeastSquares(), 10.0, identity, r1).double()  # type: ignore[arg-type]
    return task, {"x": numbers(4, 2, 6, 6), "y": numbers(4, 2, 6, 6) + 1}


@pytest.mark.system("cyclegan")
@pytest.mark.system("cyclegan", "both-ways")
def test_every_term_of_the_total() -> None:
    task, batch = unpaired(identity=0.5)
    x, y = batch["x"], batch["y"]
    moves = [as_loss(move.loss()) for move in task.moves(batch)]
    squares = LeastSquares()
    for way, real, fake in (("y", y, task.g.y(x)), ("x", x, task.g.x(y))):
        d = task.d.get_submodule(way)
        for name, value in squares.of_discriminator(d(real), d(fake)).items():
            close(moves[0].terms[f"{name}_{way}"], value)
        close(moves[1].terms[f"loss_{way}"], squares.of_generator(d(fake), d(fake))["loss"])
    close(moves[1].terms["cycle"], 10 * cycle_loss(x, y, task.g.x, task.g.y))
    close(moves[1].terms["identity"], 0.5 * (l1_distance(task.g.y(y), y) + l1_distance(task.g.x(x), x)))
    close(task.score(batch)["cycle"].mean(), l1_distance(task.g.x(task.g.y(x)), x))


@pytest.mark.system("cyclegan")
def test_r1_is_the_slope_of_the_mean_patch_at_real_images() -> None:
    """A linear judge has the same slope everywhere, so that it can be measured by differences."""
    task, batch = unpaired(r1=6.0)
    first = as_loss(next(iter(task.moves(batch))).loss())
    for way in ("x", "y"):
        judge, x = task.d.get_submodule(way), batch[way]
        steps = torch.eye(x[0].numel(), dtype=torch.float64).view(-1, *x.shape[1:])
        slope = judge(x[:1] + steps).flatten(1).mean(1) - judge(x[:1]).mean()
        close(first.terms[f"r1_{way}"], 3 * slope.square().sum())
    assert "r1_x" not in as_loss(next(iter(unpaired()[0].moves(batch))).loss()).terms


@pytest.mark.system("cyclegan")
@pytest.mark.system("cyclegan", "pairing")
def test_each_discriminator_judges_the_domain_that_its_generator_makes() -> None:
    """DLN prints L_GAN(G_X, D_Y) + L_GAN(G_Y, D_X): there G_Y, which makes Y, would have to please the judge of X.

    Here X lies about 0 and Y about 5, and each D knows its own domain. A G_Y that makes 5 pleases D_Y; with the printed
    pairs it would displease D_X.
    """

    class Near(nn.Module):
        def __init__(self, place: float):
            super().__init__()
            self.place, self.scale = place, nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.scale * (4 - (x - self.place).abs())

    class Shift(nn.Module):
        def __init__(self, by: float):
            super().__init__()
            self.by = nn.Parameter(torch.tensor(by))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.by

    task = TranslateUnpaired(TwoWays(Shift(-5.0), Shift(5.0)), TwoWays(Near(0.0), Near(5.0)), quality, NonSaturating())
    batch = {"x": torch.zeros(4, 1, 2, 2), "y": torch.full((4, 1, 2, 2), 5.0)}
    d_loss, g_loss = (as_loss(move.loss()) for move in task.moves(batch))
    right = g_loss.terms["loss_x"] + g_loss.terms["loss_y"]
    printed = non_saturating(task.d.y(task.g.x(batch["y"]))) + non_saturating(task.d.x(task.g.y(batch["x"])))
    assert right < 0.05
    assert printed > 2
    assert g_loss.terms["cycle"] == 0
    assert d_loss.told["real_score_x"] > 0.9


@pytest.mark.system("cyclegan", "both-ways")
def test_moves_leave_the_other_player_alone() -> None:
    task, batch = unpaired()
    for move in task.moves(batch):
        task.zero_grad()
        as_loss(move.loss()).total().backward()
        moved = task.g if move.player == "g" else task.d
        assert all(p.grad is not None for p in moved.parameters())
        if move.player == "d":
            assert all(p.grad is None for p in task.g.parameters())


def test_losses_that_compare_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="unpaired images"):
        unpaired(Relativistic())
