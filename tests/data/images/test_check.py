"""The check before training: what is broken, what is known again, what comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.fft import dctn
from sklearn.datasets import load_sample_image

from descend.data.images import check as image_check
from descend.data.images import files as image_files
from descend.data.images import fingerprint
from descend.data.images.check import check
from descend.data.images.files import list_image_files
from descend.data.images.fingerprint import fingerprints, near, same_bytes
from descend.errors import Mistake
from tests.data.photos import folder, pixels, save


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are looked at from now on."""
    seen: list[Path] = []
    real = image_check._look

    def look(path: Path) -> Any:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(image_check, "_look", look)
    return seen


def test_the_second_start_opens_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = list_image_files(folder(tmp_path))[0]
    seen = counted(monkeypatch)
    first = check(paths, tmp_path)
    assert len(seen) == 18
    seen.clear()
    again = check(paths, tmp_path)
    assert not seen
    for name in ("height", "width", "grey", "digest", "hash", "thumb"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    save(paths[4], pixels(77, 40, 50))
    changed = check(paths, tmp_path)
    assert seen == [paths[4]]
    assert (changed.height[4], changed.width[4]) == (40, 50)
    assert np.array_equal(np.delete(changed.hash, 4), np.delete(first.hash, 4))


def test_a_damaged_memory_is_no_harm(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = list_image_files(folder(tmp_path))[0]
    first = check(paths, tmp_path)
    [kept] = (cache / "descend" / "images").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert np.array_equal(check(paths, tmp_path).hash, first.hash)
    monkeypatch.setenv("XDG_CACHE_HOME", str(paths[0]))  # a file: nothing can be written below it
    assert np.array_equal(check(paths, tmp_path).hash, first.hash)


def test_the_broken_files_are_named(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "dog" / "0.png").write_bytes(b"")
    data = (root / "owl" / "3.png").read_bytes()
    (root / "owl" / "3.png").write_bytes(data[: len(data) - 200])
    said = r"dog/0.png cannot be read as an image \(the file is empty\).*\(1 more cannot be used: .*owl/3\.png\)"
    with pytest.raises(Mistake, match=said):
        check(list_image_files(root)[0], root)


def test_huge_images_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "bomb.png", np.zeros((40, 50), np.uint8))
    monkeypatch.setattr(image_files, "MOST_PIXELS", 1999)
    with pytest.raises(Mistake, match=r"bomb.png has 2,000 pixels, more than 1,999"):
        check([tmp_path / "bomb.png"], tmp_path)
    for limit in (900, 1500):  # Pillow raises at twice its limit and only warns at the limit; both stop us
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(Mistake, match=r"bomb.png has more pixels than Pillow opens"):
            check([tmp_path / "bomb.png"], tmp_path)


def test_sizes_are_those_of_the_upright_image(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels(0, 24, 32)).save(tmp_path / "a.jpg", exif=exif)
    save(tmp_path / "b.png", pixels(0, 24, 32, 1))
    found = check([tmp_path / "a.jpg", tmp_path / "b.png"], tmp_path)
    assert (found.height.tolist(), found.width.tolist(), found.grey.tolist()) == ([32, 24], [24, 32], [False, True])


def test_fingerprints_are_the_signs_of_the_slow_waves() -> None:
    grey = np.stack([pixels(seed, 32, 32, 1) for seed in range(5)])
    for image, bits in zip(grey, fingerprints(grey), strict=True):
        waves = dctn(image.astype(float), norm=None)[:9, :9] / 4
        low = waves[:8, :8].flatten()
        low[0] = waves[8, 8]
        level = np.median(low) + np.abs(low).mean() / 20
        expected = "".join("1" if v > level else "0" for v in low)
        assert f"{int(bits):064b}" == expected
    assert fingerprints(np.full((1, 32, 32), 9.0)).tolist() == [0]


def test_copies_are_found_and_strangers_are_not(tmp_path: Path) -> None:
    a = load_sample_image("china.jpg")[::2, ::2]
    save(tmp_path / "0.png", a)
    Image.fromarray(a).save(tmp_path / "1.jpg", quality=60)
    Image.fromarray(a).resize((160, 107)).save(tmp_path / "2.png")
    (tmp_path / "3.png").write_bytes((tmp_path / "0.png").read_bytes())
    save(tmp_path / "4.png", 255 - a)
    for i in range(5, 40):
        save(tmp_path / f"{i:02d}.png", pixels(i + 100, 96, 128))
    paths = list_image_files(tmp_path)[0]
    found = check(paths, tmp_path)
    copies = {paths.index(tmp_path / name) for name in ("0.png", "1.jpg", "2.png", "3.png")}
    pairs = near(found.hash, found.thumb)
    assert pairs is not None
    assert {tuple(pair) for pair in pairs.tolist()} == {(a, b) for a in copies for b in copies if a < b}
    assert [{paths[i].name for i in group} for group in same_bytes(found.digest)] == [{"0.png", "3.png"}]


def test_bands_find_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against comparing all with all; and a crowd that looks alike is not compared forever."""
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**63, 60, dtype=np.uint64)
    for i in range(30):
        for bit in random.choice(64, random.integers(0, 5), replace=False):
            hashes[30 + i] = hashes[i] ^ (np.uint64(1) << np.uint64(bit)) if bit % 2 else hashes[i]
    thumbs = np.zeros((60, 8, 8, 3), np.uint8)
    thumbs[40:] = 9  # more than the eye forgives
    every = [
        (a, b)
        for a in range(60)
        for b in range(a + 1, 60)
        if bin(int(hashes[a] ^ hashes[b])).count("1") <= 3 and (a >= 40) == (b >= 40)
    ]
    pairs = near(hashes, thumbs)
    assert pairs is not None
    assert every
    assert [tuple(pair) for pair in pairs.tolist()] == every
    monkeypatch.setattr(fingerprint, "MOST_PAIRS", 10)
    assert near(np.zeros(9, np.uint64), thumbs[:9]) is None
