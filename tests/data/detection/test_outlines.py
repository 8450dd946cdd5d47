"""Outlines as masks: polygons and run lengths, the smaller before the larger; large files are bounded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.data.detection import coco, members
from descend.data.detection.objects import Objects, StackedPixels
from descend.data.detection.outlines import box_masks, decode_runs, with_masks
from descend.data.detection.source import DetectionSource
from descend.errors import Mistake
from tests.data.detection import sets


def make(outlines: tuple[object, ...], boxes: list[list[float]]) -> Objects:
    box = torch.tensor(boxes, dtype=torch.float64)
    k = len(boxes)
    return Objects(
        StackedPixels(torch.zeros(1, 20, 30, 3, dtype=torch.uint8)),
        torch.tensor([[20, 30]]),
        box,
        torch.zeros(k, dtype=torch.long),
        torch.arange(k),
        torch.zeros(k, dtype=torch.bool),
        (box[:, 2:] - box[:, :2]).prod(1),
        torch.arange(1),
        ("a",),
        outlines,
    )


def test_the_extent_of_a_mask_is_its_box() -> None:
    objects = make(([[2, 3, 9, 3, 9, 11, 2, 11]], None), [[2, 3, 10, 12], [15, 5, 25, 18]])
    found = with_masks(objects)
    assert found.instances is not None
    maps = torch.from_numpy(found.instances.load(0).copy())
    assert torch.equal(box_masks(maps, 2), objects.boxes.long())


def test_the_smaller_lies_before_the_larger() -> None:
    found = with_masks(make((None, None), [[10, 5, 14, 9], [2, 2, 28, 18]]))
    assert found.instances is not None
    assert found.instances.load(0)[6, 12] == 1
    assert found.instances.load(0)[15, 5] == 2
    kept = found.keep(torch.tensor([False, True]))
    assert kept.instance_numbers.tolist() == [2]


def test_run_lengths_go_down_the_columns() -> None:
    mask = np.zeros((4, 3), bool)
    mask[1:3, 1] = mask[0, 2] = True
    flat = mask.T.flatten()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flat, [False]])))
    counts = np.diff(np.concatenate([[0], edges, [len(flat)]])).tolist()
    assert np.array_equal(decode_runs({"counts": counts}, 4, 3), mask)
    assert not decode_runs({"counts": [5]}, 4, 3).any()
    assert decode_runs({"counts": [0, 10**9]}, 4, 3).all()


def test_too_many_objects_for_a_map() -> None:
    with pytest.raises(Mistake, match="300 objects"):
        with_masks(make((), [[i % 29, i % 19, i % 29 + 1, i % 19 + 1] for i in range(300)]))


def test_a_set_with_polygons_brings_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = DetectionSource(str(sets.coco(tmp_path / "set")), size=64, masks=True)
    splits = source.read()
    row = splits.train.names.index("a.jpg")
    assert splits.train.instances is not None
    drawn = splits.train.instances.load(row)
    assert drawn.shape == (40, 60)
    assert 230 < int((drawn == 2).sum()) < 310  # the triangle has 260
    monkeypatch.setattr(coco, "OUTLINED", 10)  # a larger file: boxes only
    assert not source.read().train.outlines


def test_a_file_is_read_up_to_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"info": {"a": [1, 2]}, "images": [{"id": 1}, 2], "x": "y"}))
    assert list(members.read_members(path)) == [
        ("info", -1, {"a": [1, 2]}),
        ("images", 0, {"id": 1}),
        ("images", 1, 2),
        ("x", -1, "y"),
    ]
    monkeypatch.setattr(members, "MOST", 20)
    with pytest.raises(Mistake, match="bytes; at most 20 are read; split the set"):
        list(members.read_members(path))


@pytest.mark.parametrize("text", ['{"a": [1,]}', '{"a": 1,}', '{"a" 1}', '{"a": 1} x', "{1: 2}", '{"a": [1 2]}', "3"])
def test_what_is_not_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(Mistake, match=r"a\.json.* not valid JSON"):
        list(members.read_members(path))
    with pytest.raises(ValueError, match=r".") if text != "3" else pytest.raises(AssertionError):
        assert isinstance(json.loads(text), dict)
