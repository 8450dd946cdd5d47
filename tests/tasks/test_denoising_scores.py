"""Denoising scores as a task: what is predicted, and that the network learns the score at every level."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.data.streams.arrays import Drawn
from descend.data.toys.mixture import Mixture
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.models.score_network import TINY, ScoreNetwork, ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.seeds import generator
from descend.tasks.denoising_scores import DenoisingScores
from tests.close import close

pytestmark = pytest.mark.system("denoising-score-matching")


def test_the_loss_by_hand() -> None:
    torch.manual_seed(0)
    model = ScoreNetwork(TINY).double()
    x, noise = torch.randn(2, 6, 2, generator=generator(0), dtype=torch.float64)
    level = torch.tensor([0, 1, 0, 1, 1, 0])
    task = DenoisingScores(model, lambda: {"found": 0.25})
    [move] = task.moves({"x": x, "noise": noise, "level": level})
    sigma = torch.tensor([2.0, 0.5], dtype=torch.float64)[level][:, None]
    by_hand = (noise - model(x + sigma * noise, level)).square().sum(1) / 2
    close(move.value().total(), by_hand.mean())
    close(task.score({"x": x, "noise": noise, "level": level})["loss"], by_hand)
    assert task.judge({"loss": 1.0}, {}) == {"loss": 1.0, "found": 0.25}
    assert DenoisingScores(model).judge({"loss": 1.0}, {}) == {"loss": 1.0}


@pytest.mark.system("denoising-score-matching", "several-levels")
@pytest.mark.system("multi-scale-score-model")
def test_a_network_learns_the_score_at_every_level() -> None:
    """A mixture in the plane, three levels: the learned score against the exact one of the smoothed mixture."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    mixture = Mixture(torch.tensor([0.3, 0.7]), torch.tensor([[-1.5, 0.0], [1.5, 0.5]]), torch.tensor([0.6, 0.6]))
    model = ScoreNetwork(ScoreNetworkConfig(width=48, depth=2, levels=3, first=3.0, last=0.4, spread=1.5))

    def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
        level = torch.randint(3, (n,), generator=random)
        return {
            "x": mixture.sample(n, random)[0],
            "noise": torch.randn(n, 2, generator=random),
            "level": level,
        }

    rules = {"model": Adam(1e-2)}
    parts = Parts(DenoisingScores(model), model, Drawn(draw, 512), [], rules)  # type: ignore[arg-type]
    run = Training(parts, Loop(steps=400), Linear(), World())
    for _ in range(400):
        run.advance()
    random = generator(1)
    for i, sigma in enumerate(model.sizes):
        wider = Mixture(mixture.pi, mixture.mu, (mixture.sigma**2 + sigma**2).sqrt())
        x = wider.sample(2000, random)[0]
        with torch.no_grad():
            error = (model.score(x, i) - wider.score(x)).square().sum(1).mean() / wider.score(x).square().sum(1).mean()
        assert error < 0.05, f"level {i}"
