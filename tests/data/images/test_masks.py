"""Images with masks: a user's folder, its mistakes, joint warping, the parts of the generated scenes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from descend.data.images.masks import VOID, Masks, MasksInOrder, TrainingMasks, brought, folder, warp_both
from descend.data.images.warp import Warp
from descend.data.streams.arrays import Shuffled
from descend.data.toys.scenes import SHAPES
from descend.errors import Mistake

pytestmark = pytest.mark.system("semantic-segmentation-task")


def mask(i: int, side: int = 8) -> np.ndarray:
    values = np.zeros((side, side), np.uint8)
    values[2:5, 1 : 2 + i] = 1
    values[6, 6] = 2
    return values


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six colour images with grey masks of three classes."""
    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
    random = np.random.default_rng(0)
    for i in range(6):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "images" / f"p{i}.png")
        Image.fromarray(mask(i)).save(tmp_path / "masks" / f"p{i}.png")
    return tmp_path


def test_a_folder_is_read_as_it_is(root: Path) -> None:
    images, labels, names = folder(root)
    assert images.x.shape == (6, 3, 8, 8)
    assert labels == ("0", "1", "2")
    assert names == tuple(f"p{i}" for i in range(6))
    for i in range(6):
        assert images.y[i].tolist() == mask(i).tolist()
        pixels = np.asarray(Image.open(root / "images" / f"p{i}.png")).transpose(2, 0, 1)
        assert images.x[i].tolist() == pixels.tolist()
    (root / "classes.txt").write_text("sky\ncell\nnoise\nnever used\n")
    assert folder(root)[1] == ("sky", "cell", "noise", "never used")


def test_palettes_hold_numbers_and_255_is_no_class(root: Path) -> None:
    values = mask(3)
    values[0] = VOID
    image = Image.fromarray(values, mode="P")
    image.putpalette([10, 200, 30] * 256)
    image.save(root / "masks" / "p0.png")
    images, labels, _ = folder(root)
    assert images.y[0].tolist() == values.tolist()
    assert labels == ("0", "1", "2")


def test_black_and_white_are_two_classes(root: Path) -> None:
    for i in range(6):
        Image.fromarray((mask(i) > 0).astype(np.uint8) * 255).save(root / "masks" / f"p{i}.png")
        Image.open(root / "images" / f"p{i}.png").convert("L").save(root / "images" / f"p{i}.png")
    images, labels, _ = folder(root)
    assert labels == ("0", "1")
    assert images.x.shape == (6, 1, 8, 8)  # grey images keep their one channel
    assert images.y[2].tolist() == (mask(2) > 0).astype(int).tolist()


def test_mistakes_name_the_file_and_the_fix(root: Path) -> None:
    def said(words: str) -> None:
        with pytest.raises(Mistake, match=words):
            folder(root)

    values = mask(1)
    values[7, 3] = 9
    Image.fromarray(values).save(root / "masks" / "p1.png")
    said(r"p1.png has class 9 at row 7, column 3, but the masks use 4 numbers, so they should be 0 to 3; write classes")
    (root / "classes.txt").write_text("a\nb\nc\n")
    said("p1.png has class 9 at row 7, column 3, but classes.txt names 3 classes, 0 to 2; add a line there, or use 255")
    Image.fromarray(mask(1, side=9)).save(root / "masks" / "p1.png")
    said("p1.png is 9×9, but its image .*p1.png is 8×8")
    (root / "masks" / "p1.png").unlink()
    said(r"images/p1.png has no mask of the same name")
    Image.fromarray(mask(1)).save(root / "masks" / "p1.jpg")
    said("p1.jpg: .jpg is a lossy format")
    (root / "masks" / "p1.jpg").unlink()
    Image.new("RGB", (8, 8)).save(root / "masks" / "p1.png")
    said("p1.png is an image of mode RGB")
    Image.fromarray(mask(1)).save(root / "masks" / "p1.png")
    Image.fromarray(mask(1)).save(root / "masks" / "more.png")
    said("masks/more.png has no image of the same name")
    (root / "masks" / "more.png").unlink()
    (root / "classes.txt").write_text("only\n")
    said("names 1 classes; give 2 to 255")


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="is not a folder"):
        folder(tmp_path / "no")
    with pytest.raises(Mistake, match="has no folder images/"):
        folder(tmp_path)
    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
    with pytest.raises(Mistake, match="holds no image"):
        folder(tmp_path)


def test_images_of_several_sizes_need_a_size(root: Path) -> None:
    Image.new("RGB", (12, 10)).save(root / "images" / "p3.png")
    Image.fromarray(np.full((10, 12), 1, np.uint8)).save(root / "masks" / "p3.png")
    with pytest.raises(Mistake, match=r"p3.png is 10×12, but .*p0.png is 8×8; give --data.size"):
        folder(root)
    images, _, _ = folder(root, 16)
    assert images.x.shape == (6, 3, 16, 16)
    assert images.y.unique().tolist() == [0, 1, 2]  # the nearest pixel: no class is made up in between


def test_a_mask_is_scaled_by_the_nearest_pixel() -> None:
    y = torch.tensor([[0, 3], [5, 1]], dtype=torch.uint8)
    _, twice = brought(torch.zeros(3, 2, 2, dtype=torch.uint8), y, 4)
    assert twice.tolist() == y.repeat_interleave(2, 0).repeat_interleave(2, 1).tolist()


def test_the_mask_goes_where_the_image_goes() -> None:
    """The image is the mask itself: after any warp they still agree, and what comes in is no class."""
    random = torch.Generator().manual_seed(0)
    y = torch.randint(1, 5, (6, 5, 5), generator=random).repeat_interleave(6, 1).repeat_interleave(6, 2)
    x = y[:, None].float() / 5
    u = 2 * torch.rand(6, 4, generator=random) - 1
    x_new, y_new = warp_both(x, y.to(torch.uint8), Warp(shift=0.1, turn=20.0, zoom=0.2), u)
    inside = (y_new != VOID) & (x_new[:, 0] > 0)
    agree = ((x_new[:, 0] * 5 - y_new).abs() < 0.05)[inside]
    assert agree.float().mean() > 0.6  # the rest lies between two blocks
    assert (((x_new[:, 0] * 5 - y_new).abs() < 4) | ~inside).all()
    assert (y_new == VOID).any()
    assert set(y_new.unique().tolist()) <= {1, 2, 3, 4, VOID}
    still, same = warp_both(x, y.to(torch.uint8), Warp(), u)
    assert torch.equal(same, y.to(torch.uint8))
    assert (still - x).abs().max() < 1e-5


def test_generated_parts_do_not_meet_and_stay() -> None:
    data = Masks(scenes=40, side=16, valid=0.2, test=0.1)
    parts = data.read()
    assert [len(p) for p in (parts.train, parts.valid, parts.test)] == [28, 8, 4]
    ids = torch.cat([p.ids for p in (parts.train, parts.valid, parts.test)])
    assert ids.sort().values.tolist() == list(range(40))
    assert parts.labels == ("background", *SHAPES)
    assert torch.equal(data.read().test.x, parts.test.x)
    with pytest.raises(Mistake, match="too few for three parts"):
        Masks(scenes=3, side=16, valid=0.4, test=0.5).read()
    with pytest.raises(Mistake, match=r"--data.scenes 2"):
        Masks(scenes=2, side=16).read()


def test_streams_bring_prepared_pixels() -> None:
    part = Masks(scenes=20, side=16).read().train
    stream = TrainingMasks(Shuffled(part.arrays(), 4, chance=4), lambda x: 2 * x, Warp(shift=0.2))
    first = next(stream)
    assert first["x"].shape == (4, 3, 16, 16)
    assert 1 < first["x"].max() <= 2
    assert set(first) == {"x", "y", "ids"}
    state, second = stream.state_dict(), next(stream)
    stream.load_state_dict(state)
    again = next(stream)
    assert all(torch.equal(again[name], second[name]) for name in second)
    walked = list(MasksInOrder(part, lambda x: x, pixels=3 * 256))
    assert [len(b["y"]) for b in walked][:2] == [3, 3]
    assert torch.equal(torch.cat([b["y"] for b in walked]), part.y)
