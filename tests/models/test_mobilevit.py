"""MobileViT against transformers' own, both ways; unfold and fold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.models.mobilevit import SIZES, TINY, MobileViT, MobileViTConfig, fold, round_channels, unfold
from descend.weights.labels import Labels
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer() -> Any:
    config = transformers.MobileViTConfig(
        hidden_sizes=[8, 12, 16], neck_hidden_sizes=[8, 8, 8, 8, 16, 16, 24], expand_ratio=2.0, num_attention_heads=2,
        num_labels=5, hidden_dropout_prob=0.0, classifier_dropout_prob=0.0,
    )  # fmt: skip
    return random_peer(transformers.MobileViTForImageClassification, config)


def images(side: int) -> torch.Tensor:
    return torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "transformers")
@pytest.mark.parametrize("side", [64, 72, 80])
def test_both_ways(side: int, tmp_path: Path) -> None:
    """At 72 and 80 the maps are no multiple of the patch, and are resized."""
    x = images(side)
    ours = check_both_ways(peer(), tmp_path, lambda m: m(x), lambda m: m(pixel_values=x).logits)
    close(ours.features(x), ours.maps(x).mean(dim=(2, 3)))


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "transformers")
def test_training_and_running_averages(tmp_path: Path) -> None:
    """A training step in both gives the same gradients and averages, and they survive the folder."""
    theirs, x = peer(), images(64)
    theirs.save_pretrained(tmp_path / "theirs")
    ours: Any = descend.load(tmp_path / "theirs")
    for model, out in ((ours.train(), ours(x)), (theirs.train(), theirs(pixel_values=x).logits)):
        out.square().mean().backward()
        assert model.training
    close(ours.stem.conv.weight.grad, theirs.mobilevit.conv_stem.convolution.weight.grad, loosen=100)
    ours.save_pretrained(tmp_path / "ours")
    again = type(theirs).from_pretrained(tmp_path / "ours").state_dict()
    name = "mobilevit.encoder.layer.1.layer.2.conv_3x3.normalization"
    assert int(again[f"{name}.num_batches_tracked"]) == 1
    close(again[f"{name}.running_var"], theirs.state_dict()[f"{name}.running_var"], loosen=10)


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "fold")
@pytest.mark.parametrize(("b", "d", "rows", "columns", "patch"), [(2, 3, 2, 4, 2), (1, 1, 3, 1, 3), (3, 5, 1, 1, 1)])
def test_fold_undoes_unfold(b: int, d: int, rows: int, columns: int, patch: int) -> None:
    x = torch.randn(b, d, rows * patch, columns * patch)
    tokens = unfold(x, patch)
    assert tokens.shape == (b * patch**2, rows * columns, d)
    assert torch.equal(fold(tokens, patch, (rows, columns)), x)


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "fold")
def test_a_sequence_is_one_place_of_every_patch() -> None:
    x = torch.arange(16.0).view(1, 1, 4, 4)
    assert unfold(x, 2)[..., 0].tolist() == [[0, 2, 8, 10], [1, 3, 9, 11], [4, 6, 12, 14], [5, 7, 13, 15]]


def test_channels_are_multiples_of_eight() -> None:
    assert [round_channels(c) for c in (3, 12, 19, 20, 58)] == [8, 16, 24, 24, 56]
    with pytest.raises(ValueError, match="2 widths and 7 maps; a MobileViT has 3 and 7"):
        MobileViTConfig(widths=(8, 16))


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "parameters")
def test_parameters_of_transformers_small_model() -> None:
    """5,578,632 with 1000 classes; the paper says 5.6 million."""
    with torch.device("meta"):
        theirs = transformers.MobileViTForImageClassification(transformers.MobileViTConfig(num_labels=1000))
        ours = MobileViT(SIZES["mobilevit-small"])
    counts = [sum(p.numel() for p in model.parameters()) for model in (ours, theirs)]
    assert counts == [5_578_632, 5_578_632]


@pytest.mark.system("mobilevit")
@pytest.mark.system("mobilevit", "learns")
def test_it_learns() -> None:
    torch.manual_seed(0)
    model = MobileViT(replace(TINY, labels=Labels(("a", "b", "c"))))
    x, y = images(64).repeat(3, 1, 1, 1) + torch.randn(6, 3, 64, 64), torch.arange(6) % 3
    rule = torch.optim.AdamW(model.parameters(), 5e-3)
    losses = []
    for _ in range(20):
        rule.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 0.8
    assert losses[-1] < 0.25
