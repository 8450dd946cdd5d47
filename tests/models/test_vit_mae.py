"""The masked autoencoder against transformers' own, both ways: vectors, painted pixels and loss at equal noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.models.vit_mae import TINY, ViTMAE, ViTMAEForPreTraining, sine_positions
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(architecture: str, **other: Any) -> Any:
    config = transformers.ViTMAEConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4,
        decoder_hidden_size=16, decoder_num_hidden_layers=1, decoder_num_attention_heads=2,
        decoder_intermediate_size=24, **other,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


def inputs() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    return torch.randn(3, 3, 16, 16, generator=random), torch.rand(3, 16, generator=random)


@pytest.mark.system("jepa", "masked-autoencoder")
@pytest.mark.parametrize("normalized", [False, True])
def test_pixels_and_loss_both_ways(tmp_path: Path, normalized: bool) -> None:
    theirs, (x, noise) = peer("ViTMAEForPreTraining", norm_pix_loss=normalized), inputs()
    call = lambda m: m(pixel_values=x, noise=noise).logits
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x, noise), call)
    assert isinstance(ours, ViTMAEForPreTraining)
    expected = theirs(pixel_values=x, noise=noise)
    errors, hidden = ours.errors(x, noise)
    assert torch.equal(hidden, expected.mask.bool())
    close(errors[hidden].mean(), expected.loss)
    errors[hidden].mean().backward()
    expected.loss.backward()
    close(ours.embed.patches.weight.grad, theirs.vit.embeddings.patch_embeddings.projection.weight.grad)
    close(ours.decoder.token.grad, theirs.decoder.mask_token.grad)


@pytest.mark.system("jepa", "masked-autoencoder")
def test_bare_encoder_both_ways(tmp_path: Path) -> None:
    theirs, (x, noise) = peer("ViTMAEModel", mask_ratio=0.5), inputs()
    call = lambda m: m(pixel_values=x, noise=noise).last_hidden_state
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x, noise), call)
    assert type(ours) is ViTMAE


def test_positions_are_those_of_a_new_model_there() -> None:
    from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

    row, column = build_2d_sinusoidal_position_embedding(3, 5, 32, cls_token=True).chunk(2, dim=1)
    close(sine_positions((3, 5), 32)[0], torch.cat([column, row], dim=1))  # released models have the column first
    with pytest.raises(ValueError, match="multiple of 4"):
        sine_positions((2, 2), 6)


def test_visible_patches_cost_nothing_and_the_encoder_becomes_a_vit() -> None:
    torch.manual_seed(0)
    model, x = ViTMAEForPreTraining(TINY).eval(), torch.randn(2, 3, 12, 12)
    noise = torch.rand(2, 9)
    _, hidden = model.errors(x, noise)
    assert hidden.sum(1).tolist() == [5, 5]
    vit = model.classifier().eval()
    with torch.no_grad():
        close(vit.tokens(x)[:, 1:].mean(1), model.features(x))
