"""YOLOv1 to v4, YOLOX and the Darknets: published counts and shapes, and that each learns a batch of scenes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from descend.contracts import Criterion
from descend.losses.detection.points import CentreCell, PointLoss, SimOta, TaskAlignment
from descend.losses.detection.yolo_chapter import YoloChapterLoss
from descend.losses.detection.yolo_v1 import YoloV1Loss
from descend.losses.detection.yolo_v2 import YoloV2Loss
from descend.losses.detection.yolo_v3 import YoloV3Loss
from descend.losses.detection.yolo_v4 import YoloV4Loss
from descend.models import csp_darknet, darknet_19, darknet_53, yolo_v1, yolo_v2, yolo_v3, yolo_v4, yolo_x
from descend.models.yolo_v1 import YoloV1, YoloV1Config, signed_root
from descend.models.yolo_v2 import YoloV2, YoloV2Config
from descend.models.yolo_v3 import YoloV3, YoloV3Config
from descend.models.yolo_v4 import YoloV4, YoloV4Config
from descend.models.yolo_x import YoloX, YoloXConfig
from descend.weights.labels import Labels
from tests.close import close
from tests.losses.detection.scenes import draw_scenes, overfit, share_found

NAMES = Labels(("a", "b", "c"))
ANCHORS = (14.0, 14.0, 20.0, 20.0, 28.0, 28.0)


def on_meta(kind: Any, config: Any) -> Any:
    with torch.device("meta"):
        return kind(config)


def convolutions(model: nn.Module) -> int:
    return sum(isinstance(layer, nn.Conv2d) for layer in model.modules())


def operations(model: nn.Module, side: int) -> int:
    """Multiplications and additions of an image."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        model(torch.empty(1, 3, side, side))
    return int(counter.get_total_flops())


@pytest.mark.system("yolo-v1")
@pytest.mark.system("yolo-v1", "output")
def test_v1_output() -> None:
    config = yolo_v1.SIZES["yolo-v1"]
    model = on_meta(YoloV1, config)
    assert convolutions(model) == 24
    assert config.grid == (7, 7)
    assert config.numbers == 30
    assert model.output.out_features == 7 * 7 * 30 == 1470
    with torch.device("meta"):
        found = model(torch.empty(1, 3, 448, 448))
    assert found.boxes.shape == (1, 7, 7, 2, 4)
    assert found.classes.shape == (1, 7, 7, 20)


@pytest.mark.system("yolo-v1", "codings")
def test_v1_codings() -> None:
    """By roots a size is never negative; directly it can be, and so is its box."""
    torch.manual_seed(0)
    x = torch.randn(8, *yolo_v1.TINY.image)
    for coding, negative in (("roots", False), ("sizes", True)):
        model = YoloV1(dataclasses.replace(yolo_v1.TINY, coding=coding)).eval()
        found = model(x)
        sizes = found.boxes[..., 2:] - found.boxes[..., :2]
        assert bool((sizes < 0).any()) is negative
        if coding == "sizes":
            close(found.roots, signed_root(sizes / found.size))
        else:
            close(found.roots.square(), sizes / found.size)
    w = torch.tensor([0.25, -0.25, 0.04], dtype=torch.float64)
    close(signed_root(w), torch.tensor([0.5, -0.5, 0.2], dtype=torch.float64), loosen=1e5)  # ε under the root


@pytest.mark.system("yolo-v2")
@pytest.mark.system("yolo-v2", "output")
def test_v2_output() -> None:
    model = on_meta(YoloV2, yolo_v2.SIZES["yolo-v2"])
    with torch.device("meta"):
        (maps,) = model.score_maps(torch.empty(1, 3, 416, 416))
    assert maps.shape == (1, 425, 13, 13)
    assert len(model(torch.empty(1, 3, 416, 416, device="meta")).strides) == 845
    unnormed = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d) and layer.bias is not None]
    assert unnormed == [model.head]  # batch norm on every other convolution


@pytest.mark.system("yolo-v2", "multi-scale")
@pytest.mark.parametrize("side", range(320, 609, 32))
def test_v2_takes_every_multiple_of_32(side: int) -> None:
    model = on_meta(YoloV2, yolo_v2.SIZES["yolo-v2"])
    with torch.device("meta"):
        assert model.score_maps(torch.empty(1, 3, side, side))[0].shape[2:] == (side // 32, side // 32)


@pytest.mark.system("yolo-v2", "darknet-19")
def test_darknet_19() -> None:
    """19 convolutions; 5.58 billion operations at 224, 7.29 at 256, as its paper and YOLOv3's tell."""
    model = on_meta(darknet_19.Darknet19, darknet_19.SIZES["darknet-19"])
    assert convolutions(model) == 19
    with torch.device("meta"):
        assert model.maps(torch.empty(1, 3, 416, 416)).shape == (1, 1024, 13, 13)
    assert round(operations(model, 224) / 1e9, 1) == 5.6
    assert round(operations(model, 256) / 1e9, 1) == 7.3


@pytest.mark.system("yolo-v3", "darknet-53")
def test_darknet_53() -> None:
    """52 convolutions and a linear layer; 18.7 billion operations at 256."""
    model = on_meta(darknet_53.Darknet53, darknet_53.SIZES["darknet-53"])
    assert convolutions(model) + 1 == 53
    assert round(operations(model, 256) / 1e9, 1) == 18.6
    assert sum(p.numel() for p in model.parameters()) == 41_609_928


@pytest.mark.system("yolo-v3")
@pytest.mark.system("yolo-v3", "boxes")
def test_v3_boxes() -> None:
    model = on_meta(YoloV3, yolo_v3.SIZES["yolo-v3"])
    with torch.device("meta"):
        maps = model.score_maps(torch.empty(1, 3, 416, 416))
        found = model(torch.empty(1, 3, 416, 416))
    assert [tuple(m.shape[1:]) for m in maps] == [(255, 52, 52), (255, 26, 26), (255, 13, 13)]
    assert found.boxes.shape == (1, 10647, 4)
    assert found.logits.shape == (1, 10647, 80)


@pytest.mark.system("yolo-v4-v5")
@pytest.mark.system("yolo-v4-v5", "frame", "boxes")
def test_v4_frame() -> None:
    """(13² + 26² + 52²) · 3 = 10,647 (erratum of MF 24.6.2); heads of 255 maps; 64,363,101 parameters."""
    model = on_meta(YoloV4, yolo_v4.SIZES["yolo-v4"])
    with torch.device("meta"):
        maps = model.score_maps(torch.empty(1, 3, 416, 416))
        found = model(torch.empty(1, 3, 416, 416))
    assert [tuple(m.shape[1:]) for m in maps] == [(255, 52, 52), (255, 26, 26), (255, 13, 13)]
    assert [m.shape[2] * m.shape[3] * 3 for m in maps] == [8112, 2028, 507]
    assert found.boxes.shape == (1, 10647, 4)
    assert sum(p.numel() for p in model.parameters()) == 64_363_101


@pytest.mark.system("csp-block-and-darknet")
@pytest.mark.system("csp-block-and-darknet", "stages", "published")
def test_csp_darknet() -> None:
    """The book's sizes; and the backbone of the published YOLOv4."""
    book = on_meta(csp_darknet.CspDarknet, csp_darknet.SIZES["csp-darknet-book"])
    with torch.device("meta"):
        maps = book.backbone(torch.empty(1, 3, 416, 416))
    assert [tuple(m.shape[1:]) for m in maps] == [
        (32, 208, 208), (64, 104, 104), (128, 52, 52), (256, 26, 26), (512, 13, 13)
    ]  # fmt: skip
    full, v4 = csp_darknet.SIZES["csp-darknet-53"], on_meta(YoloV4, yolo_v4.SIZES["yolo-v4"])
    backbone = sum(p.numel() for p in v4.backbone.parameters())
    assert backbone == csp_darknet.PARAMETERS["csp-darknet-53"] - 1024 * 1000 - 1000
    assert full.depths == (1, 2, 8, 8, 4)


@pytest.mark.system("yolo-v4-v5", "post-processing")
def test_the_books_post_processing() -> None:
    """Objectness above ½, suppression above an IoU of ½ within a class, at most 100."""
    torch.manual_seed(0)
    model = YoloV4(yolo_v4.TINY).eval()
    found = model(torch.randn(2, 3, 64, 64))
    found = found._replace(objectness=torch.randn_like(found.objectness))
    kept = model.decode_sure(found)
    assert kept.scores.shape[1] <= 100
    sure = found.objectness.sigmoid() > 0.5
    real = kept.classes >= 0
    assert int(real.sum()) > 2
    everywhere = model.decode_sure(found, objectness=0.0, tau=1.0, most=10_000)
    assert int((everywhere.classes >= 0).sum()) == found.objectness.numel()
    scores = found.objectness.sigmoid()[..., None] * found.logits.sigmoid()
    for i in range(2):
        best = scores[i].amax(dim=-1).masked_fill(~sure[i], -1).max()
        close(kept.scores[i, 0], best)
        assert (model.decode_sure(found, objectness=1.0).classes[i] == -1).all()


@pytest.mark.system("yolox-v7-v9")
@pytest.mark.system("yolox-v7-v9", "published")
@pytest.mark.parametrize("size", yolo_x.SIZES)
def test_yolox_sizes(size: str) -> None:
    model = on_meta(YoloX, yolo_x.SIZES[size])
    assert sum(p.numel() for p in model.parameters()) == yolo_x.PARAMETERS[size]
    with torch.device("meta"):
        assert model(torch.empty(1, 3, 640, 640)).logits.shape == (1, 8400, 80)


SMALL: dict[str, Any] = {
    "stem": 8, "widths": (8, 12, 16, 16, 16), "depths": (1, 1, 1, 1, 1), "anchors": ANCHORS, "labels": NAMES
}  # fmt: skip
FREE: dict[str, Any] = {"widths": (8, 12, 16, 16, 16), "depths": (1, 1, 1, 1), "head_width": 16, "labels": NAMES}
LAYERS: dict[str, Any] = {"widths": (12, 16, 24), "kernels": (3, 3, 3), "strides": (2, 2, 2), "pools": (1, 1, 1)}
V1 = YoloV1Config(image=(3, 64, 64), **LAYERS, hidden=64, dropout=0.0, norm="batch", labels=NAMES)
V2 = YoloV2Config(widths=(8, 12, 16, 24), repeats=(1, 1, 1, 3), anchors=ANCHORS, labels=NAMES)
LEARNERS: dict[str, tuple[Any, Any, Criterion, str]] = {
    "v1": (YoloV1, V1, YoloV1Loss(), "yolo-v1"),
    "v2": (YoloV2, V2, YoloV2Loss(), "yolo-v2"),
    "v3": (YoloV3, YoloV3Config(**SMALL), YoloV3Loss(), "yolo-v3"),
    "v4": (YoloV4, YoloV4Config(**SMALL), YoloV4Loss(), "yolo-v4-v5"),
    "chapter": (YoloV3, YoloV3Config(**SMALL), YoloChapterLoss(box=1.0, objectness=40.0, centre=20.0), "yolo-loss"),
}
STEPS, RATE = 60, 1e-2


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.system(slug, "learns")) for n, (_, _, _, slug) in LEARNERS.items()]
)
def test_it_learns_a_batch(name: str) -> None:
    torch.manual_seed(0)
    kind, config, criterion, _ = LEARNERS[name]
    model, scenes = kind(config), draw_scenes(3, least=16)
    before, after = overfit(model, criterion, scenes, STEPS, RATE)
    assert after < before / 3
    recall, precision = share_found(model, scenes, least=0.25)
    assert recall == 1
    assert precision >= 0.7


@pytest.mark.system("yolo-v2", "learns")
def test_v2_learns_at_two_sizes() -> None:
    torch.manual_seed(0)
    model = YoloV2(V2)
    small, large = draw_scenes(3, side=64, least=16), draw_scenes(3, side=96, least=20)
    for scenes in (small, large):
        before, after = overfit(model, YoloV2Loss(), scenes, steps=20)
        assert after < before


KINDS = [
    ({"block": "csp"}, PointLoss()),
    ({"block": "elan", "head": "coupled"}, PointLoss(overlap="ciou")),
    ({"block": "e-elan", "neck": "sum"}, PointLoss(overlap="giou", assign=SimOta(radius=1.5))),
    ({"block": "gelan"}, PointLoss(overlap="diou", assign=TaskAlignment())),
    ({"block": "csp", "head": "coupled"}, PointLoss(assign=CentreCell())),
]


@pytest.mark.system("yolox-v7-v9", "configurable")
@pytest.mark.parametrize(("parts", "criterion"), KINDS, ids=["x", "v7", "e-elan", "v9", "fixed"])
def test_every_configuration_learns_and_decodes(parts: dict[str, Any], criterion: Criterion) -> None:
    torch.manual_seed(0)
    model, scenes = YoloX(YoloXConfig(**FREE, **parts)), draw_scenes(3, least=16)
    before, after = overfit(model, criterion, scenes, 80, RATE)
    assert after < before / 3
    recall, precision = share_found(model, scenes, least=0.25)
    assert recall == 1
    assert precision >= 0.5


def test_bad_numbers_are_refused() -> None:
    for make, words in (
        (lambda: YoloV3Config(anchors=(1.0, 2.0, 3.0)), "3 numbers as anchors"),
        (lambda: YoloV2Config(repeats=(1, 1, 3, 3, 5, 4)), "odd number"),
        (lambda: YoloV1Config(kernels=(3,)), "one number each"),
        (lambda: YoloV1Config(image=(3, 100, 448)), "multiples of 64"),
        (lambda: YoloXConfig(block="none"), "known: csp"),  # type: ignore[arg-type]
        (lambda: YoloV4Config(widths=(1, 2, 3, 4, 5)), "five even widths"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
