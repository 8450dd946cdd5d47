"""Generated scenes: exact masks and boxes, occlusion, seeds, areas of the shapes."""

from __future__ import annotations

import math

import pytest
import torch

from descend.data.streams.arrays import generator
from descend.data.toys.outlines import OUTLINES
from descend.data.toys.scenes import COLOURS, RGB, SHAPES, Scenes, distances, one_object, scenes, truth
from descend.errors import Mistake

AREAS = {
    "circle": math.pi,
    "square": 2.0,
    "triangle": 3 * math.sqrt(3) / 4,
    "star": 5 * 0.45 * math.sin(math.pi / 5),
    "cross": 2 * (1.9 * 0.624) - 0.624**2,
    "ring": math.pi * (1 - 0.45**2),
}


@pytest.fixture(scope="module")
def made() -> Scenes:
    return scenes(60, 48, generator(0), objects=(0, 4))


def test_shapes_and_types(made: Scenes) -> None:
    assert made.x.shape == (60, 3, 48, 48)
    assert made.mask.shape == (60, 48, 48)
    assert made.mask.dtype == torch.long
    assert made.box.shape == (60, 4, 4)
    assert made.shape.shape == made.colour.shape == made.present.shape == (60, 4)
    assert 0 <= made.x.min() < 0.3 < 0.7 < made.x.max() <= 1
    counts = made.present.sum(1)
    assert {0, 4} <= set(counts.tolist())


def test_the_same_seed_makes_the_same_scenes(made: Scenes) -> None:
    again, other = scenes(60, 48, generator(0), objects=(0, 4)), scenes(60, 48, generator(1), objects=(0, 4))
    assert torch.equal(made.x, again.x)
    assert torch.equal(made.mask, again.mask)
    assert not torch.equal(made.mask, other.mask)


def test_a_seed_makes_the_scenes_that_figures_were_recorded_with() -> None:
    """Ground, light and objects, down to the coarse texture: recipes on generated scenes depend on every draw."""
    found = scenes(4, 24, generator(5))
    assert int(found.mask.sum()) == 1192
    assert float(found.x.double().mean()) == pytest.approx(3508.29074 / (4 * 3 * 24 * 24), rel=1e-6)


def test_boxes_hold_exactly_what_is_visible() -> None:
    """Of a scene whose shapes all differ: the box of an object is the extent of its class in the mask."""
    found = scenes(80, 40, generator(2), objects=(1, 3))
    seen = 0
    for i in range(80):
        there = found.shape[i][found.present[i]]
        if len(there.unique()) < len(there):
            continue
        assert set(found.mask[i].unique().tolist()) - {0} == set((there + 1).tolist())
        for o in found.present[i].nonzero().flatten().tolist():
            y, x = (found.mask[i] == found.shape[i, o] + 1).nonzero(as_tuple=True)
            assert found.box[i, o].tolist() == [x.min(), y.min(), x.max() + 1, y.max() + 1]
            seen += 1
    assert seen > 60


def test_what_is_absent_is_marked(made: Scenes) -> None:
    absent = ~made.present
    assert (made.shape[absent] == -1).all()
    assert (made.colour[absent] == -1).all()
    assert (made.box[absent] == 0).all()
    nobody = ~made.present.any(1)
    assert (made.mask[nobody] == 0).all()


@pytest.mark.parametrize("name", SHAPES)
def test_areas_are_those_of_the_plane_figures(name: str) -> None:
    """Pixels with the centre inside, on a fine grid; and every outline touches the circle around it."""
    side = 600
    line = (torch.arange(side) + 0.5) / side * 2.2 - 1.1
    d = OUTLINES[name](line.expand(side, side), line[:, None].expand(side, side))
    assert (d < 0).float().mean().item() * 2.2**2 == pytest.approx(AREAS[name], rel=3e-3)
    radius = torch.hypot(line, line[:, None])[d < 0].max().item()
    assert radius == pytest.approx(1, abs=0.01)


def test_masks_do_not_depend_on_the_turn_of_a_circle_but_on_that_of_a_square() -> None:
    shape = torch.tensor([[SHAPES.index("circle")], [SHAPES.index("square")]])
    for turn, same in ((0.4, [True, False]), (math.pi / 2, [True, True])):
        masks = []
        for angle in (0.0, turn):
            place = torch.tensor([16.3, 15.2, 9.0, angle]).expand(2, 1, 4)
            masks.append(truth(distances(shape, place, 32), shape)[0])
        assert [torch.equal(a, b) for a, b in zip(*masks, strict=True)] == same


def test_a_later_object_hides_an_earlier_one() -> None:
    """The same place twice: the first one is not present; its class is nowhere."""
    shape = torch.tensor([[SHAPES.index("square"), SHAPES.index("circle")]])
    place = torch.tensor([[[16.0, 16.0, 9.0, 0.3], [16.0, 16.0, 10.0, 0.0]]])
    mask, box, visible = truth(distances(shape, place, 32), shape)
    assert visible.tolist() == [[False, True]]
    assert mask.unique().tolist() == [0, 1 + SHAPES.index("circle")]
    assert box[0].tolist() == [[0, 0, 0, 0], [6, 6, 26, 26]]


def test_edges_are_smooth_and_insides_have_the_colour() -> None:
    pairs = [("circle", colour) for colour in COLOURS]
    found = one_object(64, 48, generator(4), pairs)
    named = torch.tensor(list(RGB.values()))
    inside = (found.mask == 1)[:, None]
    tone = (found.x * inside).sum((2, 3)) / inside.sum((2, 3))
    nearest = torch.cdist(tone, named).argmin(1)
    assert (nearest == found.colour[:, 0]).float().mean() > 0.95
    ground = found.x[0].mean((1, 2))
    step = (tone[0] - ground).abs().max()
    column = found.x[0, :, :, int(found.box[0, 0, ::2].mean())]
    assert column.diff(dim=1).abs().max() < step + 0.15


def test_pairs_of_one_object() -> None:
    pairs = [("star", "red"), ("ring", "blue")]
    found = one_object(40, 32, generator(5), pairs)
    seen = {
        (SHAPES[s], COLOURS[c]) for s, c in zip(found.shape[:, 0].tolist(), found.colour[:, 0].tolist(), strict=True)
    }
    assert seen == set(pairs)
    assert found.present.all()
    with pytest.raises(Mistake, match="the shapes are circle"):
        one_object(1, 32, generator(0), [("heart", "red")])


def test_bad_numbers_are_refused() -> None:
    for wrong in ((2, 1), (0, 0), (-1, 2)):
        with pytest.raises(Mistake, match="objects"):
            scenes(2, 32, generator(0), wrong)
    with pytest.raises(Mistake, match="8 pixels"):
        scenes(2, 4, generator(0))
    with pytest.raises(Mistake, match="at least 1"):
        scenes(0, 32, generator(0))


def test_upright_objects_stand_as_people_draw_them() -> None:
    """A square fills its box; of a triangle the widest row is its last."""
    pairs = [(shape, "red") for shape in ("square", "triangle")]
    found = one_object(40, 48, generator(3), pairs, (0.3, 0.4), 0.0)
    for mask, shape, box in zip(found.mask, found.shape[:, 0], found.box[:, 0], strict=True):
        x0, y0, x1, y1 = box.int().tolist()
        rows = (mask > 0).sum(dim=1)[y0:y1]
        if SHAPES[shape] == "square":
            assert (mask[y0:y1, x0:x1] > 0).all()
        else:
            assert int(rows[-1]) == int(rows.max()) > 4 * int(rows[0])
