"""Image files: conversions, orientation, limits, drafts, masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from descend.data.images import files as image_files
from descend.data.images.files import class_numbers, decode, decode_all, list_image_files
from descend.data.images.frame import Frame
from descend.errors import Mistake
from tests.data.photos import pixels, save


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_honoured(tmp_path: Path, orientation: int) -> None:
    """The eight orientations as numpy turns and mirrors, by the definition of the tag (row 0 is .., column 0 is ..)."""
    shown = pixels(0, 6, 10)
    stored = {
        1: shown,
        2: shown[:, ::-1],
        3: shown[::-1, ::-1],
        4: shown[::-1],
        5: shown.transpose(1, 0, 2),
        6: np.rot90(shown, 1),
        7: shown.transpose(1, 0, 2)[::-1, ::-1],
        8: np.rot90(shown, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.ascontiguousarray(stored)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(decode(tmp_path / "a.png"), shown)


def test_modes_become_eight_bits(tmp_path: Path) -> None:
    rgb = pixels(1)
    grey = pixels(2, channels=1)
    Image.fromarray(rgb).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "palette.png")
    theirs = np.asarray(Image.open(tmp_path / "palette.png").convert("RGB"))
    assert np.array_equal(decode(tmp_path / "palette.png"), theirs)
    assert decode(tmp_path / "palette.png").std() > 10
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "sixteen.png")
    assert np.array_equal(decode(tmp_path / "sixteen.png", 1), grey)
    assert np.array_equal(decode(tmp_path / "sixteen.png")[..., 2], grey)
    Image.fromarray(grey.astype(np.float32) / 255).save(tmp_path / "float.tiff")
    assert np.array_equal(decode(tmp_path / "float.tiff", 1), grey)
    Image.fromarray(rgb).convert("CMYK").save(tmp_path / "cmyk.tiff")
    assert np.abs(decode(tmp_path / "cmyk.tiff").astype(int) - rgb).max() <= 1
    Image.fromarray(np.eye(8, dtype=bool)).save(tmp_path / "bits.png")
    assert np.array_equal(decode(tmp_path / "bits.png", 1), 255 * np.eye(8, dtype=np.uint8))


def test_alpha_lies_over_white(tmp_path: Path) -> None:
    rgba = np.dstack([pixels(1), np.zeros((24, 32), np.uint8)])
    rgba[:12, :, 3] = 255
    rgba[12:18, :, 3] = 128
    save(tmp_path / "a.png", rgba)
    found = decode(tmp_path / "a.png").astype(float)
    assert np.array_equal(found[:12], rgba[:12, :, :3])
    assert np.abs(found[12:18] - (rgba[12:18, :, :3] * (128 / 255) + 127)).max() <= 1
    assert (found[18:] == 255).all()
    Image.fromarray(np.dstack([pixels(2, channels=1), rgba[..., 3]])).save(tmp_path / "la.png")
    assert (decode(tmp_path / "la.png", 1)[18:] == 255).all()


def test_a_draft_is_close_to_the_whole_decoding(tmp_path: Path) -> None:
    big = pixels(3, 600, 800)
    Image.fromarray(big).save(tmp_path / "a.jpg", quality=92)
    frame = Frame(32, 32, (32,))
    whole = np.asarray(frame.of_image(Image.open(tmp_path / "a.jpg")))
    assert np.abs(decode(tmp_path / "a.jpg", 3, frame).astype(int) - whole).mean() < 1
    with image_files.open_image(tmp_path / "a.jpg") as image:
        image.draft(None, (64, 64))
        assert image.size == (100, 75)  # an eighth, and still more than twice what is needed


def test_many_files_in_threads_and_alone(tmp_path: Path) -> None:
    files = [save(tmp_path / f"{i}.png", pixels(i)) for i in range(7)]
    frame = Frame(8, 8, (8,))
    alone, together = (decode_all(files, 3, frame, workers) for workers in (1, 3))
    assert alone.shape == (7, 3, 8, 8)
    assert alone.equal(together)
    assert not alone[0].equal(alone[1])


def test_listed(tmp_path: Path) -> None:
    save(tmp_path / "b" / "x.PNG", pixels(0))
    save(tmp_path / "a.jpg", pixels(0))
    for name in ("notes.txt", ".hidden.png", "Thumbs.db"):
        (tmp_path / name).write_text("")
    images, others = list_image_files(tmp_path)
    assert [p.name for p in images] == ["a.jpg", "x.PNG"]
    assert [p.name for p in others] == ["notes.txt"]


def test_broken_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = save(tmp_path / "good.jpg", pixels(0, 200, 200)).read_bytes()
    files = {
        "empty.jpg": (b"", "the file is empty"),
        "text.png": (b"no image at all", "not an image"),
        "short.jpg": (good[: len(good) // 2], "truncated"),
        "page.png": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
    }
    for name, (data, why) in files.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Mistake, match=rf"{name} cannot be read as an image .*{why}") as caught:
            decode(tmp_path / name)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(image_files, "MOST_PIXELS", 39_999)
    with pytest.raises(Mistake, match=r"good.jpg has 40,000 pixels, more than 39,999"):
        decode(tmp_path / "good.jpg")
    with pytest.raises(Mistake, match="no such file"):
        decode(tmp_path / "nowhere.png")


def test_masks_are_numbers(tmp_path: Path) -> None:
    numbers = np.array([[0, 1, 2], [2, 5, 0]], np.uint8)
    palette = Image.fromarray(numbers).convert("P")
    palette.putpalette([200, 10, 10, 1, 2, 3] * 10)
    palette.save(tmp_path / "p.png")
    save(tmp_path / "l.png", numbers)
    Image.fromarray(numbers.astype(np.uint16) * 1000).save(tmp_path / "i.png")
    assert np.array_equal(class_numbers(tmp_path / "p.png"), numbers)
    assert np.array_equal(class_numbers(tmp_path / "l.png"), numbers)
    assert np.array_equal(class_numbers(tmp_path / "i.png"), numbers.astype(int) * 1000)
    save(tmp_path / "c.png", pixels(0))
    with pytest.raises(Mistake, match=r"c.png is an image of mode RGB; a mask holds class numbers"):
        class_numbers(tmp_path / "c.png")
