"""SSD against the paper's numbers, its equations by hand, torchvision's names, and what it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.detection.multibox import MultiBoxLoss
from descend.models.ssd import SIZES, SSD, TINY, TORCHVISION
from descend.ops.detection.coding import RCNN, decode_offsets, encode_offsets
from descend.weights.flat import read_flat, write_flat
from descend.weights.labels import Labels
from descend.weights.rules import Lookup, rename_tensors
from tests.close import close
from tests.rectangles import count_hits, make_rectangles, part_of

SSD300 = SIZES["ssd300-vgg-16"]
THIN = replace(
    SSD300,
    widths=(4, 4, 6, 6, 8),
    hidden=10,
    squeeze=(6, 6, 6, 6),
    extras=(8, 6, 6, 6),
    labels=Labels(("a", "b", "c")),
)


@pytest.mark.system("ssd")
@pytest.mark.system("ssd", "default-boxes")
def test_the_default_boxes_of_the_paper() -> None:
    """8,732 of them: 38, 19, 10, 5, 3 and 1 cells a side with 4, 6, 6, 6, 4, 4 boxes; each one as the loops make it."""
    model = SSD(THIN)
    x = torch.zeros(1, 3, 300, 300)
    maps = model.pyramid(x)
    assert [m.shape[2] for m in maps] == [38, 19, 10, 5, 3, 1]
    anchors = model.anchors(maps, x)
    by_hand = []
    scales = [0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05]
    steps, ratios = [8, 16, 32, 64, 100, 300], [[2], [2, 3], [2, 3], [2, 3], [2], [2]]
    for k, cells in enumerate([38, 19, 10, 5, 3, 1]):
        for i in range(cells):
            for j in range(cells):
                shapes = [(scales[k],) * 2, (np.sqrt(scales[k] * scales[k + 1]),) * 2]
                for a in ratios[k]:
                    wide = (scales[k] * np.sqrt(a), scales[k] / np.sqrt(a))
                    shapes += [wide, wide[::-1]]
                for w, h in np.minimum(shapes, 1) * 300:
                    cx, cy = (j + 0.5) * steps[k], (i + 0.5) * steps[k]
                    by_hand.append([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])
    assert len(by_hand) == 8732
    close(anchors, torch.tensor(by_hand, dtype=torch.float32))
    assert model(x).logits.shape == (1, 8732, 4)


@pytest.mark.system("ssd", "default-boxes")
def test_any_image_and_the_coding() -> None:
    """Σ H W k boxes for any size, over the whole image; encoding and decoding are inverse."""
    model = SSD(TINY)
    for height, width in ((48, 64), (64, 48), (56, 40)):
        x = torch.zeros(1, 3, height, width)
        maps, anchors = model.pyramid(x), model.anchors(model.pyramid(x), x)
        assert len(anchors) == sum(m.shape[2] * m.shape[3] * TINY.boxes(i) for i, m in enumerate(maps))
        middle = (anchors[:, :2] + anchors[:, 2:]) / 2
        close(middle.amax(dim=0) + middle.amin(dim=0), torch.tensor([float(width), float(height)]))
    boxes = torch.tensor([[3.0, 4.0, 30.0, 22.0]]).expand(len(anchors), 4)
    close(decode_offsets(encode_offsets(boxes, anchors, RCNN), anchors, RCNN), boxes)


def conv(x: Tensor, w: dict[str, Tensor], name: str, stride: int = 1, padding: int = 1, dilation: int = 1) -> Tensor:
    return F.relu(F.conv2d(x, w[f"{name}.weight"], w[f"{name}.bias"], stride, padding, dilation))


@pytest.mark.system("ssd", "public-layout")
def test_the_forward_by_hand() -> None:
    """From tensors under the public names, layer by layer."""
    torch.manual_seed(0)
    model = SSD(THIN).double().eval()
    with torch.no_grad():
        model.length.uniform_(1, 3)
        w = rename_tensors(model.state_dict(), TORCHVISION)
        x = torch.randn(1, 3, 300, 300, dtype=torch.float64)
        found, y = model(x), x
        for block in ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21)):
            if block[0]:
                y = F.max_pool2d(y, 2, ceil_mode=block[0] == 17)
            for i in block:
                y = conv(y, w, f"backbone.features.{i}")
        length = y.square().sum(dim=1, keepdim=True).sqrt().clamp_min(1e-12)
        maps = [y / length * w["backbone.scale_weight"][:, None, None]]
        y = F.max_pool2d(y, 2)
        for i in (1, 3, 5):
            y = conv(y, w, f"backbone.extra.0.{i}")
        y = conv(F.max_pool2d(y, 3, 1, 1), w, "backbone.extra.0.7.1", 1, 6, 6)
        maps.append(conv(y, w, "backbone.extra.0.7.3", 1, 0))
        for i, (stride, padding) in enumerate(((2, 1), (2, 1), (1, 0), (1, 0)), 1):
            y = conv(maps[-1], w, f"backbone.extra.{i}.0", 1, 0)
            maps.append(conv(y, w, f"backbone.extra.{i}.2", stride, padding))
        for ours, part, numbers in ((found.logits, "classification", 4), (found.offsets, "regression", 4)):
            rows = []
            for i, m in enumerate(maps):
                p = f"head.{part}_head.module_list.{i}"
                z = F.conv2d(m, w[f"{p}.weight"], w[f"{p}.bias"], padding=1)[0]
                z = z.view(-1, numbers, *z.shape[1:])
                rows += [z[a, :, r, c] for r in range(m.shape[2]) for c in range(m.shape[3]) for a in range(len(z))]
            close(ours[0], torch.stack(rows))


@pytest.mark.system("ssd", "public-layout")
def test_the_public_names_shapes_and_counts(tmp_path: Path) -> None:
    wanted: dict[str, tuple[int, ...]] = {"backbone.scale_weight": (512,)}

    def layer(name: str, *shape: int) -> None:
        wanted.update({f"{name}.weight": shape, f"{name}.bias": shape[:1]})

    widths = {0: 64, 2: 64, 5: 128, 7: 128, 10: 256, 12: 256, 14: 256, 17: 512, 19: 512, 21: 512}
    for i, before in zip(widths, (3, *widths.values()), strict=False):
        layer(f"backbone.features.{i}", widths[i], before, 3, 3)
    for i in (1, 3, 5):
        layer(f"backbone.extra.0.{i}", 512, 512, 3, 3)
    layer("backbone.extra.0.7.1", 1024, 512, 3, 3)
    layer("backbone.extra.0.7.3", 1024, 1024, 1, 1)
    for i, (a, b, c) in enumerate(((1024, 256, 512), (512, 128, 256), (256, 128, 256), (256, 128, 256)), 1):
        layer(f"backbone.extra.{i}.0", b, a, 1, 1)
        layer(f"backbone.extra.{i}.2", c, b, 3, 3)
    for i, (d, k) in enumerate(((512, 4), (1024, 6), (512, 6), (256, 6), (256, 4), (256, 4))):
        layer(f"head.classification_head.module_list.{i}", 91 * k, d, 3, 3)
        layer(f"head.regression_head.module_list.{i}", 4 * k, d, 3, 3)
    with torch.device("meta"):
        model = SSD(SSD300)
    table = Lookup(TORCHVISION, "ours")
    assert {table.find_own(k)[1]: tuple(v.shape) for k, v in model.state_dict().items()} == wanted
    assert sum(p.numel() for p in model.parameters()) == 35_641_826
    one, other = SSD(THIN), SSD(THIN)
    write_flat(one, tmp_path / "ssd.pth", TORCHVISION)
    read_flat(other, tmp_path / "ssd.pth", TORCHVISION)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    with pytest.raises(Mistake, match="classification_head"):
        read_flat(SSD(replace(THIN, labels=Labels(("a",)))), tmp_path / "ssd.pth", TORCHVISION)


@pytest.mark.system("ssd", "training")
def test_it_learns_a_few_scenes() -> None:
    """In seconds: every object with its class, and nothing in the empty image."""
    torch.manual_seed(0)
    model = SSD(replace(TINY, widths=(8, 16, 24, 24), hidden=32, squeeze=(16, 16), extras=(24, 24), norm="batch"))
    x, truth = make_rectangles(8)
    rule, loss = torch.optim.AdamW(model.parameters(), 5e-3), MultiBoxLoss()
    losses = []
    for step in range(120):
        rows = slice(0, 4) if step % 2 else slice(4, 8)
        value = loss(model.train()(x[rows]), part_of(truth, rows), torch.zeros(4, 0)).total()
        rule.zero_grad()
        value.backward()
        rule.step()
        losses.append(value.item())
    assert np.mean(losses[-10:]) < 0.2 * np.mean(losses[:4])
    with torch.no_grad():
        found = model.eval().decode(model(x))
    right, true, sure = count_hits(found, truth)
    assert right == true
    assert sure <= true + 1
    assert not (found.scores[0] > 0.5).any()


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="5 scales"):
        replace(TINY, scales=(0.1, 0.2))
    with pytest.raises(ValueError, match="norm 'layer'"):
        replace(TINY, norm="layer")
    with pytest.raises(ValueError, match="extra layer"):
        replace(TINY, strides=(2,))
    with pytest.raises(ValueError, match="as many"):
        replace(TINY, convs=(1, 1))
