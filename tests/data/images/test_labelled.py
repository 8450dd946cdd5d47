"""Parts of a data set, resizing, and statistics that come from training images only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from descend.data.images.labelled import (
    PREPROCESSOR,
    Images,
    Preprocessing,
    Splits,
    check_shares,
    resize,
    split_by_class,
)
from descend.errors import Mistake
from tests.close import close


def some(n: int, seed: int, channels: int = 2) -> Images:
    x = torch.rand(n, channels, 5, 4, generator=torch.Generator().manual_seed(seed))
    return Images(x, torch.arange(n) % 3, torch.arange(n))


def splits() -> Splits:
    return Splits(some(30, 0), some(6, 1), some(6, 2), ("a", "b", "c"))


def test_stratified_keeps_the_share_of_every_class() -> None:
    y = torch.cat([torch.zeros(100), torch.ones(40), torch.full((20,), 2)]).long()
    y = y[torch.randperm(160, generator=torch.Generator().manual_seed(0))]
    test, valid, rest = split_by_class(y, (0.1, 0.25))
    assert sorted(torch.cat([test, valid, rest]).tolist()) == list(range(160))
    assert [torch.bincount(y[part]).tolist() for part in (test, valid, rest)] == [[10, 4, 2], [25, 10, 5], [65, 26, 13]]


def test_stratified_is_the_same_each_time_and_not_the_first_rows() -> None:
    y = torch.arange(60) % 3
    first, again, other = (split_by_class(y, (0.5,), seed) for seed in (0, 0, 1))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])
    assert first[0].tolist() != list(range(30))


def test_a_lone_example_is_for_training() -> None:
    test, valid, rest = split_by_class(torch.tensor([0, 0, 0, 0, 1]), (0.25, 0.25))
    assert (len(test), len(valid), len(rest)) == (1, 1, 3)
    assert 4 in rest.tolist()


def test_standardized_with_training_statistics_only() -> None:
    parts = splits()
    prepare = Preprocessing.fit(parts)
    x = prepare(parts.train.x)
    close(x.mean(dim=(0, 2, 3)) + 1, torch.ones(2))
    close(x.std(dim=(0, 2, 3), correction=0), torch.ones(2))
    other = Splits(parts.train, some(6, 8), some(6, 9), parts.labels)
    assert Preprocessing.fit(other) == prepare
    pixels = parts.train.x.numpy().astype(np.float64)  # numpy's std divides by n, as the books do
    close(prepare.mean, pixels.mean(axis=(0, 2, 3)))
    close(prepare.std, pixels.std(axis=(0, 2, 3)))


def test_a_constant_channel_keeps_its_scale() -> None:
    train = Images(torch.full((3, 1, 2, 2), 0.25), torch.tensor([0, 1, 0]), torch.arange(3))
    prepare = Preprocessing.fit(Splits(train, train, train, ("a", "b")))
    assert prepare.std == (1.0,)
    assert torch.equal(prepare(train.x), torch.zeros(3, 1, 2, 2))


def test_saved_and_read(tmp_path: Path) -> None:
    prepare = Preprocessing.fit(splits())
    prepare.save(tmp_path)
    assert Preprocessing.read(tmp_path) == prepare
    (tmp_path / PREPROCESSOR).write_text('{"size": {}}')
    with pytest.raises(Mistake, match=f"{PREPROCESSOR} lacks 'height'"):
        Preprocessing.read(tmp_path)


@pytest.mark.parametrize("size", [(32, 32), (5, 3), (8, 20)])
def test_resize_is_pillows(size: tuple[int, int]) -> None:
    x = torch.rand(8, 9, generator=torch.Generator().manual_seed(0))
    theirs = Image.fromarray(x.numpy(), mode="F").resize((size[1], size[0]), Image.Resampling.BILINEAR)
    close(resize(x[None, None], *size)[0, 0], torch.from_numpy(np.array(theirs)))


def test_any_size_is_brought_to_the_models() -> None:
    prepare = Preprocessing.fit(splits())
    assert prepare(torch.rand(3, 2, 11, 7)).shape == (3, 2, 5, 4)
    assert splits().resize(6).test.x.shape == (6, 2, 6, 6)
    assert splits().resize(0).test.x.shape == (6, 2, 5, 4)
    with pytest.raises(Mistake, match="has 1 channels, the model was trained on 2"):
        prepare(torch.rand(3, 1, 5, 4))


@pytest.mark.parametrize(("valid", "test"), [(0, 0.1), (0.1, 0), (0.5, 0.5), (-0.1, 0.3)])
def test_impossible_shares(valid: float, test: float) -> None:
    with pytest.raises(Mistake, match=r"--data\.valid"):
        check_shares(valid, test)


def test_an_empty_part_is_named() -> None:
    with pytest.raises(Mistake, match="no image is left for the valid part"):
        Splits(some(3, 0), some(3, 0).take(torch.tensor([], dtype=torch.long)), some(3, 0), ("a",))
