"""Learning to denoise: the loss of a batch, where its chance comes from, dropped conditions, and what is learned."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Wish, as_loss
from descend.data.streams.beside import Blocks
from descend.engine.minimise import minimise
from descend.losses.diffusion import elbo_weights
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.models.noise_classifier import TINY, NoiseClassifier
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import Predicts, v_of
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.optim.rules import Adam
from descend.sampling.chance import PerExample
from descend.tasks.classify_noisy import ClassifyNoisy
from descend.tasks.denoise import Denoise, draw_noise, draw_times
from tests.close import close

NOISE = NoiseSchedule("linear", 10, 0.01, 0.3)


class Seen(nn.Module):
    """Says x, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.asked: list[tuple[Tensor, ...]] = []

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        self.asked.append((x, t) if y is None else (x, t, y))
        return self.scale * x


def batch(n: int = 6, drop: float | None = None) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(n, 1, 4, 4, generator=random), **draw_noise((1, 4, 4), n, random, drop)}


@pytest.mark.system("noise-prediction-loss")
@pytest.mark.system("ddpm")
def test_the_loss_by_hand() -> None:
    model, given = Seen(), batch()
    (move,) = Denoise(model, NOISE).moves(given)
    loss = as_loss(move.loss()).total()
    x, t = model.asked[0]
    assert t.tolist() == (given["time"] * 10).long().tolist()
    noisy = torch.stack([add_noise(given["x"][i], given["noise"][i], float(NOISE.abar()[t[i]])) for i in range(6)])
    close(x, noisy)
    close(loss, (noisy - given["noise"]).square().mean())


@pytest.mark.system("noise-prediction-loss", "weights")
@pytest.mark.system("prediction-parametrisation")
def test_weights_and_targets() -> None:
    given, model = batch(), Seen()
    task = Denoise(model, NOISE, weights="elbo")
    per_example = Denoise(model, NOISE).losses(given)
    t = model.asked[0][1]
    close(task.losses(given), per_example * elbo_weights(NOISE)[t].float())
    close(
        Denoise(model, NOISE, weights=lambda noise: noise.betas()).losses(given), per_example * NOISE.betas()[t].float()
    )
    abar = NOISE.at(t, given["x"])
    noisy = add_noise(given["x"], given["noise"], abar)
    targets = {"x0": given["x"], "v": v_of(given["x"], given["noise"], abar)}
    close(Denoise(model, NOISE, "x0").losses(given), (noisy - targets["x0"]).square().flatten(1).mean(1))
    close(Denoise(model, NOISE, "v").losses(given), (noisy - targets["v"]).square().flatten(1).mean(1))


@pytest.mark.system("noise-prediction-loss", "uniform-time")
def test_times_come_from_the_stream_and_are_uniform() -> None:
    """Every stretch is spread evenly over 0..1; each single one is uniform over blocks."""
    u = draw_times(4000, torch.Generator().manual_seed(1))
    assert ((u >= 0) & (u < 1)).all()
    for start in (0, 1234):
        counts = (u[start : start + 200] * 10).long().bincount(minlength=10)
        assert counts.min() >= 18
        assert counts.max() <= 22
    firsts = torch.stack([draw_times(3, torch.Generator().manual_seed(k))[2] for k in range(500)])
    assert (firsts * 5).long().bincount(minlength=5).min() > 70
    blocks = Blocks(lambda random, n: draw_noise((2,), n, random, 0.15), seed=3)
    whole = blocks.take(0, 50)
    again = Blocks(lambda random, n: draw_noise((2,), n, random, 0.15), seed=3)
    for name, values in again.take(20, 30).items():
        assert values.equal(whole[name][20:30])


@pytest.mark.system("classifier-free-guidance")
@pytest.mark.system("classifier-free-guidance", "dropout")
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_conditions_are_dropped_by_the_stream(share: float) -> None:
    """The share lies within binomial bounds (4 deviations), and a dropped condition becomes "none"."""
    n = 20_000
    drop = draw_noise((1,), n, torch.Generator().manual_seed(0), share)["drop"]
    assert abs(float(drop.float().mean()) - share) < 4 * (share * (1 - share) / n) ** 0.5
    model, given = Seen(), batch(200, share)
    given["y"] = torch.arange(200) % 10
    Denoise(model, NOISE, none=10).losses(given)
    y = model.asked[0][2]
    assert 0 < (y == 10).sum() < 80
    assert y.equal(torch.where(given["drop"], 10, given["y"]))


@pytest.mark.system("prediction-parametrisation", "training")
@pytest.mark.parametrize("predicts", ["eps", "x0", "v"])
def test_each_prediction_is_learned(predicts: Predicts) -> None:
    """Two points in the plane: after 300 steps the model makes them, whatever it predicts."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    plan = Plan(NoiseSchedule("cosine", 50), predicts, method="ddim", steps=25)
    model = DenoiserMLP(DenoiserConfig(width=64, depth=3, plan=plan))
    task = Denoise(model, plan.noise, predicts)
    random, points = torch.Generator().manual_seed(1), torch.tensor([[1.0, -1.0], [-1.0, 0.5]])

    def loss() -> Tensor:
        x = points[torch.randint(2, (128,), generator=random)]
        return task.losses({"x": x, **draw_noise((2,), 128, random)}).mean()

    minimise(model, loss, 300, Adam(lr=3e-3))
    made = model.generate(PerExample(0, 200), Wish())
    distance, nearest = torch.cdist(made, points).min(1)
    assert distance.median() < 0.2
    assert 0.25 < (nearest == 0).float().mean() < 0.75


@pytest.mark.system("classifier-guidance")
def test_a_classifier_sees_noisy_images_and_their_times() -> None:
    model = Seen()
    task = ClassifyNoisy(model, NOISE)
    given = batch()
    given["x"], given["noise"] = given["x"].flatten(1)[:, :3], given["noise"].flatten(1)[:, :3]
    given["y"] = torch.tensor([0, 1, 2, 0, 1, 2])
    loss = as_loss(next(task.moves(given)).value()).total()
    x, t = model.asked[0]
    close(x, add_noise(given["x"], given["noise"], NOISE.at(t, given["x"])))
    close(loss.detach(), nn.functional.cross_entropy(x, given["y"]))
    assert task.score(given)["accuracy"].shape == (6,)


@pytest.mark.system("classifier-guidance", "gradient")
def test_input_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    model = NoiseClassifier(TINY).double()
    x, t, y = torch.randn(2, 1, 4, 4).double(), torch.tensor([3, 900]), torch.tensor([2, 0])
    with torch.no_grad():
        found = model.gradient(x, t, y)
        log_p = lambda x: model(x, t).log_softmax(-1)[torch.arange(2), y]
        for i in range(4):
            step = torch.zeros_like(x)
            step[:, 0, i, i] = 1e-6
            close(found[:, 0, i, i], (log_p(x + step) - log_p(x - step)) / 2e-6, loosen=1e3)  # differences
