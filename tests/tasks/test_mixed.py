"""Training on mixed images: soft labels, drawn from the step's random state."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.data.images.mixing import CutMix, MixUp
from descend.losses.classification import cross_entropy
from descend.tasks.mixed import ClassifyMixed
from tests.close import close

pytestmark = pytest.mark.system("mixup-and-cutmix")

BATCH = {
    "x": torch.rand(8, 3, 6, 6, generator=torch.Generator().manual_seed(0)),
    "y": torch.arange(8) % 4,
    "ids": torch.arange(8),
}


def task(*ways: MixUp | CutMix) -> ClassifyMixed:
    torch.manual_seed(0)
    return ClassifyMixed(nn.Sequential(nn.Flatten(), nn.Linear(108, 4)), 4, ways)


@pytest.mark.system("mixup-and-cutmix", "training")
def test_the_loss_is_that_of_the_mixed_batch() -> None:
    mixed = task(MixUp(1.0))
    torch.manual_seed(5)
    x, y = mixed.mix(BATCH)
    close(y.sum(1), torch.ones(8))
    assert ((y > 0).sum(1) <= 2).all()
    torch.manual_seed(5)
    [(player, loss, _)] = mixed.moves(BATCH)
    assert player == "model"
    log_p = mixed.model(x).log_softmax(-1)
    close(loss(), -(y * log_p).sum(1).mean())
    close(loss(), loss().detach())  # called again it is the same batch: nothing is drawn inside


def test_a_step_draws_what_its_random_state_says() -> None:
    mixed = task(MixUp(1.0), CutMix(1.0))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(mixed.mix(BATCH)[0])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.system("mixup-and-cutmix", "training")
def test_both_ways_come() -> None:
    """A pasted pixel is one of the batch's own, a mixed one is not."""
    mixed, own = task(MixUp(1.0), CutMix(1.0)), 0
    for seed in range(40):
        torch.manual_seed(seed)
        x, _ = mixed.mix(BATCH)
        own += bool(torch.isin(x, BATCH["x"]).all())
    assert 8 < own < 32


def test_scores_are_of_the_images_as_they_are() -> None:
    mixed = task(CutMix(1.0))
    logits = mixed.model(BATCH["x"])
    scores = mixed.score(BATCH)
    close(scores["loss"], cross_entropy(logits, BATCH["y"]))
    assert torch.equal(scores["accuracy"], (logits.argmax(1) == BATCH["y"]).to(scores["accuracy"].dtype))
