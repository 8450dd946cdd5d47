"""Scenes named by colour and shape: the pairs of the test part are nowhere else, their words are."""

from __future__ import annotations

import pytest
import torch

from descend.data.detection.colour_shapes import ColourShapes, name_pairs, pair_up
from descend.data.toys.scenes import COLOURS, RGB, SHAPES
from descend.errors import Mistake


@pytest.mark.system("open-vocabulary-detection", "kept-apart")
def test_pairs_kept_apart() -> None:
    """12 of 48; every word of them is seen in training, none of the pairs is, and the test part has nothing else."""
    splits = ColourShapes(scenes=120, size=64).read()
    assert len(splits.labels) == len(set(splits.labels)) == 48
    seen, apart = splits.labels[:36], splits.labels[36:]
    assert not set(seen) & set(apart)
    assert {word for name in apart for word in name.split()} <= {word for name in seen for word in name.split()}
    for part in (splits.train, splits.valid):
        assert int(part.classes.max()) < 36
    assert int(splits.test.classes.min()) >= 36
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (84, 18, 18)
    assert ColourShapes().apart == 12
    assert ColourShapes(path="somewhere").apart == 0


@pytest.mark.system("open-vocabulary-detection", "kept-apart")
def test_an_object_has_the_colour_of_its_name() -> None:
    """The middle of each large box is nearest to the colour of its name; shapes with a hole are left out."""
    splits = ColourShapes(scenes=60, size=96).read()
    right = total = 0
    for objects in (splits.train, splits.test):
        for box, owner, k in zip(objects.boxes.long().tolist(), objects.owner, objects.classes, strict=True):
            colour, shape = splits.labels[int(k)].split()
            x0, y0, x1, y1 = box
            if shape == "ring" or min(x1 - x0, y1 - y0) < 20:
                continue
            middle = torch.as_tensor(objects.pixels.load(int(owner)).copy()).float() / 255
            patch = middle[(y0 + y1) // 2 - 1 : (y0 + y1) // 2 + 2, (x0 + x1) // 2 - 1 : (x0 + x1) // 2 + 2]
            distance = (torch.tensor(list(RGB.values())) - patch.mean(dim=(0, 1))).norm(dim=1)
            right, total = right + (COLOURS[int(distance.argmin())] == colour), total + 1
    assert right / total > 0.8  # another object may lie in front
    assert total > 30


def test_the_same_scenes_every_time() -> None:
    a, b = (ColourShapes(scenes=30, size=64).read() for _ in range(2))
    assert torch.equal(a.test.boxes, b.test.boxes)
    assert name_pairs([(0, 0)]) == (f"{COLOURS[0]} {SHAPES[0]}",)
    assert sum(map(len, pair_up())) == len(SHAPES) * len(COLOURS)
    with pytest.raises(Mistake, match="too few for three parts"):
        ColourShapes(scenes=2).read()
