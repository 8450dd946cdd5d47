"""Joint embeddings: the residual network's own vectors, four kinds that are saved, and a classifier from each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend.models.contrastive_encoder import ARCHITECTURES, TINY, ContrastiveEncoder, JigsawEncoder
from descend.models.resnet_cifar import ResNetCifar
from tests.close import close


@pytest.mark.system("siamese-contrastive")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_kind_is_saved_and_becomes_a_classifier(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind = ARCHITECTURES[name]
    model, x = kind(TINY).eval(), torch.randn(3, *TINY.image)
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert type(again) is kind
    assert isinstance(again, ContrastiveEncoder)
    assert torch.equal(again.project(x), model.project(x))
    found = again.classifier().eval()
    assert isinstance(found, ResNetCifar)
    close(found.features(x), model.features(x))


def test_a_plain_encoder_that_looks_for_the_greatest_values(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = replace(TINY, image=(3, 16, 16), block="plain", stride=2, pool="max")
    model, x = ContrastiveEncoder(config).eval(), torch.randn(3, 3, 16, 16)
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert isinstance(again, ContrastiveEncoder)
    close(again.classifier().eval().features(x), model.features(x))
    close(model.features(x), model.encoder.maps(x).amax((2, 3)))


@pytest.mark.system("pirl")
def test_pieces_go_through_the_encoder_one_by_one() -> None:
    torch.manual_seed(0)
    model, pieces = JigsawEncoder(TINY).eval(), torch.randn(3, 4, 2, 4, 4)
    h = torch.stack([model.features(pieces[:, i]) for i in range(4)], dim=1)
    joined = model.patches.join(torch.cat([model.patches.each(h[:, i]) for i in range(4)], dim=1))
    close(model.project_pieces(pieces), joined)
