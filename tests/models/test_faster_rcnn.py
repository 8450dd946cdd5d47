"""Faster R-CNN against its equations by hand, torchvision's names and counts, and what it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.losses.detection.region_proposals import RegionProposalLoss
from descend.losses.detection.regions import RegionLoss, TwoStageLoss
from descend.models.faster_rcnn import SIZES, TINY, TORCHVISION, FasterRCNN
from descend.nn.detection.region_proposals import ProposalRule, propose
from descend.ops.boxes import pairwise_iou
from descend.ops.detection.anchors import make_anchors
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import Lookup, rename_tensors
from tests.close import close
from tests.ops.detection.test_roi import align_by_loops
from tests.rectangles import count_hits, make_rectangles, part_of

State = dict[str, Tensor]
SMALL = replace(
    TINY, widths=(8, 12, 12, 16), depths=(1, 2, 1, 1), block="bottleneck", sizes=(8.0, 12.0, 16.0, 24.0, 32.0)
)
PUBLIC = replace(SMALL, corner=0.0, shift=0.0)


def norm(x: Tensor, w: State, name: str) -> Tensor:
    scale = w[f"{name}.weight"] / (w[f"{name}.running_var"] + 1e-5).sqrt()
    return x * scale[:, None, None] + (w[f"{name}.bias"] - w[f"{name}.running_mean"] * scale)[:, None, None]


def body(x: Tensor, w: State) -> list[Tensor]:
    """The four stages of a residual network with bottlenecks, by the public names."""
    x = F.relu(norm(F.conv2d(x, w["conv1.weight"], stride=2, padding=3), w, "bn1"))
    x, found = F.max_pool2d(x, 3, 2, 1), []
    for s in range(1, 5):
        for b in range(sum(f"layer{s}.{i}.conv1.weight" in w for i in range(9))):
            p, stride = f"layer{s}.{b}", 2 if s > 1 and b == 0 else 1
            y = F.relu(norm(F.conv2d(x, w[f"{p}.conv1.weight"]), w, f"{p}.bn1"))
            y = F.relu(norm(F.conv2d(y, w[f"{p}.conv2.weight"], stride=stride, padding=1), w, f"{p}.bn2"))
            y = norm(F.conv2d(y, w[f"{p}.conv3.weight"]), w, f"{p}.bn3")
            if f"{p}.downsample.0.weight" in w:
                x = norm(F.conv2d(x, w[f"{p}.downsample.0.weight"], stride=stride), w, f"{p}.downsample.1")
            x = F.relu(x + y)
        found.append(x)
    return found


def under(w: State, name: str) -> State:
    """The tensors below a name."""
    return {k.removeprefix(f"{name}."): v for k, v in w.items() if k.startswith(f"{name}.")}


def top_down(maps: list[Tensor], w: State) -> list[Tensor]:
    found, last = [], None
    for i in reversed(range(len(maps))):
        side = F.conv2d(maps[i], w[f"inner_blocks.{i}.0.weight"], w[f"inner_blocks.{i}.0.bias"])
        last = side if last is None else side + F.interpolate(last, size=side.shape[2:])
        found.insert(0, F.conv2d(last, w[f"layer_blocks.{i}.0.weight"], w[f"layer_blocks.{i}.0.bias"], padding=1))
    return found


@pytest.mark.system("faster-r-cnn")
@pytest.mark.system("faster-r-cnn", "public-layout")
def test_the_forward_by_hand() -> None:
    """The public form, from tensors under the public names: anchors and regions in loops, with nothing of the model."""
    torch.manual_seed(0)
    model = FasterRCNN(PUBLIC).double().eval()
    for p in model.parameters():
        p.data += 0.05 * torch.randn_like(p)
    w = rename_tensors(model.state_dict(), TORCHVISION)
    x = torch.randn(1, 3, 64, 96, dtype=torch.float64)
    with torch.no_grad():
        found = model(x)
        maps = top_down(body(x, under(w, "backbone.body")), under(w, "backbone.fpn"))
        levels = [*maps, F.max_pool2d(maps[-1], 1, 2)]
        scores, offsets, anchors = [], [], []
        head = under(w, "rpn.head")
        for m, size in zip(levels, PUBLIC.sizes, strict=True):
            h = F.relu(F.conv2d(m, head["conv.0.0.weight"], head["conv.0.0.bias"], padding=1))
            o = F.conv2d(h, head["cls_logits.weight"], head["cls_logits.bias"])[0]
            t = F.conv2d(h, head["bbox_pred.weight"], head["bbox_pred.bias"])[0]
            stride = 64 // m.shape[2]
            for i in range(m.shape[2]):
                for j in range(m.shape[3]):
                    for k, ratio in enumerate(PUBLIC.ratios):
                        half = np.round([size / ratio**0.5 / 2, size * ratio**0.5 / 2])
                        middle = np.array([j * stride, i * stride])
                        anchors.append([*(middle - half), *(middle + half)])
                        scores.append(float(o[k, i, j]))
                        offsets.append(t[4 * k : 4 * k + 4, i, j].tolist())
        close(found.objectness[0], torch.tensor(scores, dtype=torch.float64))
        close(found.offsets[0], torch.tensor(offsets, dtype=torch.float64))
        close(found.anchors, torch.tensor(anchors, dtype=torch.float32))
        boxes = torch.tensor([[3.0, 5.0, 40.0, 33.0], [10.0, 8.0, 21.0, 15.0], [0.0, 0.0, 96.0, 64.0]]).double()
        got = found.refine(boxes, torch.zeros(3, dtype=torch.long))
        for r, box in enumerate(boxes.numpy()):
            side = ((box[2] - box[0]) * (box[3] - box[1])) ** 0.5
            level = int(min(max(np.floor(4 + np.log2(side / PUBLIC.canonical + 1e-6)), 2), 5))
            grid = align_by_loops(
                maps[level - 2].numpy(), box[None], np.array([0]), PUBLIC.grid, 2.0**-level, 2, 0.0, 1.0
            )
            f = torch.from_numpy(grid).flatten()
            for name in ("fc6", "fc7"):
                f = F.relu(w[f"roi_heads.box_head.{name}.weight"] @ f + w[f"roi_heads.box_head.{name}.bias"])
            last = under(w, "roi_heads.box_predictor")
            close(got.logits[r], last["cls_score.weight"] @ f + last["cls_score.bias"])
            close(got.offsets[r].flatten(), last["bbox_pred.weight"] @ f + last["bbox_pred.bias"])


def public_names() -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor of fasterrcnn_resnet50_fpn with 91 classes, whose batch norms are frozen."""
    found: dict[str, tuple[int, ...]] = {}

    def bn(name: str, width: int) -> None:
        found.update({f"{name}.{p}": (width,) for p in ("weight", "bias", "running_mean", "running_var")})

    def layer(name: str, *shape: int) -> None:
        found.update({f"{name}.weight": shape, f"{name}.bias": shape[:1]})

    found["backbone.body.conv1.weight"] = (64, 3, 7, 7)
    bn("backbone.body.bn1", 64)
    inputs = 64
    for s, (depth, inner) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True), 1):
        for b in range(depth):
            p = f"backbone.body.layer{s}.{b}"
            found[f"{p}.conv1.weight"], found[f"{p}.conv2.weight"] = (inner, inputs, 1, 1), (inner, inner, 3, 3)
            found[f"{p}.conv3.weight"] = (4 * inner, inner, 1, 1)
            for n, width in ((1, inner), (2, inner), (3, 4 * inner)):
                bn(f"{p}.bn{n}", width)
            if b == 0:
                found[f"{p}.downsample.0.weight"] = (4 * inner, inputs, 1, 1)
                bn(f"{p}.downsample.1", 4 * inner)
            inputs = 4 * inner
        layer(f"backbone.fpn.inner_blocks.{s - 1}.0", 256, inputs, 1, 1)
        layer(f"backbone.fpn.layer_blocks.{s - 1}.0", 256, 256, 3, 3)
    layer("rpn.head.conv.0.0", 256, 256, 3, 3)
    layer("rpn.head.cls_logits", 3, 256, 1, 1)
    layer("rpn.head.bbox_pred", 12, 256, 1, 1)
    layer("roi_heads.box_head.fc6", 1024, 256 * 7 * 7)
    layer("roi_heads.box_head.fc7", 1024, 1024)
    layer("roi_heads.box_predictor.cls_score", 91, 1024)
    layer("roi_heads.box_predictor.bbox_pred", 364, 1024)
    return found


@pytest.mark.system("faster-r-cnn", "public-layout", "shared")
def test_the_public_names_shapes_and_counts() -> None:
    """41,755,286 parameters where batch norms are frozen, and their scales and shifts make 41,808,406. The backbone is
    counted once: its two users have no other tensors of it."""
    with torch.device("meta"):
        model = FasterRCNN(SIZES["faster-rcnn-resnet-50"])
    ours = {k: tuple(v.shape) for k, v in rename_tensors_of(model).items()}
    assert {k: v for k, v in ours.items() if not k.endswith("num_batches_tracked")} == public_names()
    counted = sum(p.numel() for p in model.parameters())
    frozen = sum(p.numel() for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters())
    assert (counted, counted - frozen) == (41_808_406, 41_755_286)
    with torch.device("meta"):
        fixed = FasterRCNN(replace(SIZES["faster-rcnn-resnet-50"], norm="frozen"))
    assert sum(p.numel() for p in fixed.parameters()) == 41_755_286
    assert {theirs for _, theirs in map(Lookup(TORCHVISION, "ours").find_own, fixed.state_dict())} == set(
        public_names()
    )
    assert not [k for k in ours if "conv1.weight" in k and not k.startswith("backbone.body")]


def rename_tensors_of(model: FasterRCNN) -> dict[str, Tensor]:
    """Public names without copying: the model may be on the meta device."""
    table = Lookup(TORCHVISION, "ours")
    return {table.find_own(name)[1]: tensor for name, tensor in model.state_dict().items()}


@pytest.mark.system("faster-r-cnn", "public-layout")
@pytest.mark.parametrize("age", ["today", "published"])
def test_weights_both_ways(age: str, tmp_path: Path) -> None:
    """The published files have older names and no counts of batches; both are read, today's are written."""
    torch.manual_seed(0)
    one, other = FasterRCNN(PUBLIC).eval(), FasterRCNN(PUBLIC).eval()
    write_flat(one, tmp_path / "ours.pth", TORCHVISION)
    saved = torch.load(tmp_path / "ours.pth", weights_only=True)
    assert set(under(saved, "rpn.head")) == {
        f"{n}.{p}" for n in ("conv.0.0", "cls_logits", "bbox_pred") for p in ("weight", "bias")
    }
    if age == "published":
        saved = {k: v for k, v in saved.items() if not k.endswith("num_batches_tracked")}
        saved = {k.replace("_blocks.0.0", "_blocks.0").replace("conv.0.0", "conv"): v for k, v in saved.items()}
        for i in (1, 2, 3):
            saved = {k.replace(f"_blocks.{i}.0", f"_blocks.{i}"): v for k, v in saved.items()}
        torch.save(saved, tmp_path / "ours.pth")
    read_flat(other, tmp_path / "ours.pth", TORCHVISION)
    x = torch.randn(1, 3, 64, 64)
    assert torch.equal(one(x).objectness, other(x).objectness)
    with pytest.raises(Mistake, match="cls_score"):
        read_flat(FasterRCNN(replace(PUBLIC, labels=type(PUBLIC.labels)(("a",)))), tmp_path / "ours.pth", TORCHVISION)


@pytest.mark.system("region-proposal-network", "proposals")
def test_proposals_are_few_apart_and_inside() -> None:
    torch.manual_seed(0)
    model = FasterRCNN(replace(TINY, proposal_tau=0.5)).eval()
    with torch.no_grad():
        model.rpn.offsets.weight.normal_(std=0.5)
        model.rpn.objectness.weight.normal_(std=0.5)
        found = model(torch.randn(3, 3, 40, 56))
    assert found.proposals.shape[1] <= TINY.proposals
    for boxes, real in zip(found.proposals, found.real, strict=True):
        boxes = boxes[real]
        assert len(boxes)
        assert (boxes >= 0).all()
        assert (boxes[:, 2:] <= torch.tensor([56, 40])).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()


@pytest.mark.system("region-proposal-network", "proposals")
def test_one_level_is_the_list_of_the_best() -> None:
    """On one level, proposals are NMS of the decoded boxes, best first, as torch's own sort and a loop give them."""
    g = torch.Generator().manual_seed(0)
    anchors = make_anchors(4, 5, 8, 12)
    o, t = torch.randn(2, len(anchors), generator=g), 0.3 * torch.randn(2, len(anchors), 4, generator=g)
    found = propose(o, t, anchors, torch.zeros(len(anchors), dtype=torch.long), (32, 40), ProposalRule(60, 9, 0.4))
    for i in range(2):
        kept: list[Tensor] = []
        for a in o[i].argsort(descending=True)[:60].tolist():
            w, h = anchors[a, 2] - anchors[a, 0], anchors[a, 3] - anchors[a, 1]
            cx, cy = anchors[a, 0] + w / 2 + t[i, a, 0] * w, anchors[a, 1] + h / 2 + t[i, a, 1] * h
            w, h = w * t[i, a, 2].exp(), h * t[i, a, 3].exp()
            box = torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]).clamp_min(0)
            box = torch.minimum(box, torch.tensor([40.0, 32, 40, 32]))
            if not any(pairwise_iou(box[None], k[None]) > 0.4 for k in kept):
                kept.append(box)
        close(found.boxes[i][found.real[i]], torch.stack(kept[:9]))


LEARN = replace(TINY, stem=12, widths=(12, 24), pyramid=24, hidden=48, grid=4, sizes=(12.0, 20.0, 32.0), canonical=96.0)
LOSS = TwoStageLoss(RegionProposalLoss(anchors=64), RegionLoss(regions=24))


def train(model: FasterRCNN, steps: int, seed: int = 0) -> list[float]:
    x, truth = make_rectangles(8, seed=seed)
    rule = torch.optim.AdamW(model.parameters(), 4e-3)
    g = torch.Generator().manual_seed(seed)
    losses = []
    for step in range(steps):
        rows = slice(0, 4) if step % 2 else slice(4, 8)
        loss = LOSS(model.train()(x[rows]), part_of(truth, rows), torch.rand(4, 2, generator=g)).total()
        rule.zero_grad()
        loss.backward()
        rule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.system("faster-r-cnn", "joint")
@pytest.mark.system("region-proposal-network", "recall")
def test_both_stages_learn_a_few_scenes() -> None:
    """In seconds: every object is found with its class, nothing is seen in the empty image, and the recall of the
    proposals alone rises."""
    torch.manual_seed(0)
    model = FasterRCNN(LEARN)
    x, truth = make_rectangles(8)
    before = recall(model, x, truth)
    losses = train(model, 220)
    assert np.mean(losses[-10:]) < 0.25 * np.mean(losses[:4])
    with torch.no_grad():
        found = model.eval().decode(model(x))
    right, true, sure = count_hits(found, truth)
    assert right == true
    assert sure <= true + 1
    assert not (found.scores[0] > 0.5).any()
    assert recall(model, x, truth) > max(0.9, before)


def recall(model: FasterRCNN, x: Tensor, truth: Boxes, most: int = 5) -> float:
    """Share of the true boxes that one of the first proposals overlaps by a half."""
    with torch.no_grad():
        found = model.eval()(x)
    iou = pairwise_iou(truth.boxes, found.proposals[:, :most])
    real = truth.classes >= 0
    return float((iou.amax(dim=2) >= 0.5)[real].float().mean())


def make_random(images: int, count: int, seed: int) -> Tensor:
    """Boxes anywhere in an image of 48 pixels, of the sizes that objects have."""
    g = torch.Generator().manual_seed(seed)
    size = 12 + 12 * torch.rand(images, count, 2, generator=g)
    low = torch.rand(images, count, 2, generator=g) * (48 - size)
    return torch.cat([low, low + size], dim=-1)


@pytest.mark.system("faster-r-cnn", "learned-proposals")
def test_learned_proposals_against_random_ones() -> None:
    """As many regions of an image: the second stage, trained with random ones, misses objects that none of them
    reaches."""
    x, truth = make_rectangles(8)
    hits = {}
    for kind in ("learned", "random"):
        torch.manual_seed(0)
        model = FasterRCNN(replace(LEARN, proposals=8))
        rule, g = torch.optim.AdamW(model.parameters(), 4e-3), torch.Generator().manual_seed(0)
        for step in range(100):
            rows = slice(0, 4) if step % 2 else slice(4, 8)
            found = model.train()(x[rows])
            if kind == "random":
                boxes = make_random(4, 8, step)
                found = found._replace(proposals=boxes, real=torch.ones(4, 8, dtype=torch.bool))
            loss = LOSS(found, part_of(truth, rows), torch.rand(4, 2, generator=g))
            rule.zero_grad()
            loss.total().backward()
            rule.step()
        with torch.no_grad():
            found = model.eval()(x)
            if kind == "random":
                found = found._replace(proposals=make_random(8, 8, 1000), real=torch.ones(8, 8, dtype=torch.bool))
            hits[kind] = count_hits(model.decode(found), truth)[0]
    assert hits["learned"] >= int((truth.classes >= 0).sum()) - 1
    assert hits["random"] <= hits["learned"] - 2


def test_one_image_or_many() -> None:
    torch.manual_seed(0)
    model = FasterRCNN(TINY).eval()
    x = torch.randn(3, 3, 32, 48)
    with torch.no_grad():
        many = model.decode(model(x))
        one = model.decode(model(x[1:2]))
    n = one.classes.shape[1]
    close(many.boxes[1, :n], one.boxes[0])
    assert (many.classes[1, n:] == -1).all()
