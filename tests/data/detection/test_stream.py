"""Batches of objects: exact under resume, micro-batches, processes and workers; boxes follow their pixels."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest
import torch

from descend.contracts import Batch
from descend.data.detection.framing import Letterbox, to_original
from descend.data.detection.objects import DetectionSplits
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.detection.source import DetectionSource
from descend.data.detection.stream import HeldOutObjects, shuffle_objects
from tests.close import close


@lru_cache
def splits() -> DetectionSplits:
    return DetectionSource(scenes=60, size=48).read()


@lru_cache
def prepare(side: int = 48) -> DetectionPreprocessing:
    return DetectionPreprocessing.fit(splits().train, Letterbox(side), splits().labels)


def same(a: Batch, b: Batch) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_batch_has_the_agreed_parts() -> None:
    batch = next(shuffle_objects(splits().train, prepare(), 8, 0))
    assert batch["x"].shape == (8, 3, 48, 48)
    assert batch["boxes"].shape[:1] == (8,)
    assert batch["boxes"].shape[2] == 4
    assert (batch["classes"] >= 0).any(dim=1).all()
    assert (batch["boxes"][batch["classes"] < 0] == 0).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_continues_where_it_stood(workers: int) -> None:
    stream, plain = (shuffle_objects(splits().train, prepare(), 10, 3, workers=w) for w in (workers, 0))
    for _ in range(3):
        assert same(next(stream), next(plain))
    state = stream.state_dict()
    expected = [next(stream) for _ in range(3)]
    again = shuffle_objects(splits().train, prepare(), 10, 3)
    again.load_state_dict(state)
    assert all(same(next(again), batch) for batch in expected)


def test_micro_batches_and_processes_are_the_batch() -> None:
    whole = next(shuffle_objects(splits().train, prepare(), 8, 1))
    small = shuffle_objects(splits().train, prepare(), 4, 1)
    parts = [next(small), next(small)]
    ranks = [next(shuffle_objects(splits().train, prepare(), 8, 1, (rank, 2))) for rank in (0, 1)]
    for halves in (parts, ranks):
        for name in ("x", "ids"):
            assert torch.equal(torch.cat([half[name] for half in halves]), whole[name])
        counts = torch.cat([(half["classes"] >= 0).sum(1) for half in halves])
        assert torch.equal(counts, (whole["classes"] >= 0).sum(1))


def test_held_out_batches_lead_back_to_the_original_pixels() -> None:
    walk = HeldOutObjects(splits().valid, prepare(80), batch=4)
    seen = []
    for batch in walk:
        there = batch["classes"] >= 0
        found = to_original(batch["boxes"], batch["back"], batch["size"])
        close(found[there], batch["true_boxes"][there])
        assert batch["crowd"].shape == batch["area"].shape == batch["classes"].shape
        seen.append(batch["ids"])
    assert torch.equal(torch.cat(seen), splits().valid.ids)
    assert len(walk) == len(seen)


def test_crowds_are_judged_but_not_learned() -> None:
    train = splits().train
    crowd = torch.zeros_like(train.crowd)
    crowd[::2] = True
    marked = replace(train, crowd=crowd)
    learned, held = shuffle_objects(marked, prepare(), 42, 0), HeldOutObjects(marked, prepare())
    assert int((next(learned)["classes"] >= 0).sum()) == int((~crowd).sum())
    assert sum(int((batch["classes"] >= 0).sum()) for batch in held) == len(crowd)


def test_the_images_are_the_scenes() -> None:
    batch = next(iter(HeldOutObjects(splits().valid, prepare())))
    back = (prepare().restore(batch["x"]) * 255).round().to(torch.uint8)
    assert torch.equal(back[0].movedim(0, 2), torch.from_numpy(splits().valid.pixels.load(0)))
