"""The contrastive task: loss, twins, temperature, zero-shot score."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.losses.contrastive import n_pair
from descend.models.clip import TINY, Clip
from descend.tasks.contrastive import COLDEST, Contrastive, number_texts
from tests.close import close


def batch(n: int = 5) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(59, (n, 6), generator=random)
    tokens[:, -1] = 60
    return {"x": torch.rand(n, 3, 8, 8, generator=random), "tokens": tokens}


def clip() -> Clip:
    torch.manual_seed(0)
    return Clip(TINY)


@pytest.mark.system("clip")
@pytest.mark.system("clip", "temperature")
@pytest.mark.system("clip-contrastive-loss")
def test_the_loss_is_the_mean_over_pairs_and_the_scale_is_bounded() -> None:
    model, b = clip(), batch()
    torch.nn.init.constant_(model.scale, 6.0)
    (player, loss), *rest = list_of_moves(model, b)
    assert (player, rest) == ("model", [])
    logits = model.logits(model.encode_image(b["x"]), model.encode_text(b["tokens"]))
    close(loss, n_pair(logits * math.exp(6 - COLDEST)).mean())  # the scale has been bounded since
    close(model.scale, torch.tensor(math.log(100)))


def list_of_moves(model: Clip, b: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    return [(move.player, move.value().total()) for move in Contrastive(model).moves(b)]


@pytest.mark.system("clip")
def test_scores_are_per_pair_and_twins_count() -> None:
    model, b = clip(), batch()
    b["tokens"][3] = b["tokens"][1]
    assert number_texts(b["tokens"])[1] == number_texts(b["tokens"])[3]
    with torch.no_grad():
        found = Contrastive(model).score(b)
    assert set(found) == {"loss", "recall"}
    assert all(value.shape == (5,) for value in found.values())
    texts = model.logits(model.encode_image(b["x"]), model.encode_text(b["tokens"])).argmax(1)
    assert torch.equal(found["recall"], (b["tokens"][texts] == b["tokens"]).all(1).float())


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "nearest-text")
def test_images_are_named_by_the_nearest_prompts() -> None:
    model, b = clip(), batch()
    prompts = batch(6)["tokens"].view(3, 2, 6)
    with torch.no_grad():
        mean = model.encode_text(prompts.flatten(0, 1)).view(3, 2, -1).mean(1)
        nearest = torch.nn.functional.cosine_similarity(model.encode_image(b["x"])[:, None], mean, dim=-1).argmax(1)
        found = Contrastive(model, prompts).score({**b, "y": torch.tensor([0, 1, 2, 0, 1])})
    assert torch.equal(found["zero_shot"], (nearest == torch.tensor([0, 1, 2, 0, 1])).float())
