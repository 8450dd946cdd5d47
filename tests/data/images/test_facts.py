"""Leaks and groups of images: what is in training too is told for every source, and a group stays in one part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from descend.data.images.captions import Captions
from descend.data.images.facts import describe_pixel_leaks, digest_images
from descend.data.images.labelled import Images, Splits
from descend.data.images.lazy import Bytes
from descend.data.images.masks import Masks
from descend.data.images.source import ImageSource, describe_classes
from descend.errors import Mistake


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def photo(path: Path, seed: int) -> str:
    """A random photograph; the same seed gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(path)
    return path.name


def frames(folder: Path, column: str = "film") -> Path:
    """60 frames of 12 films, in a list."""
    rows = [f"{photo(folder / f'{i}.png', i)},{'ab'[i % 2]},f{i // 5}" for i in range(60)]
    (folder / "list.csv").write_text("\n".join([f"path,label,{column}", *rows]))
    return folder / "list.csv"


def test_a_group_of_images_stays_in_one_part(tmp_path: Path) -> None:
    source = ImageSource(path=str(frames(tmp_path, "Film")), size=8, group="Film")
    splits = source.read()
    films = [{int(i) // 5 for i in part.ids} for part in (splits.train, splits.valid, splits.test)]
    assert sum(map(len, films)) == len(set.union(*films)) == 12
    without = ImageSource(path=str(tmp_path / "list.csv"), size=8).read()
    assert {int(i) // 5 for i in without.train.ids} & {int(i) // 5 for i in without.test.ids}


def test_a_group_needs_its_column(tmp_path: Path) -> None:
    path = frames(tmp_path / "a")
    with pytest.raises(Mistake, match=r"--data.group flim: .*no such column.*film"):
        ImageSource(path=str(path), size=8, group="flim").read()
    for i in range(20):
        photo(tmp_path / "b" / "xy"[i % 2] / f"{i}.png", i)
    with pytest.raises(Mistake, match=r"--data.group film: .*has no columns; list the images"):
        ImageSource(path=str(tmp_path / "b"), size=8, group="film").read()


def test_captions_keep_a_group_together(tmp_path: Path) -> None:
    rows = [f"{photo(tmp_path / f'{i}.png', i)},a film numbered {i // 5},f{i // 5}" for i in range(60)]
    (tmp_path / "list.csv").write_text("\n".join(["image,caption,film", *rows]))
    parts = Captions(path=str(tmp_path / "list.csv"), size=8, group="film").read()
    said = [set(part.captions) for part in (parts.train, parts.valid, parts.test)]
    assert sum(map(len, said)) == len(set.union(*said)) == 12
    assert parts.facts == {}


def test_equal_files_in_two_parts_are_counted(tmp_path: Path) -> None:
    for part, seeds in (("train", range(20)), ("valid", range(100, 106)), ("test", (*range(200, 206), 0, 1))):
        for k, seed in enumerate(seeds):
            photo(tmp_path / part / "ab"[k % 2] / f"{k}.png", seed)
    splits = ImageSource(path=str(tmp_path), size=8).read()
    assert describe_classes(splits)["in training too"] == "2 of 8 test records"


def test_equal_captioned_images_under_two_names_are_counted(tmp_path: Path) -> None:
    parts = ["train"] * 20 + ["valid"] * 5 + ["test"] * 5
    names = [photo(tmp_path / f"{i}.png", 3 if i == 22 else i) for i in range(30)]
    rows = [f"{name},a caption,{part}" for name, part in zip(names, parts, strict=True)]
    (tmp_path / "list.csv").write_text("\n".join(["image,caption,part", *rows]))
    read = Captions(path=str(tmp_path / "list.csv"), size=8).read()
    assert read.facts == {"in training too": "1 of 5 valid records"}


def test_equal_pixels_in_memory_are_counted() -> None:
    x = torch.rand(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    y, ids = torch.arange(20) % 2, torch.arange(20)
    test = x[14:].clone()
    test[2] = x[5]
    splits = Splits(
        Images(x[:10], y[:10], ids[:10]), Images(x[10:14], y[:4], ids[:4]), Images(test, y[:6], ids), ("a", "b")
    )
    assert describe_classes(splits)["in training too"] == "1 of 6 test records"
    whole = {"train": Bytes((x[:10] * 255).byte()), "test": Bytes((test * 255).byte())}
    assert describe_pixel_leaks(whole) == {"in training too": "1 of 6 test records"}
    assert len(set(digest_images(x))) == 20


def test_equal_images_with_masks_go_to_one_part(tmp_path: Path) -> None:
    (tmp_path / "masks").mkdir()
    for i in range(40):
        photo(tmp_path / "images" / f"{i:02}.png", i % 20)
        mask = np.zeros((12, 12), np.uint8)
        mask[: 1 + i % 6] = 1
        Image.fromarray(mask).save(tmp_path / "masks" / f"{i:02}.png")
    splits = Masks(path=str(tmp_path)).read()
    seen = [{int(i) % 20 for i in part.ids} for part in (splits.train, splits.valid, splits.test)]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 20
    assert splits.facts == {}
