"""Stand-ins of the public sets: their shapes, labels, boxes, masks and files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.detection.objects import DetectionSplits
from descend.data.detection.stand_ins import EDGE, CocoLike, VocLike, draw_coco, draw_voc, number_coco
from descend.data.images.facts import digest_images
from descend.data.images.labelled import Splits
from descend.data.images.source import ImageSource
from descend.data.images.stand_ins import (
    CifarLike,
    ImagenetLike,
    MnistLike,
    draw_cifar,
    name_thousand,
    write_cifar,
    write_imagenet,
    write_mnist,
)
from descend.data.streams.arrays import Shuffled


def check_parts(splits: Splits, shape: tuple[int, ...], classes: int) -> None:
    """Shapes, label range, and parts that share no image."""
    parts = [splits.train, splits.valid, splits.test]
    for part in parts:
        assert tuple(part.x.shape[1:]) == shape
        assert 0 <= int(part.y.min()) <= int(part.y.max()) < classes
        assert 0 <= float(part.x[:3].min()) <= float(part.x[:3].max()) <= 1
    pixels = [set(digest_images(part.x[:])) for part in parts]
    assert not pixels[0] & pixels[2]
    assert not pixels[0] & pixels[1]
    assert len(splits.labels) == classes
    assert len(torch.cat([part.y for part in parts]).unique()) == classes


@pytest.mark.system("vision-datasets", "stand-ins")
def test_labelled_images_have_the_real_shapes() -> None:
    check_parts(MnistLike().read(), (1, 28, 28), 10)
    check_parts(CifarLike(count=200).read(), (3, 32, 32), 10)
    check_parts(ImagenetLike(each=3, size=16).read(), (3, 16, 16), 1000)
    assert ImagenetLike(each=3).size == 0  # 224 by default: drawn in the test of its files


@pytest.mark.system("vision-datasets", "stand-ins")
@pytest.mark.parametrize(
    ("source", "size", "classes", "most"),
    [(VocLike(count=8, masks=True), (375, 500), 20, 4), (CocoLike(count=4, masks=True), (480, 640), 80, 9)],
)
def test_objects_have_the_real_shapes(source: VocLike, size: tuple[int, int], classes: int, most: int) -> None:
    splits: DetectionSplits = source.read()
    assert len(splits.labels) == len(set(splits.labels)) == classes
    names = [name for part in (splits.train, splits.valid, splits.test) for name in part.names]
    assert len(set(names)) == len(names)
    for part in (splits.train, splits.valid, splits.test):
        assert part.pixels.load(0).shape == (*size, 3)
        assert (part.sizes == torch.tensor(size)).all()
        low, high = part.boxes[:, :2], part.boxes[:, 2:]
        assert (low >= 0).all()
        assert (high > low).all()
        assert (high <= torch.tensor(size[::-1])).all()
        assert (part.area <= (high - low).prod(1)).all()
        assert 0 <= int(part.classes.min()) <= int(part.classes.max()) < classes
        assert int(part.counts.max()) <= most
        assert part.instances is not None
        assert part.instances.load(0).shape == size


@pytest.mark.system("vision-datasets", "stand-ins")
def test_pixels_have_21_classes_and_edges() -> None:
    drawn = draw_voc(4)
    found = set(drawn.semantic.unique().tolist())
    assert found <= {*range(21), EDGE}
    assert {0, EDGE} < found
    inside = drawn.semantic[0][drawn.semantic[0] != EDGE]
    own = set(drawn.objects.classes[drawn.objects.owner == 0].add(1).tolist())
    assert set(inside.unique().tolist()) <= own | {0}
    numbers = number_coco()
    assert len(numbers) == 80
    assert (numbers[0], numbers[-1]) == (1, 90)
    assert 3 <= len(draw_coco(4).objects.classes) / 4 <= 7


@pytest.mark.system("vision-datasets", "folder-layout")
def test_the_files_of_the_real_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in their formats, read by the loader that reads the real ones."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("mnist", "cifar", "imagenet"):
        (tmp_path / name).mkdir()
    write_mnist(tmp_path / "mnist")
    mnist = ImageSource(str(tmp_path / "mnist")).read()
    check_parts(mnist, (1, 28, 28), 10)
    assert len(mnist.test.y) == 299
    write_cifar(tmp_path / "cifar", 20)
    cifar = ImageSource(str(tmp_path / "cifar")).read()
    check_parts(cifar, (3, 32, 32), 10)
    assert torch.equal((255 * cifar.test.x[:]).round().to(torch.uint8), draw_cifar(120)[0][100:])
    assert cifar.labels[:2] == ("warm circle", "cold circle")
    write_imagenet(tmp_path / "imagenet", classes=4, each=3)
    imagenet = ImageSource(str(tmp_path / "imagenet"), test=0.34).read()
    assert tuple(imagenet.train.x.shape[1:]) == (3, 224, 224)
    assert imagenet.labels == name_thousand()[:4]
    assert len(imagenet.valid.y) == 12  # its own val/


def test_batches_of_images_and_labels() -> None:
    train = MnistLike().read().train
    batch = next(Shuffled({"x": train.x[:64], "y": train.y[:64]}, 16))
    assert batch["x"].shape == (16, 1, 28, 28)
    assert batch["y"].shape == (16,)
