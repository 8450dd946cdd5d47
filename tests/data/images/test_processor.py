"""preprocessor_config.json: transformers' own processors give the same numbers, and open what is written here."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from descend.data.images.frame import BICUBIC, BILINEAR, Frame
from descend.data.images.labelled import PREPROCESSOR, Images, Preprocessing, Splits
from descend.data.images.pixels import to_tensor
from descend.errors import Mistake
from tests.close import close
from tests.data.photos import pixels, save

transformers = pytest.importorskip("transformers")


def processor(name: str, **values: Any) -> Any:
    """transformers' processor that needs Pillow only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name + "Pil")(**values)


WIDE, HIGH = pixels(1, 90, 131), pixels(2, 140, 97)
SIX = {"size": {"height": 40, "width": 36}}
CASES: dict[str, dict[str, Any]] = {
    "ViTImageProcessor": SIX,
    "DeiTImageProcessor": {
        "size": {"height": 40, "width": 44},
        "crop_size": {"height": 32, "width": 30},
        "resample": 3,
    },
    "CLIPImageProcessor": {"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 40}},
    "ConvNextImageProcessor": {"size": {"shortest_edge": 56}, "crop_pct": 0.875},
    "MobileNetV1ImageProcessor": {"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 40}},
    "MobileNetV2ImageProcessor": {"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 40}},
    "MobileViTImageProcessor": {"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 40}},
}


@pytest.mark.parametrize("name", CASES)
def test_their_files_are_read_and_give_their_numbers(tmp_path: Path, name: str) -> None:
    theirs = processor(name, **CASES[name])
    theirs.save_pretrained(tmp_path)
    prepare = Preprocessing.read(tmp_path)
    files = [save(tmp_path / f"{i}.png", image) for i, image in enumerate((WIDE, HIGH))]
    expected = theirs([Image.fromarray(WIDE), Image.fromarray(HIGH)], return_tensors="pt")["pixel_values"]
    close(prepare.files(files), expected)
    for image, numbers in zip((WIDE, HIGH), expected, strict=True):  # tensors are not rounded to 8 bits on the way
        step = 1.01 / 255 / min(prepare.std) * (2 if prepare.resample == BICUBIC else 1)
        assert (prepare(to_tensor(image)[None])[0] - numbers).abs().max() <= step
    again = tmp_path / "again"
    again.mkdir()
    prepare.save(again)
    assert Preprocessing.read(again) == prepare


@pytest.mark.parametrize("edges", [(), (20,), (20, 22)])
def test_ours_open_there(tmp_path: Path, edges: tuple[int, ...]) -> None:
    prepare = Preprocessing((3, 18, 18), (0.4, 0.5, 0.3), (0.2, 0.3, 0.25), ("a", "b"), edges, BICUBIC)
    prepare.save(tmp_path)
    name = json.loads((tmp_path / PREPROCESSOR).read_text())["image_processor_type"]
    theirs = getattr(transformers, name + "Pil").from_pretrained(tmp_path)
    expected = theirs(Image.fromarray(WIDE), return_tensors="pt")["pixel_values"]
    close(prepare.files([save(tmp_path / "a.png", WIDE)]), expected)
    assert Preprocessing.read(tmp_path) == prepare


def test_wide_convnext_is_stretched_and_other_scales_are_kept(tmp_path: Path) -> None:
    values = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}, "resample": 3}
    values |= {"image_mean": [0.5] * 3, "image_std": [0.25] * 3, "rescale_factor": 1 / 127.5}
    prepare = written_and_read(tmp_path, values)
    assert (prepare.image, prepare.edges) == ((3, 384, 384), ())
    close(prepare.mean, [0.25] * 3)
    close(prepare.std, [0.125] * 3)
    plain = written_and_read(tmp_path, {"size": 8, "do_normalize": False, "do_rescale": False})
    close(plain(torch.full((1, 3, 8, 8), 0.2)), torch.full((1, 3, 8, 8), 51.0))


def written_and_read(folder: Path, values: dict[str, Any]) -> Preprocessing:
    (folder / PREPROCESSOR).write_text(json.dumps(values))
    return Preprocessing.read(folder)


def test_older_files(tmp_path: Path) -> None:
    """Ours from before, and public ones whose sizes are plain numbers."""
    ours = {"size": {"height": 8, "width": 6}, "num_channels": 1, "rescale_factor": 1 / 255}
    ours |= {"image_mean": [0.3], "image_std": [0.2], "labels": ["0", "1"]}
    assert written_and_read(tmp_path, ours) == Preprocessing((1, 8, 6), (0.3,), (0.2,), ("0", "1"))
    half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    vit = written_and_read(tmp_path, {"feature_extractor_type": "ViTFeatureExtractor", "size": 224, **half})
    assert (vit.image, vit.edges) == ((3, 224, 224), ())
    clip = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 224, "crop_size": 200, "do_center_crop": True}
    found = written_and_read(tmp_path, {**clip, **half})
    assert (found.image, found.edges) == ((3, 200, 200), (224,))


def test_labels_of_config_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "cat", "1": "dog"}}))
    processor("ViTImageProcessor").save_pretrained(tmp_path)
    assert Preprocessing.read(tmp_path).labels == ("cat", "dog")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"size": {"height": 8, "width": 8}}, "lacks 'image_mean'"),
        ({"image_mean": [0.5], "image_std": [0.5]}, "lacks 'size'"),
        ({"size": 8, "do_pad": True}, "do_pad = True is not supported"),
        ({"size": 8, "do_resize": False}, "do_resize is false"),
        ({"size": 8, "image_mean": [0.5] * 3, "image_std": [0.5, 0.5]}, "3 means and 2 deviations for 3 channels"),
        ({"size": 8, "image_mean": [0.5] * 3, "image_std": [0.5, 0.5, 0]}, "must be above 0"),
        (
            {"size": {"shortest_edge": 8}, "do_center_crop": True, "image_mean": 0.5, "image_std": 1},
            "lacks 'crop_size'",
        ),
    ],
)
def test_mistakes(tmp_path: Path, values: dict[str, Any], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        written_and_read(tmp_path, values)


@pytest.mark.parametrize(
    "frame", [Frame(20, 24), Frame(20, 24, (30,)), Frame(20, 24, (25, 40)), Frame(7, 9, (), BICUBIC)]
)
def test_the_two_forms_of_a_frame(frame: Frame) -> None:
    for image in (WIDE, HIGH):
        ours = frame.of_tensors(to_tensor(image)[None])[0]
        theirs = to_tensor(np.asarray(frame.of_image(Image.fromarray(image))))
        assert ours.shape == theirs.shape == (3, frame.height, frame.width)
        assert (ours - theirs).abs().max() <= (1.01 if frame.resample == BILINEAR else 2) / 255


def test_frames_that_cannot_be() -> None:
    with pytest.raises(Mistake, match="edges of 10 are too small for an image of 12×8"):
        Frame(12, 8, (10,))
    with pytest.raises(Mistake, match="at least 1 pixel"):
        Frame(0, 8)
    with pytest.raises(Mistake, match="resample 1"):
        Frame(4, 4, (), 1).of_tensors(torch.rand(1, 3, 8, 8))


def test_statistics_go_with_the_frame() -> None:
    x = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    images = Images(x, torch.arange(6) % 2, torch.arange(6))
    splits = Splits(images, images, images, ("a", "b"), frame=Frame(8, 8, (9,), BICUBIC))
    prepare = Preprocessing.fit(splits)
    assert (prepare.edges, prepare.resample) == ((9,), BICUBIC)
    close(prepare.standardize(x).mean((0, 2, 3)) + 1, torch.ones(3))
