"""Captioned images: generated captions say the truth, pairs are held out, files are read, texts become tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from descend.data.images.captions import (
    Captions,
    caption_tokens,
    class_names,
    combinations,
    pixels,
    scene_captions,
)
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.errors import Mistake


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "kept-apart")
def test_held_out_pairs_have_known_colours_and_shapes() -> None:
    seen, apart = combinations()
    assert len(set(seen) | set(apart)) == len(SHAPES) * len(COLOURS)
    assert not set(seen) & set(apart)
    assert {s for s, _ in seen} == set(SHAPES)
    assert {c for _, c in seen} == set(COLOURS)
    assert len(apart) == len(SHAPES) * len(COLOURS) // 8
    parts = Captions(count=64, size=16).read()
    assert {parts.classes[i] for i in parts.held_out} == {f"{'an' if c == 'orange' else 'a'} {c} {s}" for s, c in apart}
    assert set(parts.test.y.tolist()) <= set(parts.held_out)  # type: ignore[union-attr]
    assert not set(parts.train.y.tolist()) & set(parts.held_out)  # type: ignore[union-attr]


def test_captions_tell_the_truth() -> None:
    """Colour or shape or both; size and place, where told, as the box has them."""
    draw = lambda: one_object(200, 24, generator(0), [("star", "orange"), ("ring", "blue")], (0.22, 0.36), 0.25)
    scenes = draw()
    said = scene_captions(scenes, generator(1))
    box = scenes.box[:, 0] / 24
    names = class_names()
    for caption, y, (x0, y0, x1, y1) in zip(said.captions, said.y.tolist(), box.tolist(), strict=True):  # type: ignore[union-attr]
        _, colour, shape = names[y].split()
        assert any(what in caption for what in (f"{colour} {shape}", f"{colour} shape", shape))
        assert not ({"star", "ring", "orange", "blue"} - {colour, shape}) & set(caption.split())
        assert not {"a orange", "an blue"} & {caption[i : i + n] for n in (7, 8) for i in range(len(caption))}
        extent = max(x1 - x0, y1 - y0)
        assert "large" not in caption or extent > 0.6
        assert "small" not in caption or extent < 0.48
        for word, holds in (("top", y0 + y1 < 2 / 3), ("bottom", y0 + y1 >= 4 / 3), ("left", x0 + x1 < 2 / 3),
                            ("right", x0 + x1 >= 4 / 3)):  # fmt: skip
            assert word not in caption or holds
    assert len(set(said.captions)) > 60
    assert said.x.dtype == torch.uint8
    again = scene_captions(draw(), generator(1))
    assert again.captions == said.captions


def test_tokens_have_a_start_an_end_and_a_length() -> None:
    captions = ["a small red circle at the top left", "a red star", "a blue ring in the middle"]
    tokenizer = Captions(vocab=300).learn_tokenizer(captions)
    tokens = caption_tokens(tokenizer, captions, 30)
    start, end = tokenizer.special("bos_token"), tokenizer.end
    assert tokens.shape == (3, 30)
    assert (tokens[:, 0] == start).all()
    assert (tokens[:, -1] == end).all()
    assert tokenizer.decode_plain(tokens[1].tolist()) == "a red star"
    assert tokenizer.inner.encode(captions[1]).ids == tokens[1][: int((tokens[1] != end).sum()) + 1].tolist()
    short = caption_tokens(tokenizer, captions, 5)
    assert (short[:, -1] == end).all()
    assert torch.equal(short[:, :4], tokens[:, :4])


def test_a_list_of_files(tmp_path: Path) -> None:
    from PIL import Image

    lines = []
    for i in range(20):
        Image.new("RGB", (20 + i, 16), (10 * i, 0, 255)).save(tmp_path / f"{i}.png")
        lines.append({"image": f"{i}.png", "caption": f"image number {i}"})
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    parts = Captions(path=str(path), size=8).read()
    assert [len(parts.train), len(parts.valid), len(parts.test)] == [16, 2, 2]
    assert parts.classes == ()
    assert parts.train.y is None
    for x, caption in zip(parts.train.x, parts.train.captions, strict=True):
        assert x[:, 0, 0].tolist() == [10 * int(caption.split()[-1]), 0, 255]
    with pytest.raises(Mistake, match="their sum below 1"):
        Captions(path=str(path), valid=0.6, test=0.5).read()
    path.write_text("\n".join(json.dumps({"image": line["image"], "label": "a"}) for line in lines))
    with pytest.raises(Mistake, match="has no column caption"):
        Captions(path=str(path)).read()


def test_an_image_with_several_captions_is_in_one_part_only(tmp_path: Path) -> None:
    from PIL import Image

    lines = []
    for i in range(100):
        if i % 5 == 0:
            Image.new("RGB", (8, 8), (i, 0, 255)).save(tmp_path / f"{i // 5}.png")
        lines.append({"image": f"{i // 5}.png", "caption": f"caption {i} of image {i // 5}"})
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    parts = Captions(path=str(path), size=8).read()
    images = [{caption.split()[-1] for caption in part.captions} for part in (parts.train, parts.valid, parts.test)]
    assert [len(found) for found in images] == [16, 2, 2]
    assert not images[0] & images[1] | images[0] & images[2] | images[1] & images[2]
    for x, caption in zip(parts.test.x, parts.test.captions, strict=True):
        assert x[0, 0, 0] == 5 * int(caption.split()[-1])


def test_pixels() -> None:
    assert pixels(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1.0, 1.0]


def test_black_and_white_images_have_captions_without_colours() -> None:
    parts = Captions(size=16, count=300).read()
    train, valid = parts.train, parts.valid
    grey = (train.x.amax(1) - train.x.amin(1)).flatten(1).amax(1) == 0
    assert 0.2 < grey.float().mean() < 0.4
    for i in grey.nonzero()[:, 0].tolist():
        assert not set(COLOURS) & set(train.captions[i].split())
        assert "shape" not in train.captions[i]
    assert not ((valid.x.amax(1) - valid.x.amin(1)).flatten(1).amax(1) == 0).any()
