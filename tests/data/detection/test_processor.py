"""preprocessor_config.json: the public processors of detectors give the numbers that ours gives, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from descend.data.detection.framing import Framing, Letterbox, ShortestEdge, Stretch
from descend.data.detection.prepare import DetectionPreprocessing
from descend.errors import Mistake
from tests.close import close

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def public(name: str) -> Any:
    import transformers

    return getattr(transformers, name)


def photo(h: int, w: int) -> np.ndarray:
    return np.random.default_rng(h * w).integers(0, 256, (h, w, 3), np.uint8)


@pytest.mark.parametrize(
    ("name", "framing", "sizes"),
    [
        ("DetrImageProcessorPil", ShortestEdge(64, 100), [(40, 70), (50, 45)]),
        ("DetrImageProcessorPil", Letterbox(64), [(40, 70), (90, 30)]),
        ("YolosImageProcessorPil", ShortestEdge(64, 100, 16), [(40, 70)]),
        ("RTDetrImageProcessorPil", Stretch(64, 96), [(40, 70), (90, 30)]),
        ("ConditionalDetrImageProcessorPil", ShortestEdge(), [(30, 41)]),
    ],
)
def test_what_is_saved_opens_there_and_gives_the_same(
    name: str, framing: Framing, sizes: list[tuple[int, int]], tmp_path: Path
) -> None:
    prepare = DetectionPreprocessing(framing, MEAN, STD, ("a", "b"))
    prepare.save(tmp_path)
    theirs = public(name).from_pretrained(tmp_path)
    images = [photo(*size) for size in sizes]
    found = theirs(images, return_tensors="pt")["pixel_values"]
    close(prepare(images).x, found)
    assert DetectionPreprocessing.read(tmp_path) == prepare


@pytest.mark.parametrize(
    ("name", "framing"),
    [
        ("DetrImageProcessorPil", ShortestEdge()),
        ("YolosImageProcessorPil", ShortestEdge(multiple=16)),
        ("RTDetrImageProcessorPil", Stretch(640, 640)),
        ("OwlViTImageProcessorPil", Stretch(768, 768)),
        ("Owlv2ImageProcessorPil", Letterbox(960)),
        ("DeformableDetrImageProcessorPil", ShortestEdge()),
    ],
)
def test_a_public_file_is_understood(name: str, framing: Framing, tmp_path: Path) -> None:
    theirs = public(name)()
    theirs.save_pretrained(tmp_path)
    prepare = DetectionPreprocessing.read(tmp_path)
    assert prepare.framing == framing
    image = photo(60, 44)
    found = theirs([image], return_tensors="pt")["pixel_values"]
    ours = prepare([image]).x
    if name.startswith("Owlv2"):  # smoothed by a Gaussian there: the ground and the place agree, pixels nearly
        assert ours.shape == found.shape
        assert torch.equal(ours[0, :, 0, -100:], found[0, :, 0, -100:].float())
        assert (ours - found)[:, :, 20:-20, 20:600].abs().mean() < 0.25
    else:
        close(ours, found, loosen=2)


def test_the_way_back_of_a_public_processor(tmp_path: Path) -> None:
    """Boxes as shares of the padded input, as DETR's annotations are scaled."""
    prepare = DetectionPreprocessing(ShortestEdge(64, 100), MEAN, STD)
    found = prepare([photo(40, 70)])
    assert found.x.shape[2:] == (57, 100)
    close(found.back[0], torch.tensor([100 / 70, 57 / 40, 0, 0]))


def test_old_files(tmp_path: Path) -> None:
    old = {"feature_extractor_type": "DetrFeatureExtractor", "size": 800, "max_size": 1333, "do_resize": True}
    old |= {"do_normalize": True, "image_mean": MEAN, "image_std": STD, "format": "coco_detection"}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(old))
    assert DetectionPreprocessing.read(tmp_path) == DetectionPreprocessing(ShortestEdge(), MEAN, STD)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"size": {"height": 0, "width": 64}}, "a side of 0"),
        ({"size": "large"}, "not an object"),
        ({"size": {"edge": 3}}, "lacks 'height'"),
        ({"do_resize": False}, "no common size"),
        ({"do_center_crop": True}, "do_center_crop"),
        ({"image_std": [0, 1, 1]}, "above 0"),
        ({"image_mean": [0.5]}, "1 means"),
        ({"resample": 9}, "resample 9"),
        ({"size": {"max_height": 64, "max_width": 32}}, "only squares"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    DetectionPreprocessing(Stretch(64, 64), MEAN, STD).save(tmp_path)
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Mistake, match=told):
        DetectionPreprocessing.read(tmp_path)


def test_a_letterbox_in_the_middle_is_kept(tmp_path: Path) -> None:
    prepare = DetectionPreprocessing(Letterbox(320, 0.5), MEAN, STD, ("cat",))
    prepare.save(tmp_path)
    assert DetectionPreprocessing.read(tmp_path) == prepare
