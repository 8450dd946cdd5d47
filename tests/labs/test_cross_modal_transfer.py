"""The lab of cross-modal transfer: sparse attention in a ViT is masked attention, the joint model learns."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import cross_modal_transfer
from descend.labs._evidence import judge_seed
from descend.labs.cross_modal_transfer import Joint, figure, fit, images, matches, sparse_pairs, texts, with_windows
from descend.nn.encoder import PreNormBlock
from tests.close import close

verdict = partial(judge_seed, cross_modal_transfer)

SLUG = "cross-modal-transfer"
GOOD: dict[str, Any] = {
    "steps": 250, "right": [0.98, 0.95], "pairs": [676, 250], "attention": ["full", "sparse"], "loss": [0.1, 0.2],
}  # fmt: skip


@pytest.mark.system("cross-modal-transfer", "sparse")
@pytest.mark.system(SLUG)
def test_the_window_in_a_vit_is_masked_attention_with_the_same_weights() -> None:
    """Against each block's full attention under the explicit mask; a window of everything changes nothing."""
    torch.manual_seed(0)
    model = Joint().double()
    x, _ = images(2, 0)
    tokens = model.image.embed(x.double())
    place = torch.arange(tokens.shape[1])
    near = (place[:, None] - place).abs() <= 3
    mask = near | (place == 0) | (place[:, None] == 0)
    block = model.image.encoder.blocks[0]
    assert isinstance(block, PreNormBlock)
    expected, full = block(tokens, mask[None, None]), block(tokens)
    with_windows(model.image, 3)
    model.double()
    close(model.image.encoder.blocks[0](tokens), expected)
    assert not torch.allclose(expected, full)
    with_windows(model.image, 99)
    model.double()
    close(model.image.encoder.blocks[0](tokens), full)


@pytest.mark.system("cross-modal-transfer", "pairs")
@pytest.mark.system(SLUG)
def test_pairs_are_those_of_the_mask() -> None:
    place = torch.arange(26)
    mask = ((place[:, None] - place).abs() <= 4) | (place == 0) | (place[:, None] == 0)
    assert sparse_pairs(26) == int(mask.sum())


@pytest.mark.system("cross-modal-transfer", "joint")
@pytest.mark.system(SLUG)
def test_a_vit_and_a_bert_join_and_learn() -> None:
    """A short training lowers the loss of the joint model; gradients reach both encoders."""
    torch.manual_seed(0)
    model = Joint()
    early = fit(model, 2, 0)
    late = fit(model, 25, 0)
    assert late < early - 0.3
    assert model.image.embed.patches.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    assert model.text.embed.token.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    assert 0 <= matches(model, 0) <= 1
    assert texts().shape == (16, 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"right": [0.98, 0.7]}, "refuted"),
        ({"pairs": [676, 600]}, "refuted"),
    ],
)
def test_verdict(change: dict[str, Any], said: str) -> None:
    assert verdict({**deepcopy(GOOD), **change}) == said


def test_figure() -> None:
    assert len(figure(GOOD).axes) == 2
