"""R-CNN and Fast R-CNN: how often the network runs, that both say the same where they can, and what they learn."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from descend.contracts import Boxes
from descend.losses.detection.regions import RegionLoss
from descend.models import fast_rcnn, rcnn
from descend.models._regions import SearchedDetector
from descend.models.fast_rcnn import FastRCNN
from descend.models.rcnn import RCNN
from descend.ops.boxes import pairwise_iou
from tests.close import close
from tests.rectangles import count_hits, make_rectangles, part_of

LEARN = {"stem": 12, "widths": (12, 24), "hidden": 48, "grid": 4, "scales": (100.0,)}


def make_regions(images: int, count: int, side: int = 64, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    low = torch.rand(images, count, 2, generator=g) * side / 2
    return torch.cat([low, low + 8 + torch.rand(images, count, 2, generator=g) * (side / 2 - 8)], dim=-1)


class Seen(nn.Module):
    """Counts the images that pass."""

    def __init__(self, backbone: nn.Module):
        super().__init__()
        self.backbone, self.count = backbone, 0

    def maps(self, x: Tensor) -> Tensor:
        self.count += len(x)
        return self.backbone.maps(x)


@pytest.mark.system("r-cnn")
@pytest.mark.system("r-cnn", "passes")
@pytest.mark.system("fast-r-cnn", "once")
def test_a_pass_for_each_region_or_one_for_the_image() -> None:
    torch.manual_seed(0)
    x, regions = torch.rand(2, 3, 64, 64), make_regions(2, 30)
    for kind, file, passes in ((RCNN, rcnn, 60), (FastRCNN, fast_rcnn, 2)):
        model: SearchedDetector = kind(file.TINY).eval()
        model.backbone = Seen(model.backbone)
        with torch.no_grad():
            model.decode(model(x, regions))
        assert model.backbone.count == passes


@pytest.mark.system("r-cnn", "passes")
def test_the_warp() -> None:
    """Inside, a region is its crop resized bilinearly; at its border it reads the image beyond it."""
    torch.manual_seed(0)
    model = RCNN(rcnn.TINY)
    x = torch.rand(1, 3, 64, 96)
    crop = model.warp(x, torch.tensor([[8.0, 12.0, 56.0, 36.0]]), torch.tensor([0]))
    assert crop.shape == (1, 3, 24, 24)
    resized = F.interpolate(x[:, :, 12:36, 8:56], (24, 24), mode="bilinear")
    close(crop[..., 1:-1, 1:-1], resized[..., 1:-1, 1:-1])


class Patches(nn.Module):
    """Maps whose cells see their own 8 × 8 pixels alone: crops and maps may be cut in any order."""

    def __init__(self, width: int):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Conv2d(8, width, 2, 2))

    def maps(self, x: Tensor) -> Tensor:
        return self.convs(x)


@pytest.mark.system("fast-r-cnn", "same-head")
@pytest.mark.system("fast-r-cnn", "once")
def test_shared_features_say_what_crops_say() -> None:
    """Where a region is as large as its grid and the maps see no neighbours, both detectors are one function."""
    torch.manual_seed(0)
    slow, fast = RCNN(rcnn.TINY).double().eval(), FastRCNN(fast_rcnn.TINY).double().eval()
    slow.backbone = fast.backbone = Patches(12).double()
    fast.head = slow.head
    x = torch.rand(2, 3, 48, 64, dtype=torch.float64)
    boxes = torch.tensor([[8.0, 16.0, 32.0, 40.0], [40.0, 0.0, 64.0, 24.0], [16.0, 24.0, 40.0, 48.0]]).double()
    owner = torch.tensor([0, 1, 1])
    regions = boxes[None].expand(2, -1, -1)
    close(slow.warp(x, boxes[:1], owner[:1])[0], x[0, :, 16:40, 8:32])
    for a, b in zip(fast(x, regions).refine(boxes, owner), slow(x, regions).refine(boxes, owner), strict=True):
        close(a, b)


@pytest.mark.system("r-cnn", "cost")
@pytest.mark.system("fast-r-cnn", "once")
def test_what_sharing_saves() -> None:
    """200 regions of one image of 96 pixels: multiplications, and seconds."""
    torch.manual_seed(0)
    x, regions = torch.rand(1, 3, 96, 96), make_regions(1, 200, 96)
    work, seconds = [], []
    for model in (RCNN(replace(rcnn.TINY, **LEARN)).eval(), FastRCNN(replace(fast_rcnn.TINY, **LEARN)).eval()):
        with torch.no_grad():
            with FlopCounterMode(display=False) as counter:
                model.decode(model(x, regions))
            times = []
            for _ in range(3):
                start = time.perf_counter()
                model.decode(model(x, regions))
                times.append(time.perf_counter() - start)
        work.append(counter.get_total_flops())
        seconds.append(min(times))
    assert work[0] > 4 * work[1]
    assert seconds[0] > seconds[1]  # how many times is measured on a quiet machine: benchmarks


def search_all(model: SearchedDetector, x: Tensor) -> Tensor:
    with torch.no_grad():
        return model.search(x)


def train(model: SearchedDetector, x: Tensor, truth: Boxes, regions: Tensor, steps: int) -> list[float]:
    rule, g = torch.optim.AdamW(model.parameters(), 4e-3), torch.Generator().manual_seed(0)
    loss, losses = RegionLoss(regions=32, share=0.5), []
    for step in range(steps):
        rows = slice(0, 4) if step % 2 else slice(4, 8)
        found = model.train()(x[rows], regions[rows])
        value = loss(found, part_of(truth, rows), torch.rand(4, 1, generator=g)).total()
        rule.zero_grad()
        value.backward()
        rule.step()
        losses.append(value.item())
    return losses


@pytest.mark.system("r-cnn", "pipeline", "training")
@pytest.mark.system("fast-r-cnn", "training")
@pytest.mark.parametrize(("kind", "file"), [(RCNN, rcnn), (FastRCNN, fast_rcnn)], ids=["R-CNN", "Fast R-CNN"])
def test_from_proposals_to_objects(kind: type[SearchedDetector], file: object) -> None:
    """Selective Search, features, class and box, NMS: the objects of a few scenes, in seconds."""
    torch.manual_seed(0)
    model = kind(replace(file.TINY, **LEARN))
    x, truth = make_rectangles(8)
    regions = search_all(model, x)
    reached = pairwise_iou(truth.boxes, regions).amax(dim=2)[truth.classes >= 0]
    assert (reached >= 0.5).all()
    losses = train(model, x, truth, regions, 60)
    assert np.mean(losses[-10:]) < 0.4 * np.mean(losses[:4])
    with torch.no_grad():
        found = model.eval().decode(model(x))  # searched again
    right, true, sure = count_hits(found, truth)
    assert right == true
    assert sure <= true + 2
    assert not (found.scores[0] > 0.5).any()
