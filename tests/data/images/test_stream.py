"""Workers change no batch, and a stream resumed in the middle of an epoch continues as it would have."""

from __future__ import annotations

import gc
import multiprocessing
from pathlib import Path

import pytest
import torch

from descend.data.images.augment import Augment
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.images.source import ImageSource
from descend.data.images.stream import Ahead, Walk, shuffle_images
from tests.data.photos import folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageSource:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return ImageSource(
        str(folder(tmp_path / "p", each=5)), size=12, valid=0.2, test=0.2, augment="randaugment", memory=0.0
    )


def stream(data: ImageSource, splits: Splits, workers: int) -> Ahead:
    return shuffle_images(splits.train, Preprocessing.fit(splits), data.changes(), 4, 7, (0, 1), workers)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_workers_change_nothing(data: ImageSource) -> None:
    """Nine images in batches of four: the batches reach over the ends of epochs."""
    splits = data.read()
    alone, one, two = (stream(data, splits, workers) for workers in (0, 1, 2))
    states = []
    for _ in range(6):
        batch = next(alone)
        assert set(batch) == {"x", "y", "ids"}
        assert same(batch, next(one))
        assert same(batch, next(two))
        assert alone.state_dict() == one.state_dict() == two.state_dict()
        states.append((alone.state_dict(), batch))
    again = stream(data, splits, 1)
    again.load_state_dict(states[2][0])  # in the middle of an epoch
    for _, batch in states[3:]:
        assert same(next(again), batch)
    two.load_state_dict(states[0][0])  # and a stream whose workers were far ahead
    assert same(next(two), states[1][1])
    assert two.state_dict() == states[1][0]


def test_workers_end_with_their_stream(data: ImageSource) -> None:
    """Without waiting for a collection of garbage, which would wait seconds for each of them."""
    walk = stream(data, data.read(), 2)
    before = set(multiprocessing.active_children())
    next(walk)
    theirs = set(multiprocessing.active_children()) - before
    assert len(theirs) == 2
    gc.disable()
    try:
        del walk
        assert not theirs & set(multiprocessing.active_children())
    finally:
        gc.enable()


def test_workers_leave_the_random_state_of_the_step_alone(data: ImageSource) -> None:
    walk = stream(data, data.read(), 1)
    torch.manual_seed(3)
    next(walk)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(3))


def test_every_epoch_augments_anew(data: ImageSource) -> None:
    splits = data.read()
    walk = stream(data, splits, 0)
    seen: dict[int, list[torch.Tensor]] = {}
    for _ in range(9):
        batch = next(walk)
        for i, x in zip(batch["ids"].tolist(), batch["x"], strict=True):
            seen.setdefault(i, []).append(x)
    assert {len(found) for found in seen.values()} == {4}
    assert sum(not torch.equal(found[0], found[1]) for found in seen.values()) >= 7


def test_bytes_in_memory_are_the_files(data: ImageSource) -> None:
    files, memory = data.read(), ImageSource(data.path, size=12, valid=0.2, test=0.2, augment="randaugment").read()
    prepare = Preprocessing.fit(files)
    a, b = (shuffle_images(s.train, prepare, data.changes(), 4, 7, (0, 1), 0) for s in (files, memory))
    assert same(next(a), next(b))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_walk_is_ordered_and_repeatable(data: ImageSource, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.data.images.stream.NUMBERS", 3 * 12 * 12 * 2)
    splits = data.read()
    prepare = Preprocessing.fit(splits)
    walk = Walk(splits.train, prepare, workers)
    assert len(walk) == 5
    for _ in range(2):
        batches = list(walk)
        assert [len(b["y"]) for b in batches] == [2, 2, 2, 2, 1]
        assert torch.equal(torch.cat([b["ids"] for b in batches]), splits.train.ids)
        assert torch.equal(torch.cat([b["x"] for b in batches]), prepare.standardize(splits.train.x[:]))


def test_processes_share_a_batch(data: ImageSource) -> None:
    splits = data.read()
    prepare, none = Preprocessing.fit(splits), Augment(())
    whole = next(shuffle_images(splits.train, prepare, none, 4, 7, (0, 1), 0))
    halves = [next(shuffle_images(splits.train, prepare, none, 4, 7, (rank, 2), 0)) for rank in (0, 1)]
    assert same(whole, {name: torch.cat([h[name] for h in halves]) for name in whole})
