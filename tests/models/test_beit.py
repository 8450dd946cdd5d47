"""BEiT against transformers' own, both ways, with every kind of positions; pre-trained, then fine-tuned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.models.beit import (
    TINY,
    BeitBlock,
    BeitConfig,
    BeitForImageClassification,
    BeitForMaskedImageModeling,
    fine_tuned,
)
from descend.nn.image_tokens import POSITION
from descend.weights.labels import Labels
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

KINDS = {
    "own": {"use_relative_position_bias": True},
    "shared": {"use_shared_relative_position_bias": True},
    "absolute": {"use_absolute_position_embeddings": True},
    "all": {
        "use_relative_position_bias": True,
        "use_shared_relative_position_bias": True,
        "use_absolute_position_embeddings": True,
    },
    "none": {},
}
X = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))
HIDE = torch.rand(3, 16, generator=torch.Generator().manual_seed(2)) < 0.4


def peer(architecture: str, kind: str, **other: Any) -> Any:
    config = transformers.BeitConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4,
        num_labels=5, vocab_size=11, **KINDS[kind], **other,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


@pytest.mark.system("beit")
@pytest.mark.system("beit", "transformers")
@pytest.mark.parametrize("kind", KINDS)
def test_classifier_both_ways(kind: str, tmp_path: Path) -> None:
    theirs = peer("BeitForImageClassification", kind)
    ours = check_both_ways(theirs, tmp_path, lambda m: m(X), lambda m: m(pixel_values=X).logits)
    close(ours(X), ours.head(ours.features(X)))
    assert ours.maps(X).shape == (3, 32, 4, 4)


@pytest.mark.system("beit")
@pytest.mark.system("beit", "transformers")
@pytest.mark.parametrize("kind", ["own", "shared", "absolute"])
def test_masked_image_modelling_both_ways(kind: str, tmp_path: Path) -> None:
    theirs = peer("BeitForMaskedImageModeling", kind, use_mask_token=True)
    check_both_ways(
        theirs, tmp_path, lambda m: m(X, HIDE), lambda m: m(pixel_values=X, bool_masked_pos=HIDE).logits[HIDE]
    )


@pytest.mark.system("beit")
def test_the_bias_has_a_gradient(tmp_path: Path) -> None:
    theirs = peer("BeitForImageClassification", "own")
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    ours(X).square().mean().backward()
    theirs(pixel_values=X).logits.square().mean().backward()
    close(
        ours.encoder.blocks[0].bias.table.grad,
        theirs.beit.layers[0].relative_position_bias.relative_position_bias_table.grad,
    )


@pytest.mark.system("beit")
def test_layer_scale_of_zero_is_the_identity() -> None:
    torch.manual_seed(0)
    x, (none, full) = torch.randn(2, 5, 16), (BeitBlock((16, 4, 32), scale=s) for s in (0.0, 1.0))
    assert torch.equal(none(x), x)
    assert not torch.allclose(full(x), x, atol=1e-2)


@pytest.mark.system("beit")
def test_a_key_bias_would_change_nothing() -> None:
    """It adds q_iᵀ b to every score of query i, which the softmax does not see."""
    torch.manual_seed(0)
    block, x = BeitBlock((16, 4, 32), scale=1.0).double(), torch.randn(2, 5, 16, dtype=torch.float64)
    assert block.attn.k.bias is None
    expected = block(x)
    block.attn.k.bias = torch.nn.Parameter(torch.randn(16, dtype=torch.float64))
    close(block(x), expected)


@pytest.mark.system("beit")
@pytest.mark.system("beit", "fine-tuning")
def test_fine_tuning_starts_with_the_pretrained_vectors(tmp_path: Path) -> None:
    """Every layer gets the shared bias as its own: nothing that the encoder computes changes."""
    theirs = peer("BeitForMaskedImageModeling", "shared", use_mask_token=True)
    theirs.save_pretrained(tmp_path)
    source: Any = descend.load(tmp_path)
    model = fine_tuned(source, Labels(("cat", "dog", "eel"))).eval()
    close(model.tokens(X), source.tokens(X))
    assert model(X).shape == (3, 3)
    assert model.config.own_bias
    assert not model.config.shared_bias


def test_what_is_learned_from_nothing_starts_small() -> None:
    """Class token and mask token: normal, σ = 0.02; positions: `POSITION`."""
    torch.manual_seed(0)
    model = BeitForMaskedImageModeling(replace(TINY, width=512, heads=4, mask_token=True, absolute=True))
    for part, deviation in ((model.cls, 0.02), (model.mask_token, 0.02), (model.positions, POSITION)):
        assert part is not None
        assert float(part.detach().std()) == pytest.approx(deviation, rel=0.1)


def test_no_mask_token() -> None:
    with pytest.raises(ValueError, match="needs mask_token=True"):
        BeitForMaskedImageModeling(BeitConfig(side=16, patch=8, width=16, depth=1, heads=2))
    with pytest.raises(ValueError, match="no mask token; build it with mask_token=True"):
        BeitForImageClassification(TINY).tokens(torch.zeros(1, 3, 12, 12), torch.ones(1, 9, dtype=torch.bool))
    with pytest.raises(ValueError, match="images of 8 x 8, but this model takes 12"):
        BeitForImageClassification(replace(TINY, depth=1))(torch.zeros(1, 3, 8, 8))
