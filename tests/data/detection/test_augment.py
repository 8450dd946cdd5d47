"""Pixels, boxes and masks move together; randomness is a function of seed and place."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.detection.augment import CHANCE, ObjectAugment, change_colours, sample_objects
from descend.data.detection.canvases import FramedObjects
from descend.data.detection.framing import Letterbox
from descend.data.detection.mosaic import mosaic
from descend.data.detection.objects import DetectionSplits, StackedPixels
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.detection.source import DetectionSource
from descend.data.detection.stream import Changes, HeldOutObjects, shuffle_objects
from descend.ops.boxes import pairwise_iou
from tests.close import close

ALL = ObjectAugment(mosaic=0.5, close=0.5, flip=0.5, scale=0.4, shift=0.1, hue=0.1, saturation=0.4, brightness=0.3)


@lru_cache
def splits() -> DetectionSplits:
    return DetectionSource(scenes=60, size=64, masks=True).read()


@lru_cache
def framed(side: int = 64) -> FramedObjects:
    prepare = DetectionPreprocessing.fit(splits().train, Letterbox(side), splits().labels)
    return FramedObjects(splits().train, prepare, 1.0)


def draw(b: int, seed: int = 0) -> Tensor:
    return 2 * torch.rand(b, CHANCE, generator=torch.Generator().manual_seed(seed)) - 1


def extent(mask: Tensor) -> Tensor:
    """The box of the pixels of a mask (h, w)."""
    rows, columns = mask.any(1).nonzero(), mask.any(0).nonzero()
    return torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]).float()


def edges_apart(box: Tensor, others: Tensor) -> bool:
    """Whether no other box touches this one, which may have been cut where two images of a mosaic meet."""
    return bool((pairwise_iou(box[None], others)[0] > 0).sum() == 1)


@pytest.mark.system("mosaic-augmentation")
@pytest.mark.system("mosaic-augmentation", "quadrants")
def test_each_quadrant_is_its_source_crop() -> None:
    """Pixel for pixel, about a centre that is anywhere; boxes shifted by the same and clipped."""
    g = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (3, 4, 3, 20, 30), generator=g)
    centre = torch.tensor([[10, 7], [29, 1], [15, 10]])
    low = torch.rand(24, 2, generator=g) * torch.tensor([15.0, 10])
    boxes = torch.cat([low, low + torch.rand(24, 2, generator=g) * torch.tensor([15.0, 10])], 1)
    which = torch.arange(12).repeat_interleave(2)
    images, moved = mosaic(x, boxes, which, centre)
    assert images.shape == (3, 3, 20, 30)
    for i, (cx, cy) in enumerate(centre.tolist()):
        assert torch.equal(images[i, :, :cy, :cx], x[i, 0, :, 20 - cy :, 30 - cx :])
        assert torch.equal(images[i, :, :cy, cx:], x[i, 1, :, 20 - cy :, : 30 - cx])
        assert torch.equal(images[i, :, cy:, :cx], x[i, 2, :, : 20 - cy, 30 - cx :])
        assert torch.equal(images[i, :, cy:, cx:], x[i, 3, :, : 20 - cy, : 30 - cx])
    for box, new, k in zip(boxes, moved, which.tolist(), strict=True):
        cx, cy = centre[k // 4].tolist()
        dx, dy = (cx - 30 if k % 2 == 0 else cx), (cy - 20 if k % 4 < 2 else cy)
        expected = (box + torch.tensor([dx, dy, dx, dy])).clamp(min=0)
        close(new, torch.minimum(expected, torch.tensor([30.0, 20, 30, 20])))


@pytest.mark.system("mosaic-augmentation", "boxes-within")
@pytest.mark.parametrize("side", [64, 96])
def test_boxes_are_the_extent_of_the_moved_masks(side: int) -> None:
    """The instance masks go through the warp as pixels do: an object's box is the extent of its pixels, to the rounding
    of a pixel, and lies within the canvas. One cut at an edge holds its pixels: a circle's rest is narrower."""
    found = sample_objects(framed(), ALL, torch.arange(40), draw(40), torch.zeros(40, dtype=torch.bool), side)
    assert found.masks is not None
    assert (found.boxes >= 0).all()
    assert (found.boxes <= side).all()
    counts = torch.bincount(found.owner, minlength=40)
    assert counts.max() > 4  # mosaics
    number = torch.arange(len(found.owner)) - (counts.cumsum(0) - counts)[found.owner] + 1
    checked = 0
    for box, image, k in zip(found.boxes, found.owner.tolist(), number.tolist(), strict=True):
        mask = found.masks[image] == k
        if not mask.any():
            continue
        apart, near = extent(mask) - box, 1.5 * side / 64 + 1
        assert (apart * torch.tensor([1, 1, -1, -1]) >= -near).all()
        if box.min() > 0.5 and box.max() < side - 0.5 and edges_apart(box, found.boxes[found.owner == image]):
            assert apart.abs().max() <= near
            checked += 1
    assert checked > 30
    assert found.masks.max() == counts.max()


def test_pixels_follow_the_masks() -> None:
    """An object's colour is that of its pixels after the warp as before."""
    plain = ObjectAugment(mosaic=1.0, close=0.0, flip=0.5)
    u = draw(12, 3)
    found = sample_objects(framed(), plain, torch.arange(12), u, torch.zeros(12, dtype=torch.bool), 64)
    pixels, maps, objects = framed().images.kept, framed().instances, framed().objects
    assert pixels is not None
    assert maps is not None
    assert maps.kept is not None
    assert found.masks is not None
    counts = torch.bincount(found.owner, minlength=12)
    number = torch.arange(len(found.owner)) - (counts.cumsum(0) - counts)[found.owner] + 1
    for item, image, k in zip(found.items.tolist(), found.owner.tolist(), number.tolist(), strict=True):
        mask = found.masks[image] == k
        if mask.sum() < 60:
            continue
        row = int(objects.owner[item])
        before = pixels[row][maps.kept[row] == objects.instance_numbers[item]].float().mean(0) / 255
        after = found.x[image][:, mask].mean(1)
        assert (before - after).abs().max() < 0.12


def test_a_flip_mirrors_and_twice_is_nothing() -> None:
    flip = ObjectAugment(flip=1.0)
    rows, never = torch.arange(6), torch.zeros(6, dtype=torch.bool)
    found = sample_objects(framed(), flip, rows, draw(6), never, 64)
    kept = framed().images.kept
    assert kept is not None
    close(found.x.flip(3), kept[:6].movedim(3, 1).float() / 255)
    close(64 - found.boxes[:, [2, 0]], framed().objects.boxes[found.items][:, [0, 2]].float())


def test_colours_keep_grey_and_can_turn() -> None:
    x = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.2
    grey = x.mean(1, keepdim=True).expand(-1, 3, -1, -1)
    turned = ObjectAugment(hue=1.0, saturation=0.9)
    close(change_colours(grey, turned, torch.tensor([[0.7, 0.5, 0.0, 0]] * 2)), grey)
    third = change_colours(x, turned, torch.tensor([[2 / 3, 0.0, 0.0, 0]] * 2))  # a third of the circle: r -> g -> b
    close(third, x.roll(1, dims=1))
    brighter = change_colours(x, ObjectAugment(brightness=0.5), torch.tensor([[0.0, 0, 0.4, 0]] * 2))
    close(brighter, (1.2 * x).clamp(max=1))


def stream_of(micro: int, changes: Changes, where: tuple[int, int] = (0, 1), workers: int = 0):  # type: ignore[no-untyped-def]
    return shuffle_objects(splits().train, framed().prepare, micro, 5, where, workers=workers, changes=changes)


def same(a: Batch, b: Batch) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.system("mosaic-augmentation", "exact-resume")
@pytest.mark.parametrize("workers", [0, 1])
def test_mosaics_are_exact_under_resume_micro_batches_and_processes(workers: int) -> None:
    changes = Changes(ALL, 8, 20)
    stream = stream_of(8, changes, workers=workers)
    next(stream)
    state = stream.state_dict()
    batch, after = next(stream), next(stream)
    again = stream_of(8, changes)
    again.load_state_dict(state)
    assert same(next(again), batch)
    assert same(next(again), after)
    small = stream_of(4, changes)
    small.load_state_dict(state)
    halves = [next(small), next(small)]
    ranks = []
    for rank in (0, 1):
        one = stream_of(8, changes, (rank, 2))
        one.load_state_dict(state)
        ranks.append(next(one))
    for parts in (halves, ranks):
        assert torch.equal(torch.cat([part["x"] for part in parts]), batch["x"])
        for part, classes, boxes in zip(parts, batch["classes"].split(4), batch["boxes"].split(4), strict=True):
            most = part["classes"].shape[1]
            assert torch.equal(part["classes"], classes[:, :most])
            assert torch.equal(part["boxes"], boxes[:, :most])


@pytest.mark.system("mosaic-augmentation", "boxes-within")
def test_images_that_do_not_fill_their_ground_meet_in_the_middle() -> None:
    """Wide images: without the ground between them, boxes and masks still agree."""
    wide = replace(
        splits().train,
        pixels=StackedPixels(splits().train.pixels.x[:, 16:48].contiguous()),  # type: ignore[attr-defined]
        instances=StackedPixels(splits().train.instances.x[:, 16:48].contiguous()),  # type: ignore[union-attr]
        sizes=torch.tensor([[32, 64]]).repeat(len(splits().train), 1),
        boxes=(splits().train.boxes - torch.tensor([0.0, 16, 0, 16]))
        .clamp(min=0)
        .minimum(torch.tensor([64.0, 32] * 2)),
    )
    prepare = DetectionPreprocessing(Letterbox(64), (1.0, 0.0, 1.0))
    found = sample_objects(
        FramedObjects(wide, prepare, 1.0),
        ObjectAugment(mosaic=1.0, close=0.0),
        torch.arange(30),
        draw(30),
        torch.zeros(30, dtype=torch.bool),
        64,
    )
    ground = (found.x - torch.tensor([1.0, 0, 1])[:, None, None]).abs().amax(1) < 0.01
    rows = ground.all(dim=2)
    assert 0 < rows.float().mean() <= 0.5  # bands above and below, where an image ends
    middle = (~rows).float()
    assert ((middle[:, 1:] - middle[:, :-1]).abs().sum(1) <= 2).all()  # one band of images, nothing between them
    assert found.masks is not None
    counts = torch.bincount(found.owner, minlength=30)
    number = torch.arange(len(found.owner)) - (counts.cumsum(0) - counts)[found.owner] + 1
    for box, image, k in zip(found.boxes, found.owner.tolist(), number.tolist(), strict=True):
        mask = found.masks[image] == k
        if mask.any():
            assert ((extent(mask) - box) * torch.tensor([1, 1, -1, -1]) >= -1.5).all()


@pytest.mark.system("mosaic-augmentation", "ends")
def test_the_mosaic_ends_before_the_run_does() -> None:
    always = ObjectAugment(mosaic=1.0, close=0.25)
    stream = stream_of(6, Changes(always, 6, 8))
    most = [int((next(stream)["classes"] >= 0).sum(1).max()) for _ in range(8)]
    assert sum(m > 4 for m in most[:6]) >= 4
    assert max(most[6:]) <= 4


def test_multi_scale_changes_the_side_of_whole_steps() -> None:
    changes = Changes(ObjectAugment(multi_scale=0.5), 8, 20)
    whole, halves = stream_of(8, changes), stream_of(4, changes)
    sides = [next(whole)["x"].shape[-1] for _ in range(12)]
    assert set(sides) == {32, 64, 96}
    assert [next(halves)["x"].shape[-1] for _ in range(24)] == [s for s in sides for _ in (0, 1)]


def test_nothing_asked_is_nothing_changed() -> None:
    stream = stream_of(42, Changes(ObjectAugment(), 42, 1))
    held = next(iter(HeldOutObjects(splits().train, framed().prepare)))
    batch = next(stream)
    order = batch["ids"].argsort()
    assert torch.equal(batch["x"][order], held["x"])
    assert torch.equal(batch["boxes"][order], held["boxes"])
    assert torch.equal(batch["masks"][order], held["masks"])
