"""A game whose players grow: real images are brought to the stage, and blurred as what is made."""

from __future__ import annotations

import pytest
import torch

from descend.contracts import as_loss
from descend.losses.adversarial import discriminator_loss, non_saturating
from descend.models.progressive_gan import enlarge
from descend.tasks.growing import GrowAdversarial, fade
from tests.close import close
from tests.tasks.adversarial_cases import growing

pytestmark = pytest.mark.system("progressive-gan")


@pytest.mark.system("progressive-gan", "growing")
def test_real_images_are_faded_like_generated_ones() -> None:
    x = torch.rand(2, 3, 16, 16)
    close(fade(x, 0.0, 4), torch.nn.functional.avg_pool2d(x, 4))
    close(fade(x, 1.0, 4), torch.nn.functional.avg_pool2d(x, 2))
    close(fade(x, 2.0, 4), x)
    small, large = enlarge(torch.nn.functional.avg_pool2d(x, 2)), x
    close(fade(x, 1.25, 4), 0.75 * small + 0.25 * large)


@pytest.mark.system("progressive-gan", "growing")
@pytest.mark.parametrize(("growth", "stage", "alpha"), [(0.0, 0, 1.0), (0.5, 1, 0.5), (1.0, 1, 1.0)])
def test_the_batch_says_how_far_both_have_grown(growth: float, stage: int, alpha: float) -> None:
    torch.manual_seed(0)
    task, batch = growing()
    assert isinstance(task, GrowAdversarial)
    task.double()
    batch["growth"].fill_(growth)
    losses = [as_loss(move.loss()).total() for move in task.moves(batch)]  # type: ignore[union-attr]
    real, made = fade(batch["x"], growth, 4), task.g.forward_at(batch["z"], stage, alpha)
    fake = task.d.forward_at(made, stage, alpha)
    close(losses[0], discriminator_loss(task.d.forward_at(real, stage, alpha), fake))
    close(losses[1], non_saturating(fake))
    assert float(task.g.growth) == float(task.d.growth) == growth
    assert task.state_dict()["g.growth"] == growth  # in every checkpoint
    assert task.score(batch)["norm"].shape == (8,)
