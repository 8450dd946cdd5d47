"""Masked image modelling: the loss is on hidden patches only, and the model cannot look under the mask."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from descend.models.beit import BeitConfig, BeitForMaskedImageModeling
from descend.nn.patches import patchify, unpatchify
from descend.tasks.masked_image import MaskedImage
from tests.close import close


def parts() -> tuple[MaskedImage, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    config = BeitConfig(7, 1, 8, 2, 16, 1, 2, 32, drop_path=0.0, scale=1.0, mask_token=True, shared_bias=True)
    batch = {"x": torch.randn(4, 1, 8, 8), "hide": torch.rand(4, 16) < 0.4, "y": torch.randint(7, (4, 16))}
    return MaskedImage(BeitForMaskedImageModeling(config)), batch


@pytest.mark.system("beit")
@pytest.mark.system("beit", "hidden-only")
def test_loss_on_hidden_patches_only() -> None:
    task, batch = parts()
    logits = task.model(batch["x"], batch["hide"])
    assert logits.shape == (int(batch["hide"].sum()), 7)
    ((_, loss, _),) = task.moves(batch)
    close(loss(), F.cross_entropy(logits, batch["y"][batch["hide"]]))
    other = {**batch, "y": torch.where(batch["hide"], batch["y"], (batch["y"] + 1) % 7)}
    ((_, again, _),) = task.moves(other)
    assert torch.equal(loss(), again())


@pytest.mark.system("beit")
@pytest.mark.system("beit", "not-seen")
def test_what_is_hidden_is_not_seen() -> None:
    task, batch = parts()
    patches = patchify(batch["x"], 2)
    changed = torch.where(batch["hide"][..., None], torch.randn_like(patches), patches)
    close(task.model(unpatchify(changed, 2, (4, 4)), batch["hide"]), task.model(batch["x"], batch["hide"]))
    seen = torch.where(batch["hide"][..., None], patches, torch.randn_like(patches))
    assert not torch.allclose(
        task.model(unpatchify(seen, 2, (4, 4)), batch["hide"]), task.model(batch["x"], batch["hide"]), atol=1e-4
    )


@pytest.mark.system("beit")
def test_an_image_with_nothing_hidden_costs_nothing() -> None:
    task, batch = parts()
    ((_, loss, _),) = task.moves({**batch, "hide": torch.zeros_like(batch["hide"])})
    assert float(loss().detach()) == 0
