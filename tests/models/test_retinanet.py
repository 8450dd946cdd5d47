"""RetinaNet and FCOS against their equations by hand, torchvision's names and counts, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Criterion
from descend.losses.detection.fcos import FCOSLoss
from descend.losses.detection.focal import FocalBoxLoss
from descend.models import fcos, retinanet
from descend.models.fcos import FCOS
from descend.models.retinanet import RetinaNet
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import Lookup, rename_tensors
from tests.close import close
from tests.models.test_faster_rcnn import body, public_names, top_down, under
from tests.rectangles import count_hits, make_rectangles, part_of

SIDES = tuple((s, 1.3 * s) for s in (8.0, 12.0, 16.0, 24.0, 32.0))
BODY = {"widths": (8, 12, 12, 16), "depths": (1, 2, 1, 1), "block": "bottleneck", "corner": 0.0}


def levels_by_hand(x: Tensor, w: dict[str, Tensor]) -> list[Tensor]:
    """P3..P7 by the public names."""
    neck = under(w, "backbone.fpn")
    maps = top_down(body(x, under(w, "backbone.body"))[1:], neck)
    for name in ("p6", "p7"):
        y = maps[-1] if name == "p6" else maps[-1].relu()
        p = f"extra_blocks.{name}"
        maps.append(F.conv2d(y, neck[f"{p}.weight"], neck[f"{p}.bias"], stride=2, padding=1))
    return maps


def conv(x: Tensor, w: dict[str, Tensor], name: str) -> Tensor:
    return F.conv2d(x, w[f"{name}.weight"], w[f"{name}.bias"], padding=1)


def read_cells(maps: Tensor, numbers: int) -> list[Tensor]:
    """The predictions of one image, cell by cell and anchor by anchor."""
    z = maps[0].view(-1, numbers, *maps.shape[2:])
    return [z[a, :, i, j] for i in range(z.shape[2]) for j in range(z.shape[3]) for a in range(len(z))]


@pytest.mark.system("feature-pyramid-network", "shared-heads", "original")
def test_retinanet_by_hand() -> None:
    torch.manual_seed(0)
    config = replace(retinanet.TINY, **BODY, sizes=SIDES)
    model = RetinaNet(config).double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.05 * torch.randn_like(p)
        w = rename_tensors(model.state_dict(), retinanet.TORCHVISION)
        x = torch.randn(1, 3, 64, 96, dtype=torch.float64)
        found, maps = model(x), levels_by_hand(x, w)
        for ours, part, last, numbers in (
            (found.logits, "classification", "cls_logits", 3),
            (found.offsets, "regression", "bbox_reg", 4),
        ):
            head, rows = under(w, f"head.{part}_head"), []
            for m in maps:
                for i in range(config.depth):
                    m = conv(m, head, f"conv.{i}.0").relu()
                rows += read_cells(conv(m, head, last), numbers)
            close(ours[0], torch.stack(rows))
        anchors = []
        for m, sizes in zip(maps, SIDES, strict=True):
            stride = 64 // m.shape[2]
            for i in range(m.shape[2]):
                for j in range(m.shape[3]):
                    for ratio in config.ratios:
                        for size in sizes:
                            w_half, h_half = np.round([size / ratio**0.5 / 2, size * ratio**0.5 / 2])
                            x0, y0 = j * stride, i * stride
                            anchors.append([x0 - w_half, y0 - h_half, x0 + w_half, y0 + h_half])
        close(found.anchors, torch.tensor(anchors, dtype=torch.float32))


def test_fcos_by_hand() -> None:
    torch.manual_seed(0)
    config = replace(fcos.TINY, **BODY)
    model = FCOS(config).double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.05 * torch.randn_like(p)
        w = rename_tensors(model.state_dict(), fcos.TORCHVISION)
        x = torch.randn(1, 3, 64, 96, dtype=torch.float64)
        found, logits, distances, central, points = model(x), [], [], [], []
        for m in levels_by_hand(x, w):
            towers = {}
            for part in ("classification", "regression"):
                y, head = m, under(w, f"head.{part}_head")
                for i in range(config.depth):
                    y = conv(y, head, f"conv.{3 * i}")
                    y = F.group_norm(y, 1, head[f"conv.{3 * i + 1}.weight"], head[f"conv.{3 * i + 1}.bias"]).relu()
                towers[part] = y
            logits += read_cells(conv(towers["classification"], under(w, "head.classification_head"), "cls_logits"), 3)
            head = under(w, "head.regression_head")
            distances += read_cells(conv(towers["regression"], head, "bbox_reg").relu(), 4)
            central += read_cells(conv(towers["regression"], head, "bbox_ctrness"), 1)
            stride = 64 // m.shape[2]
            points += [[j * stride, i * stride] for i in range(m.shape[2]) for j in range(m.shape[3])]
        close(found.logits[0], torch.stack(logits))
        close(found.distances[0], torch.stack(distances))
        close(found.centreness[0], torch.cat(central))
        close(found.points, torch.tensor(points, dtype=torch.float32))


def one_stage_names(norms: bool, classes: int, boxes: tuple[tuple[str, int], ...]) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the tensors of torchvision's one-stage detectors on ResNet-50."""
    wanted = {k: v for k, v in public_names().items() if k.startswith("backbone.body")}

    def layer(name: str, *shape: int) -> None:
        wanted.update({f"{name}.weight": shape, f"{name}.bias": shape[:1]})

    for i, inputs in enumerate((512, 1024, 2048)):
        layer(f"backbone.fpn.inner_blocks.{i}.0", 256, inputs, 1, 1)
        layer(f"backbone.fpn.layer_blocks.{i}.0", 256, 256, 3, 3)
    for name in ("p6", "p7"):
        layer(f"backbone.fpn.extra_blocks.{name}", 256, 256, 3, 3)
    for part in ("classification_head", "regression_head"):
        for i in range(4):
            if norms:
                layer(f"head.{part}.conv.{3 * i}", 256, 256, 3, 3)
                layer(f"head.{part}.conv.{3 * i + 1}", 256)
            else:
                layer(f"head.{part}.conv.{i}.0", 256, 256, 3, 3)
    layer("head.classification_head.cls_logits", classes, 256, 3, 3)
    for name, outputs in boxes:
        layer(f"head.regression_head.{name}", outputs, 256, 3, 3)
    return wanted


CASES = {
    "retinanet": (RetinaNet, retinanet, one_stage_names(False, 9 * 91, (("bbox_reg", 36),)), 34_014_999),
    "fcos": (FCOS, fcos, one_stage_names(True, 91, (("bbox_reg", 4), ("bbox_ctrness", 1))), 32_269_600),
}


@pytest.mark.parametrize("name", CASES)
def test_public_names_shapes_and_counts(name: str, tmp_path: Path) -> None:
    """The published counts are of frozen batch norms; with their 53,120 scales and shifts they are `PARAMETERS`."""
    kind, file, wanted, published = CASES[name]
    (size,) = file.SIZES.values()
    with torch.device("meta"):
        model, fixed = kind(size), kind(replace(size, norm="frozen"))
    table = Lookup(file.TORCHVISION, "ours")
    ours = {table.find_own(k)[1]: tuple(v.shape) for k, v in fixed.state_dict().items()}
    assert ours == wanted
    assert sum(p.numel() for p in fixed.parameters()) == published
    assert sum(p.numel() for p in model.parameters()) == published + 53_120
    one, other = kind(file.TINY), kind(file.TINY)
    write_flat(one, tmp_path / "flat.pth", file.TORCHVISION)
    if name == "retinanet":  # older names are read, too
        saved = torch.load(tmp_path / "flat.pth", weights_only=True)
        for i in range(file.TINY.depth):
            saved = {k.replace(f"_head.conv.{i}.0.", f"_head.conv.{-2 * i}."): v for k, v in saved.items()}
        torch.save({k.replace("conv.-", "conv."): v for k, v in saved.items()}, tmp_path / "flat.pth")
    read_flat(other, tmp_path / "flat.pth", file.TORCHVISION)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def learn(model: Any, loss: Criterion, steps: int, rate: float) -> list[float]:
    """Steps on eight images of rectangles, four at a time."""
    x, truth = make_rectangles(8)
    rule, losses = torch.optim.AdamW(model.parameters(), rate), []
    for step in range(steps):
        rows = slice(0, 4) if step % 2 else slice(4, 8)
        value = loss(model.train()(x[rows]), part_of(truth, rows), torch.zeros(4, loss.chance)).total()
        rule.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        rule.step()
        losses.append(value.item())
    return losses


LEARN = {"stem": 12, "widths": (12, 24), "pyramid": 24}


@pytest.mark.system("focal-loss")
def test_retinanet_learns_a_few_scenes() -> None:
    check_learned(lambda: RetinaNet(replace(retinanet.TINY, **LEARN)), FocalBoxLoss(), 0.3)


def test_fcos_learns_a_few_scenes() -> None:
    check_learned(lambda: FCOS(replace(fcos.TINY, **LEARN)), FCOSLoss(), 0.5)  # the entropy of the centreness stays


def check_learned(make: Callable[[], Any], loss: Criterion, share: float, more: int = 2, steps: int = 100) -> None:
    torch.manual_seed(0)
    model = make()
    losses = learn(model, loss, steps, 5e-3 if steps > 100 else 4e-3)
    assert np.mean(losses[-10:]) < share * np.mean(losses[:4])
    x, truth = make_rectangles(8)
    with torch.no_grad():
        found = model.eval().decode(model(x))
    right, true, sure = count_hits(found, truth, 0.4)
    assert right == true
    assert sure <= true + more
    assert not (found.scores[0] > 0.4).any()
