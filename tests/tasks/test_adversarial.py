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
from descend.losses.adversarial import (
    Hinge,
    RelativisticMean,
    Saturating,
    Wasserstein,
    discriminator_loss,
    non_saturating,
    saturating,
)
from descend.losses.gradient_penalty import GradientPenalty
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.nn.adversarial.spectral import normalize_spectrum
from descend.optim.rules import SGD, Adam
from descend.optim.schedules import Constant, Linear
from descend.tasks.adversarial import Adversarial, GameRules, clip_weights, run_still
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
    return Adversarial(nn.Linear(3, 2), Logit(), judge, GameRules(d_moves=d_moves, g_moves=g_moves)).double()


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
@pytest.mark.parametrize(("d_moves", "g_moves"), [(2, 1), (1, 2), (4, 2)])
def test_every_move_sees_an_equal_part_of_the_batch(d_moves: int, g_moves: int) -> None:
    """As many parts as the busier player has moves; the generator's are the last ones."""
    game, given = task(d_moves, g_moves), batch()
    seen = [(player, as_loss(loss()).total()) for player, loss, _ in game.moves(given)]
    assert [player for player, _ in seen] == ["d"] * d_moves + ["g"] * g_moves
    k = max(d_moves, g_moves)
    parts = [{name: value[i::k] for name, value in given.items()} for i in range(k)]
    assert {len(part["x"]) for part in parts} == {8 // k}
    for (_, found), part in zip(seen[:d_moves], parts, strict=False):
        close(found, discriminator_loss(game.d(part["x"]), game.d(game.g(part["z"]))))
    for (_, found), part in zip(seen[d_moves:], parts[k - g_moves :], strict=True):
        close(found, non_saturating(game.d(game.g(part["z"]))))


@pytest.mark.system("gan", "step-counts")
def test_a_batch_that_has_no_equal_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="8 examples do not divide into 3 equal parts"):
        next(task(d_moves=3).moves(batch()))


# Who stands still


class Normed(nn.Module):
    """Noise or points, a batch norm, and a number or a point."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(inputs, 4), nn.BatchNorm1d(4), nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).relu()).squeeze(-1)


@pytest.mark.system("gan", "still")
def test_no_buffer_of_the_other_player_moves() -> None:
    """Batch norms count the batches of their own player's moves alone: two of D (real and generated) and one of G."""
    torch.manual_seed(0)
    game, given = Adversarial(Normed(3, 2), Normed(2, 1), judge).double().train(), batch()
    for player, loss, _ in game.moves(given):
        other = game.g if player == "d" else game.d
        before = {name: value.clone() for name, value in other.state_dict().items()}
        as_loss(loss()).total().backward()
        for name, value in other.state_dict().items():
            assert torch.equal(value, before[name]), f"{name} of the other player moved in the move of {player}"
    assert int(game.g.norm.num_batches_tracked) == 1
    assert int(game.d.norm.num_batches_tracked) == 2


@pytest.mark.system("gan", "still")
def test_standing_still_changes_no_output_and_no_gradient() -> None:
    """The statistics used are those of the batch, as in training."""
    torch.manual_seed(0)
    module, x = Normed(2, 1).double().train(), batch()["x"].requires_grad_()
    still = run_still(module, x)
    grads = torch.autograd.grad(still.sum(), (x, *module.parameters()))
    free = module(x)
    close(still, free)
    for a, b in zip(grads, torch.autograd.grad(free.sum(), (x, *module.parameters())), strict=True):
        close(1 + a, 1 + b)


@pytest.mark.system("gan", "still")
def test_spectral_norms_of_d_do_not_iterate_in_gs_move() -> None:
    torch.manual_seed(0)
    d = normalize_spectrum(Discriminator(2, 6, 1))
    game = Adversarial(nn.Linear(3, 2), d, judge, GameRules(Hinge())).double().train()
    with torch.no_grad():
        for p in d.parameters():
            p.add_(torch.randn_like(p))
    before = {name: b.clone() for name, b in d.named_buffers()}
    moves = game.moves(batch())
    next(moves)
    as_loss(next(moves).loss()).total().backward()
    assert all(torch.equal(b, before[name]) for name, b in d.named_buffers())


# Wasserstein


@pytest.mark.system("wgan")
@pytest.mark.system("wgan", "clipped")
def test_weights_are_clipped_after_each_move_of_the_critic() -> None:
    """By the engine, with a rate that throws them far outside."""
    torch.manual_seed(0)
    rules = GameRules(Wasserstein(), clip=0.01, d_moves=2)
    game = Adversarial(nn.Linear(3, 2), Discriminator(2, 8, 2), judge, rules).double()
    optims = {"d": SGD(10.0, momentum=0.0), "g": SGD(0.1, momentum=0.0)}
    parts = Parts(game, game.g, iter([batch()] * 3), [], optims)  # type: ignore[arg-type]
    run = Training(parts, Loop(), Constant(), World())
    outside = []
    wanted = game.move_g

    def look(part: dict[str, Tensor]) -> object:
        outside.append(max(float(p.detach().abs().max()) for p in game.d.parameters()))
        return wanted(part)

    game.move_g = look  # type: ignore[assignment, method-assign]
    for _ in range(3):
        told = run.advance()
    assert outside == [0.01] * 3
    assert "critic_gap" in told
    clip_weights(game.d, 0.0)  # 0 leaves them
    assert max(float(p.detach().abs().max()) for p in game.d.parameters()) == 0.01


@pytest.mark.system("wgan")
@pytest.mark.system("wgan", "point-masses")
def test_the_gap_of_point_masses_is_their_distance_times_the_slope() -> None:
    """A linear critic f(x) = w x with |w| ≤ c finds the gap c |a − b|."""
    for a, b, c in ((0.0, 3.0, 0.01), (2.0, -1.0, 0.1)):
        critic = Logit1()
        game = Adversarial(nn.Identity(), critic, judge, GameRules(Wasserstein(), clip=c))
        given = {"x": torch.full((4, 1), a), "z": torch.full((4, 1), b)}
        optims = {"d": SGD(0.05, momentum=0.0), "g": SGD(0.1, momentum=0.0)}
        game.g = nn.Linear(1, 1)
        with torch.no_grad():
            game.g.weight.fill_(1.0)
            game.g.bias.zero_()
        optims["g"] = SGD(1e-9, momentum=0.0)
        run = Training(Parts(game, game.g, iter([given] * 20), [], optims), Loop(), Constant(), World())  # type: ignore[arg-type]
        told = [run.advance() for _ in range(20)][-1]
        close(torch.tensor(told["critic_gap"]), torch.tensor(c * abs(a - b)), loosen=10)


class Logit1(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x).squeeze(-1)


@pytest.mark.system("wgan-gp", "second-order")
def test_compiled_players_play_the_same_game() -> None:
    """A compiled module cannot be differentiated twice, so the penalty goes around it; buffers still stay still."""
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        rules = GameRules(Wasserstein(), GradientPenalty())
        game, given = Adversarial(Normed(3, 2), Discriminator(2, 6, 1), judge, rules).double(), batch()
        given["u"] = torch.linspace(0, 1, 8, dtype=torch.float64)
        if compiled:
            for player in (game.g, game.d):
                player.compile(backend="aot_eager")
        losses = []
        for _, loss, _ in game.moves(given):
            losses.append(as_loss(loss()).total())
            losses[-1].backward()
        found.append((losses, [p.grad for p in game.parameters()], int(game.g.norm.num_batches_tracked)))
    for a, b in zip(found[0][0] + found[0][1], found[1][0] + found[1][1], strict=True):
        close(1 + a, 1 + b)
    assert found[0][2] == found[1][2] == 1


def test_a_penalty_needs_a_loss_that_is_a_mean() -> None:
    with pytest.raises(ValueError, match="compares a whole batch"):
        Adversarial(nn.Linear(3, 2), Logit(), judge, GameRules(RelativisticMean(), GradientPenalty()))


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
    torch.manual_seed(0)
    game, given = Adversarial(nn.Linear(3, 2), Logit(), judge, GameRules(Saturating())).double(), batch()
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
    parts = Parts(Adversarial(g, d, judge, GameRules(d_moves=2)), g, Drawn(draw, 256, seed), [], rules)  # type: ignore[arg-type]
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
