"""Images with captions: generated scenes whose captions say what is there, or a list of files.

    "a small red circle at the top left"        colour and shape in most, in the others one of the two; size and
    "a photo of a red shape", "a large circle"  place in some: people do not say everything they see either

Some training images are black and white, and their captions tell no colour: what makes a shape is not its colour.
Of the colours and shapes some pairs are held out: each colour and each shape is seen in training, these pairs never.
Their images are the test part. To name them a model must have learned what a word means apart from the others.

A file .jsonl or .csv lists image and caption; --data.path names it. Its parts are its own, if it has a column for them,
or shares; an image with several captions is in one part only. There are no classes then.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated

import torch
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from descend.data.images.facts import digest_images
from descend.data.images.files import decode_all
from descend.data.images.frame import Frame
from descend.data.images.manifest import read_manifest
from descend.data.streams.arrays import generator
from descend.data.streams.splits import describe_leaks, split_by_group
from descend.data.toys.scenes import COLOURS, SHAPES, Scenes, one_object
from descend.errors import Mistake
from descend.ranges import Count, Fraction, Length, Range
from descend.text.caption import caption_tokens
from descend.text.tokenizer import END, Tokenizer

__all__ = ["Captioned", "CaptionedParts", "Captions", "caption_tokens", "pixels"]

START = "<|startoftext|>"
RADIUS, TILT = (0.22, 0.36), 0.25  # of the one object, as a share of the side; how far from upright, in radians
SMALL, LARGE = 0.48, 0.60  # of the side: what is called small or large
ROWS, COLUMNS = ("top", "", "bottom"), ("left", "", "right")
TOLD = 0.7  # how often a caption tells the size, and how often the place
ONLY = 0.1  # how often it tells the colour alone, and how often the shape alone
GREY = 0.3  # how many training images are black and white
LIGHT = (0.299, 0.587, 0.114)  # how bright red, green and blue look
HELD_OUT = 8  # every shape lacks a colour: the pairs (i, j) with i + j a multiple of this
FORMS = ("{}", "a photo of {}", "a picture of {}", "there is {}")


@dataclass(frozen=True)
class Captioned:
    """n images x (n, c, s, s) of 8 bits, their captions, and their classes y (n); none where there are no classes."""

    x: Tensor
    captions: list[str]
    y: Tensor | None = None

    def __len__(self) -> int:
        return len(self.captions)


@dataclass(frozen=True)
class CaptionedParts:
    """Training, validation and test, and the names of the classes: "a red circle"; those held out, by number."""

    train: Captioned
    valid: Captioned
    test: Captioned
    classes: tuple[str, ...] = ()
    held_out: tuple[int, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    """Leaks between the parts, as a run says it."""


@dataclass(frozen=True)
class Captions:
    """Where images and captions come from."""

    path: str = ""
    """A .jsonl or .csv file that lists image and caption; empty: generated scenes."""
    size: Annotated[int, Range(int, least=8, most=4096)] = 32
    """Side of the images, in pixels."""
    count: Count = 12000
    """Scenes generated for training."""
    vocab: Length = 512
    """Maximum vocabulary size of the tokenizer."""
    longest: Length = 24
    """Maximum tokens of a caption, start and end included; longer ones are cut."""
    valid: Fraction = 0.1
    """Share used for validation, where the file names no parts."""
    test: Fraction = 0.1
    """Share used for testing, likewise."""
    group: str = ""
    """Column that says what images belong to, e.g. a film: all of a group go to the same part; empty: the image."""

    def read(self) -> CaptionedParts:
        """All parts, or a mistake that names the file."""
        return self.read_manifest() if self.path else generate_captions(self.size, self.count)

    def read_manifest(self) -> CaptionedParts:
        """The images of a manifest."""
        found = read_manifest(self.path, self.group)
        if not found.captions:
            raise Mistake(f"{self.path} has no column caption; give lines of image and caption")
        place, x = self.decode(found.paths)
        parts = []
        cut = self.cut(found.groups or found.paths, found.parts)
        for rows in cut:
            if not len(rows):
                raise Mistake(f"{self.path}: a part has no image; give more, or other --data.valid, --data.test")
            images = torch.tensor([place[found.paths[i]] for i in rows.tolist()])
            parts.append(Captioned(x[images], [found.captions[i] for i in rows.tolist()]))
        digests = digest_images(x)
        shown = [digests[place[path]] for path in found.paths]
        facts = describe_leaks(shown, dict(zip(("train", "valid", "test"), cut, strict=True)))
        return CaptionedParts(parts[0], parts[1], parts[2], facts=facts)

    def decode(self, paths: Sequence[Path]) -> tuple[dict[Path, int], Tensor]:
        """The number of each image, however often it is listed, and its pixels."""
        place = {path: i for i, path in enumerate(dict.fromkeys(paths))}
        return place, decode_all(list(place), 3, Frame(self.size, self.size, (self.size,)), os.cpu_count() or 1)

    def read_unseen(self, path: str) -> Captioned:
        """Another list of images and captions: those of its test part, or all where it names no parts."""
        found = read_manifest(path)
        if not found.captions:
            raise Mistake(f"{path} has no column caption; give lines of image and caption")
        rows = [i for i, part in enumerate(found.parts) if part == "test"] if found.parts else range(len(found.paths))
        if not rows:
            raise Mistake(f"{path}: no image has the part test; name some, or leave the column out")
        place, x = self.decode([found.paths[i] for i in rows])
        return Captioned(x[[place[found.paths[i]] for i in rows]], [found.captions[i] for i in rows])

    def cut(self, groups: Sequence[Hashable], parts: Sequence[str]) -> list[Tensor]:
        """Rows of the three parts: those that the file names, or shares in random order, group by group."""
        if parts:
            return [torch.tensor([i for i, p in enumerate(parts) if p == name]) for name in ("train", "valid", "test")]
        if self.valid <= 0 or self.test <= 0 or self.valid + self.test >= 1:
            raise Mistake(f"--data.valid {self.valid} and --data.test {self.test}: above 0, and their sum below 1")
        valid, test, train = split_by_group(groups, (self.valid, self.test))
        return [train, valid, test]

    def learn_tokenizer(self, captions: Sequence[str]) -> Tokenizer:
        """Byte-level BPE; a text stands between a start and an end token, and is filled up with the latter."""
        tokenizer = Tokenizer.bpe("\n".join(captions), self.vocab)
        tokenizer = tokenizer.with_specials({"bos_token": START, "pad_token": END})
        start, end = tokenizer.special("bos_token"), tokenizer.end
        tokenizer.inner.post_processor = TemplateProcessing(
            single=f"{START} $A {END}", special_tokens=[(START, start), (END, end)]
        )
        return tokenizer


@lru_cache(maxsize=2)
def generate_captions(side: int, count: int) -> CaptionedParts:
    """Scenes of one object; the test part has the pairs of colour and shape that training lacks."""
    seen, apart = combinations()
    held_out = max(count // 10, 64)
    wanted = ((count, seen, GREY), (held_out, seen, 0.0), (held_out, apart, 0.0))
    parts = [
        scene_captions(one_object(n, side, generator(7, i), pairs, RADIUS, TILT), generator(8, i), grey)
        for i, (n, pairs, grey) in enumerate(wanted)
    ]
    numbers = [SHAPES.index(shape) * len(COLOURS) + COLOURS.index(colour) for shape, colour in apart]
    return CaptionedParts(parts[0], parts[1], parts[2], class_names(), tuple(numbers))


def combinations() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(shape, colour) pairs to train on, and those that are held out."""
    every = list(product(enumerate(SHAPES), enumerate(COLOURS)))
    parts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for (i, shape), (j, colour) in every:
        parts[(i + j) % HELD_OUT == 0].append((shape, colour))
    return parts


def class_names() -> tuple[str, ...]:
    """Every shape in every colour, as a text calls it: class shape · colours + colour."""
    return tuple(thing(colour, shape) for shape, colour in product(SHAPES, COLOURS))


def thing(*words: str) -> str:
    """The words behind the right article."""
    said = " ".join(word for word in words if word)
    return f"{'an' if said[0] in 'aeiou' else 'a'} {said}"


def scene_captions(scenes: Scenes, random: torch.Generator, grey: float = 0.0) -> Captioned:
    """What each scene of one object shows, said in one of many ways; a share of them turns black and white."""
    side = scenes.x.shape[-1]
    x0, y0, x1, y1 = (scenes.box[:, 0] / side).unbind(1)
    extent = torch.maximum(x1 - x0, y1 - y0)
    third = [(3 * (a + b) / 2).long().clamp(0, 2).tolist() for a, b in ((y0, y1), (x0, x1))]
    size = ((extent > LARGE).int() - (extent < SMALL).int()).tolist()
    told = torch.rand(len(scenes), 4, generator=random).tolist()
    plain = torch.rand(len(scenes), generator=random) < grey
    brightness = torch.einsum("nchw,c->nhw", scenes.x, torch.tensor(LIGHT))[:, None]
    x = torch.where(plain[:, None, None, None], brightness, scenes.x)
    captions = []
    shape, colour = scenes.shape[:, 0], scenes.colour[:, 0]
    for n, (i, j) in enumerate(zip(shape.tolist(), colour.tolist(), strict=True)):
        only_shape = bool(plain[n]) or told[n][3] > 1 - ONLY
        only_colour = not only_shape and told[n][3] < ONLY
        what = "" if only_shape else COLOURS[j], "shape" if only_colour else SHAPES[i]
        words = ["", "large", "small"][size[n]] if told[n][0] < TOLD else "", *what
        where = place(third[0][n], third[1][n]) if told[n][1] < TOLD else ""
        captions.append(FORMS[int(told[n][2] * len(FORMS))].format(thing(*words)) + where)
    return Captioned((x * 255).round().to(torch.uint8), captions, shape * len(COLOURS) + colour)


def place(row: int, column: int) -> str:
    """Where it is, in thirds."""
    words = " ".join(word for word in (ROWS[row], COLUMNS[column]) if word)
    return f" at the {words}" if words else " in the middle"


def pixels(x: Tensor) -> Tensor:
    """8 bits to −1..1, as the model reads them."""
    return x.float() / 127.5 - 1
