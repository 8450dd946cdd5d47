"""The adversarial game: who moves when, on what, and what stays still."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import as_loss
from descend.data.streams.arrays import Drawn
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.losses.adversarial import discriminator_loss, non_saturating, saturating
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.optim.rules import SGD, Adam
from descend.optim.schedules import Constant, Linear
from descend.tasks.adversarial import Adversarial
from tests.close import close

pytestmark = pytest.mark.system("gan")


class Logit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x).squeeze(-1)


def judge(x: Tensor) -> dict[str, Tensor]:
    return {"first": x[:, 0]}


def task(d_moves: int = 1, g_moves: int = 1) -> Adversarial:
    torch.manual_seed(0)
    return Adversarial(nn.Linear(3, 2), Logit(), judge, d_moves=d_moves, g_moves=g_moves).double()


def batch(n: int = 8) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(1)
    return {k: torch.randn(n, w, generator=random, dtype=torch.float64) for k, w in (("x", 2), ("z", 3))}


def test_d_then_g_each_with_its_loss() -> None:
    game, given = task(), batch()
    players, losses = zip(*((player, as_loss(loss()).total()) for player, loss, _ in game.moves(given)), strict=True)
    assert players == ("d", "g")
    real, fake = game.d(given["x"]), game.d(game.g(given["z"]))
    close(losses[0], discriminator_loss(real, fake))
    close(losses[1], non_saturating(fake))


@pytest.mark.system("gan", "step-counts")
def test_d_may_move_more_often_each_time_on_its_own_part() -> None:
    game, given = task(d_moves=2), batch()
    seen = [(player, as_loss(loss()).total()) for player, loss, _ in game.moves(given)]
    assert [player for player, _ in seen] == ["d", "d", "g"]
    for i, rows in enumerate((slice(0, 4), slice(4, 8))):
        close(seen[i][1], discriminator_loss(game.d(given["x"][rows]), game.d(game.g(given["z"][rows]))))
    close(seen[2][1], non_saturating(game.d(game.g(given["z"]))))


@pytest.mark.system("gan", "step-counts")
def test_g_may_move_more_often_too() -> None:
    game, given = task(g_moves=2), batch()
    seen = [(player, as_loss(loss()).total()) for player, loss, _ in game.moves(given)]
    assert [player for player, _ in seen] == ["d", "g", "g"]
    for i, rows in enumerate((slice(0, 4), slice(4, 8))):
        close(seen[i + 1][1], non_saturating(game.d(game.g(given["z"][rows]))))


@pytest.mark.system("gan", "alternating")
def test_d_teaches_nothing_to_g_in_its_own_move() -> None:
    """Real examples have no part in G's gradient, and D's loss none at all."""
    game, given = task(), batch()
    _, loss, _ = next(game.moves(given))
    as_loss(loss()).total().backward()
    assert all(p.grad is None for p in game.g.parameters())
    other = {**given, "x": given["x"] + 5}
    grads = []
    for b in (given, other):
        game.zero_grad()
        *_, (player, loss, _) = game.moves(b)
        assert player == "g"
        as_loss(loss()).total().backward()
        grads.append(game.g.weight.grad.clone())
    assert torch.equal(*grads)


@pytest.mark.system("gan", "alternating")
def test_the_engine_moves_one_player_at_a_time_and_g_sees_the_new_d() -> None:
    """DLN-C.40: one step on D with G fixed, then one on G with D fixed; recomputed here by hand."""
    game, by_hand, given = task(), task(), batch()
    rules = {"d": SGD(0.1, momentum=0.0), "g": SGD(0.2, momentum=0.0)}
    stream = iter([given])
    run = Training(Parts(game, game.g, stream, [given], rules), Loop(), Constant(), World())  # type: ignore[arg-type]
    told = run.advance()
    z, x = given["z"], given["x"]
    found = discriminator_loss(by_hand.d(x), by_hand.d(by_hand.g(z).detach()))
    close(told["loss_d"], found.item())
    step(by_hand.d, 0.1, found)
    found = non_saturating(by_hand.d(by_hand.g(z)))
    close(told["loss_g"], found.item())
    step(by_hand.g, 0.2, found)
    for ours, theirs in zip(game.parameters(), by_hand.parameters(), strict=True):
        close(ours, theirs)


def step(module: nn.Module, lr: float, loss: Tensor) -> None:
    parameters = list(module.parameters())
    for p, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.data -= lr * grad


@pytest.mark.system("generator-loss-variants")
@pytest.mark.system("generator-loss-variants", "switchable")
def test_the_generators_loss_can_be_exchanged() -> None:
    game, given = task(), batch()
    game.generator_loss = saturating
    *_, (_, loss, _) = game.moves(given)
    close(as_loss(loss()).total(), saturating(game.d(game.g(given["z"]))))


def test_score_judges_what_g_makes() -> None:
    game, given = task(), batch()
    close(game.score({"z": given["z"]})["first"], game.g(given["z"])[:, 0])


@pytest.mark.system("gan", "line")
@pytest.mark.parametrize("seed", range(3))
def test_d_stands_at_one_half_when_g_has_learned(seed: int) -> None:
    """On a line: x ~ N(1.5, 0.5²), z ~ N(0, 1). D tells them apart at first, and hardly in the end."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    g, d = Generator(GANConfig(latent=1, outputs=1, width=16, depth=1)), Discriminator(1, 32, 2)

    def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
        x, z = torch.randn(2, n, 1, generator=random)
        return {"x": 1.5 + 0.5 * x, "z": z}

    rules = dict.fromkeys(("d", "g"), Adam(lr=1e-2, betas=(0.5, 0.9)))
    parts = Parts(Adversarial(g, d, judge, d_moves=2), g, Drawn(draw, 256, seed), [], rules)  # type: ignore[arg-type]
    run = Training(parts, Loop(steps=300), Linear(), World())
    told = [run.advance() for _ in range(300)]
    assert max(row["real_score"] - row["fake_score"] for row in told[:100]) > 0.5
    ends = {name: sum(row[name] for row in told[-50:]) / 50 for name in ("real_score", "fake_score", "loss_d")}
    assert abs(ends["real_score"] - 0.5) < 0.05
    assert abs(ends["fake_score"] - 0.5) < 0.05
    assert abs(ends["loss_d"] - math.log(4)) < 0.1
    with torch.no_grad():
        x = g(torch.randn(4000, 1, generator=torch.Generator().manual_seed(0)))
    assert abs(x.mean() - 1.5) < 0.15
    assert abs(x.std() - 0.5) < 0.15
