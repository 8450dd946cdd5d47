from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from descend import recipes
from descend.kinds.localise import OneObject
from descend.models.localiser import Localiser, LocaliserConfig
from descend.tasks.localise import Localise
from tests.close import close
from tests.engine.small import training


@pytest.mark.system("huber-and-smooth-l1", "boxes")
@pytest.mark.system("transfer-learning")
def test_the_loss_is_cross_entropy_and_smooth_l1() -> None:
    random = torch.Generator().manual_seed(0)
    z, box, true = (torch.rand(5, n, generator=random).double() for n in (3, 4, 4))
    y = torch.tensor([0, 1, 2, 1, 0])
    found = Localise(torch.nn.Identity(), weight=2.0).losses((z, box), {"y": y, "box": true})
    boxes = F.smooth_l1_loss(box, true, beta=0.1, reduction="none").sum(dim=1)
    close(found, F.cross_entropy(z, y, reduction="none") + 2 * boxes)


def test_images_need_not_be_square() -> None:
    config = LocaliserConfig(image=(3, 20, 33), widths=(4, 8, 16))
    assert config.sides == (5, 9)
    found = Localiser(config)(torch.zeros(2, 3, 20, 33))
    assert (found.logits.shape, found.box.shape) == ((2, 6), (2, 4))


@pytest.mark.system("huber-and-smooth-l1", "boxes")
@pytest.mark.system("transfer-learning")
def test_it_learns_where_things_are() -> None:
    whole: Any = recipes.get("localise-scenes")
    loop = replace(whole.loop, steps=40, batch=32, threads=1)
    recipe = replace(whole, model=LocaliserConfig(widths=(8, 16)), data=OneObject(300, 16), loop=loop)
    run = training(recipe)
    before = run.evaluate()
    for _ in range(40):
        run.advance()
    after = run.evaluate()
    assert after["iou"] > before["iou"] + 0.1
    assert after["loss"] < 0.8 * before["loss"]
    run.task.eval()
    (shown,) = run.parts.exhibits()  # type: ignore[misc]
    assert len(shown.content["captions"]) == 12
