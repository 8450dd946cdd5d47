"""MobileNet v1 and v2 against transformers' own, both ways and in both kinds of padding; what a split saves."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import descend
from descend.errors import Mistake
from descend.models.mobilenet_v1 import CHANNELS, MobileNetV1, MobileNetV1Config, thousand
from descend.models.mobilenet_v2 import MobileNetV2, MobileNetV2Config
from descend.theory.convolution import remaining_share
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.system("mobilenet-and-xception")


def peer(version: int, **values: Any) -> Any:
    """A narrow random model whose batch norms have seen something."""
    kind = getattr(transformers, f"MobileNetV{version}Config")
    config = kind(id2label={0: "a", 1: "b", 2: "c"}, depth_multiplier=0.1, min_depth=4, **values)
    model = random_peer(getattr(transformers, f"MobileNetV{version}ForImageClassification"), config, std=0.05)
    random = torch.Generator().manual_seed(3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.1, generator=random)
            module.running_var.uniform_(0.2, 1.0, generator=random)
            module.num_batches_tracked.fill_(5)  # type: ignore[union-attr]
    return model


def images(height: int = 45, width: int = 52) -> Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("mobilenet-and-xception", "v1")
@pytest.mark.parametrize("tf_padding", [True, False])
@pytest.mark.parametrize("size", [(45, 52), (64, 33)])
def test_v1_both_ways(tf_padding: bool, size: tuple[int, int], tmp_path: Path) -> None:
    theirs, x = peer(1, tf_padding=tf_padding), images(*size)
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    assert ours.config == MobileNetV1Config(
        3, 0.1, 4, tf_padding, dropout=0.999, labels=Labels(("a", "b", "c"))
    )  # the file's dropout, as it stands
    with torch.no_grad():
        inside = theirs.mobilenet_v1(x)
        close(ours.maps(x), inside.last_hidden_state)
        close(ours.features(x), inside.pooler_output)
    assert ours.stem.norm.num_batches_tracked == 5
    values = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert values["id2label"] == {"0": "a", "1": "b", "2": "c"}


@pytest.mark.system("mobilenet-and-xception", "v2")
@pytest.mark.parametrize(
    "values",
    [
        {"tf_padding": True},
        {"tf_padding": False, "finegrained_output": False},
        {"output_stride": 8},
        {"output_stride": 16, "tf_padding": False, "expand_ratio": 3.0, "depth_divisible_by": 4},
    ],
    ids=["same", "even", "dilated same", "dilated even"],
)
def test_v2_both_ways(values: dict[str, Any], tmp_path: Path) -> None:
    theirs, x = peer(2, **values), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    with torch.no_grad():
        inside = theirs.mobilenet_v2(x)
        close(ours.maps(x), inside.last_hidden_state)
        close(ours.features(x), inside.pooler_output)


@pytest.mark.parametrize(("version", "kind"), [(1, MobileNetV1), (2, MobileNetV2)])
def test_files_without_a_head_or_with_another_activation(version: int, kind: type[Pretrained], tmp_path: Path) -> None:
    theirs = peer(version)
    getattr(theirs, f"mobilenet_v{version}").save_pretrained(tmp_path)
    with pytest.raises(Mistake, match=r"missing key 'classifier\.bias' and 1 more"):
        kind.from_pretrained(tmp_path)
    theirs.config.hidden_act = "silu"
    theirs.save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="hidden_act = 'silu' is not supported, only 'relu6'"):
        descend.load(tmp_path)


def test_gradients_are_theirs(tmp_path: Path) -> None:
    theirs, x = peer(1), images()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    close(ours.stem.conv.weight.grad, theirs.mobilenet_v1.conv_stem.convolution.weight.grad, loosen=10)  # 27 layers


@pytest.mark.system("mobilenet-and-xception", "v1")
def test_channels_of_the_paper() -> None:
    with torch.device("meta"):
        model: Any = MobileNetV1(MobileNetV1Config(labels=thousand()))
        assert model.features(torch.zeros(1, 3, 224, 224)).shape == (1, 1024)
        assert model.maps(torch.zeros(1, 3, 224, 224)).shape == (1, 1024, 7, 7)
    points = [m.conv.out_channels for m in model.layers if m.conv.kernel_size == (1, 1)]
    assert tuple(points) == CHANNELS[1:]
    depths = [m.conv for m in model.layers if m.conv.kernel_size == (3, 3)]
    assert all(m.groups == m.in_channels == m.out_channels for m in depths)
    assert len(depths) == 13


@pytest.mark.system("mobilenet-and-xception", "parameters")
def test_parameters_of_mobilenet() -> None:
    """4,231,976 with the head of 1000 classes: 27 convolutions without bias, each with a norm, and one dense layer."""
    with torch.device("meta"):
        model = MobileNetV1(MobileNetV1Config(labels=thousand()))
    stem, pairs = 3 * 9 * CHANNELS[0], list(pairwise(CHANNELS))
    convolutions = stem + sum(9 * a + a * b for a, b in pairs)
    norms = 2 * (CHANNELS[0] + sum(a + b for a, b in pairs))
    assert sum(p.numel() for p in model.parameters()) == convolutions + norms + 1025 * 1000 == 4_231_976


def multiplications(layers: nn.Sequential, x: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        layers(x)
    return counter.get_total_flops() // 2


@pytest.mark.system("mobilenet-and-xception", "saving")
@pytest.mark.parametrize("pair", [0, 5, 12])
def test_what_splitting_saves(pair: int) -> None:
    """Against a full 3×3 convolution of the same stride: 1/C' + 1/9, to the last multiplication."""
    with torch.device("meta"):
        model: Any = MobileNetV1(MobileNetV1Config(labels=thousand()))
        depth, point = model.layers[2 * pair].conv, model.layers[2 * pair + 1].conv
        full = nn.Conv2d(depth.in_channels, point.out_channels, 3, depth.stride, 1)
        x = torch.zeros(1, depth.in_channels, 14, 14)
        split = multiplications(nn.Sequential(depth, point), x)
        assert split / multiplications(nn.Sequential(full), x) == pytest.approx(remaining_share(point.out_channels, 3))
    assert remaining_share(point.out_channels, 3) == pytest.approx(1 / point.out_channels + 1 / 9)


@pytest.mark.system("mobilenet-and-xception", "v2")
def test_v2_keeps_the_size_when_dilated() -> None:
    assert MobileNetV2Config().place_blocks()[-4:] == [(2, 1), (1, 1), (1, 1), (1, 1)]
    assert MobileNetV2Config(output_stride=16).place_blocks()[-4:] == [(1, 1), (1, 2), (1, 2), (1, 2)]
    with pytest.raises(ValueError, match="output_stride 12: give 2, 4, 8, 16 or 32"):
        MobileNetV2Config(output_stride=12)


def test_v2_rounds_to_multiples_but_not_far_down() -> None:
    rounded = MobileNetV2Config(width=0.35).round_channels
    assert [rounded(n) for n in (3, 11.2, 12, 18, 1792)] == [8, 16, 16, 24, 1792]  # 16 would be less than 90% of 18


@pytest.mark.system("mobilenet-and-xception", "learn")
def test_a_narrow_one_learns() -> None:
    torch.manual_seed(0)
    model = MobileNetV1(MobileNetV1Config(width=0.25, labels=Labels(("a", "b", "c", "d"))))
    x, y = torch.randn(16, 3, 32, 32), torch.arange(16) % 4
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(25):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 < losses[0]
