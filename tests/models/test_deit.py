"""DeiT against transformers' own, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from descend.models.deit import TINY, DeiTForImageClassificationWithTeacher
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(architecture: str) -> Any:
    config = transformers.DeiTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4,
        num_labels=5,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


X = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("deit")
@pytest.mark.system("deit", "transformers")
@pytest.mark.parametrize("architecture", ["DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"])
def test_classifiers_both_ways(architecture: str, tmp_path: Path) -> None:
    check_both_ways(peer(architecture), tmp_path, lambda m: m(X), lambda m: m(pixel_values=X).logits)


@pytest.mark.system("deit")
@pytest.mark.system("deit", "transformers")
def test_bare_model_both_ways(tmp_path: Path) -> None:
    theirs = peer("DeiTModel")
    ours = check_both_ways(theirs, tmp_path, lambda m: m(X).pooled, lambda m: m(pixel_values=X).pooler_output)
    assert ours(X).hidden.shape == (3, 2 + 16, 32)


@pytest.mark.system("deit")
@pytest.mark.system("deit", "tokens")
def test_two_heads_on_two_tokens(tmp_path: Path) -> None:
    theirs = peer("DeiTForImageClassificationWithTeacher")
    ours = check_both_ways(theirs, tmp_path, lambda m: m(X), lambda m: m(pixel_values=X).logits)
    with torch.no_grad():
        expected, (of_class, of_teacher) = theirs(pixel_values=X), ours.both(X)
        close(of_class, expected.cls_logits)
        close(of_teacher, expected.distillation_logits)
        close(of_class, ours.head(ours.features(X)))


@pytest.mark.system("deit")
def test_another_resolution_keeps_both_special_positions() -> None:
    torch.manual_seed(0)
    model = DeiTForImageClassificationWithTeacher(TINY)
    larger = model.at_side(20)
    assert larger.embed.positions.shape == (1, 2 + 25, 32)
    assert torch.equal(larger.embed.positions[:, :2], model.embed.positions[:, :2])
    assert larger(torch.randn(1, 3, 20, 20)).shape == (1, 2)
