"""Two views of every image: the same however an epoch is cut and after a resume, and what each transform does."""

from __future__ import annotations

import pytest
import torch

from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.views import (
    Greyed,
    Inverted,
    LoadViews,
    Outlined,
    Shaded,
    Viewing,
    labelled_batches,
    shuffle_loaded,
    views_once,
)
from descend.data.streams.batches import join_batches
from descend.ops.images.jigsaw import cut

PREPARE = Preprocessing((3, 8, 8), (0.5,) * 3, (0.25,) * 3)
VIEWS = Viewing(
    crop=0.7, turn=90.0, shift=0.1, zoom=0.1, balance=0.3, negative=0.2, hue=0.5, outline=0.3, outside="reflection"
)


def images(n: int = 12) -> Images:
    x = torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return Images(x, torch.arange(n) % 3, 100 + torch.arange(n))


def load(grid: int = 0, noise: int = 0) -> LoadViews:
    return LoadViews(images().x, VIEWS.augment(), PREPARE, grid, noise)


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("siamese-contrastive", "augmented-pairs")
@pytest.mark.parametrize(("grid", "noise"), [(0, 0), (2, 5)])
def test_views_do_not_depend_on_how_a_step_is_split(grid: int, noise: int) -> None:
    whole = shuffle_loaded(images(), load(grid, noise), 6, 3, (0, 1))
    halves = shuffle_loaded(images(), load(grid, noise), 3, 3, (0, 1))
    ranks = [shuffle_loaded(images(), load(grid, noise), 6, 3, (rank, 2)) for rank in (0, 1)]
    resumed = shuffle_loaded(images(), load(grid, noise), 6, 3, (0, 1))
    for step in range(5):  # over two ends of an epoch
        if step == 3:
            resumed.load_state_dict(whole.state_dict())
        batch = next(whole)
        for other in (join_batches([next(halves), next(halves)]), join_batches([next(r) for r in ranks])):
            assert batch.keys() == other.keys()
            assert all(torch.equal(batch[name], other[name]) for name in batch)
        if step >= 3:
            assert all(torch.equal(x, y) for x, y in zip(batch.values(), next(resumed).values(), strict=True))


@pytest.mark.system("siamese-contrastive", "augmented-pairs")
def test_both_views_are_of_the_same_image_and_differ() -> None:
    flat = images()
    flat.x[:] = torch.arange(12)[:, None, None, None] / 12  # each image in a grey of its own
    mild = LoadViews(flat.x, Viewing(crop=0.7, colour=0.0, grey=0.0, turn=0.0).augment(), PREPARE)
    batch = next(shuffle_loaded(flat, mild, 12, 0, (0, 1)))
    grey = (batch["row"] / 12 - 0.5) / 0.25
    for name in ("x1", "x2"):
        assert torch.allclose(batch[name], grey[:, None, None, None].expand(12, 3, 8, 8), atol=1e-5)
    assert torch.equal(batch["ids"], 100 + batch["row"])
    changed = next(shuffle_loaded(images(), load(), 12, 0, (0, 1)))
    assert (changed["x1"] - changed["x2"]).abs().amax((1, 2, 3)).min() > 0.1


def test_a_jigsaw_has_the_pieces_of_its_image() -> None:
    still = LoadViews(images().x, Viewing(1.0, 0.0, colour=0.0, grey=0.0).augment(), PREPARE, 2, 4)
    batch = next(shuffle_loaded(images(), still, 5, 0, (0, 1)))
    whole = cut(PREPARE.standardize(images().x[batch["row"]]), 2)
    for mine, pieces in zip(batch["pieces"], whole, strict=True):
        assert sorted(float(p.sum()) for p in mine) == pytest.approx(sorted(float(p.sum()) for p in pieces))
    assert batch["noise"].shape == (5, 4)
    assert ((batch["noise"] >= 0) & (batch["noise"] <= 1)).all()


def test_validation_views_never_change_and_the_labelled_images_follow() -> None:
    five = LoadViews(images(5).x, VIEWS.augment(), PREPARE)
    found = labelled_batches(images(), images(5), PREPARE, five, ("x1", "x2"), limit=7, size=4)
    assert [batch["known"].tolist() for batch in found] == [[False] * 4, [False], [True] * 4, [True] * 3]
    assert "x1" not in found[2]
    again = labelled_batches(images(), images(5), PREPARE, five, ("x1", "x2"), limit=7, size=4)
    assert torch.equal(found[0]["x1"], again[0]["x1"])
    assert not torch.equal(found[0]["x1"], found[0]["x2"])
    one = views_once([{"row": torch.tensor([1])}], five)
    assert torch.allclose(one[0]["x1"], found[0]["x1"][1:2], atol=1e-5)


def test_grey_and_negative() -> None:
    x, u = torch.rand(4, 3, 5, 5), torch.tensor([[-1.0], [-0.2], [0.2], [1.0]])
    grey = Greyed(0.5)(x, u)
    assert (grey[:2] - grey[:2, :1]).abs().max() == 0
    assert torch.equal(grey[2:], x[2:])
    assert torch.equal(Inverted(0.5)(x, u)[0], 1 - x[0])
    assert torch.equal(Inverted(0.5)(x, u)[3], x[3])
    assert Viewing(1.0, 0.0, colour=0.0, grey=0.0).augment().transforms == ()


def test_outlines_have_no_colour_and_no_contrast() -> None:
    object_, ground = torch.rand(4, 3, 1, 1), torch.rand(4, 3, 1, 1)
    mask = torch.zeros(4, 1, 9, 9)
    mask[:, :, 3:6, 2:6] = 1
    x, u = ground + mask * (object_ - ground), torch.tensor([[-1.0], [-0.9], [-0.8], [1.0]])
    found = Outlined(0.5)(x, u)
    assert torch.allclose(found[:3], found[:1].expand(3, -1, -1, -1), atol=1e-4)  # whatever the colours were
    assert found[0].max() == pytest.approx(1)
    assert found[0, :, 4, 4].abs().max() < found[0, :, 4, 2].min()  # the middle is darker than the edge
    assert found[0, :, 0].abs().max() < 1e-5
    assert torch.equal(found[3], x[3])
    assert Outlined(1.0)(torch.full((1, 3, 5, 5), 0.4), u[:1]).abs().max() == 0


def test_uneven_light_is_smooth_and_the_same_in_every_channel() -> None:
    x, u = torch.full((2, 3, 12, 12), 0.5), 2 * torch.rand(2, 16) - 1
    change = Shaded(0.4)(x, u) - x
    assert (change - change[:, :1]).abs().max() == 0
    assert 0.05 < change.abs().max() <= 0.4
    assert change.diff(dim=-1).abs().max() < 0.4 * 2 * 4 / 12 + 1e-6  # at most 2 from one of four numbers to the next
    assert torch.allclose(change[:, 0, 0, 0], 0.4 * u[:, 0], atol=1e-6)


def test_scenes_by_shape() -> None:
    splits = ShapeScenes(count=60).read()
    assert len(splits.labels) == 6
    assert sum(len(part.y) for part in (splits.train, splits.valid, splits.test)) == 60
