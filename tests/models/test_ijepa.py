"""I-JEPA's encoder against transformers' own, both ways; some patches only; a classifier from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.models.ijepa import TINY, IJepa, IJepaForImageClassification
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(architecture: str, **other: Any) -> Any:
    config = transformers.IJepaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4,
        num_labels=5, **other,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


def images() -> Tensor:
    return torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "transformers")
def test_encoder_both_ways(tmp_path: Path) -> None:
    theirs, x = peer("IJepaModel"), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(pixel_values=x).last_hidden_state)
    assert isinstance(ours, IJepa)
    with torch.no_grad():
        close(ours.features(x), theirs(pixel_values=x).last_hidden_state.mean(1))


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "transformers")
def test_classifier_both_ways(tmp_path: Path) -> None:
    theirs, x = peer("IJepaForImageClassification"), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(pixel_values=x).logits)
    assert isinstance(ours, IJepaForImageClassification)


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "context-only")
def test_the_context_sees_nothing_else() -> None:
    """Other pixels outside the context change nothing; all patches as context are the whole encoder."""
    torch.manual_seed(0)
    model, x = IJepa(TINY).eval(), torch.randn(2, 3, 12, 12)
    places = torch.tensor([[0, 4, 8], [2, 4, 6]])  # two diagonals of 3 × 3 patches
    other = x.clone()
    for row, seen in enumerate(places.tolist()):
        for patch in set(range(9)) - set(seen):
            r, c = divmod(patch, 3)
            other[row, :, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] = 7.0
    with torch.no_grad():
        assert torch.equal(model.encode_some(x, places), model.encode_some(other, places))
        assert not torch.equal(model(x), model(other))
        close(model.encode_some(x, torch.arange(9).expand(2, 9)), model(x))


def test_the_classifier_starts_from_the_encoder() -> None:
    torch.manual_seed(0)
    model, x = IJepa(replace(TINY, depth=1)).eval(), torch.randn(2, 3, 12, 12)
    found = model.classifier().eval()
    close(found.features(x), model.features(x))
