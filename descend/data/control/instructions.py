"""What a robot is told in words: which cube to pick, and which bin to place it in.

    pick the red cube and place it in the blue bin        two colours; "pick red, place blue" says the same

`compose` writes such sentences in several ways, `understand` reads one: the first colour is that of the cube, the
second that of the bin. A learned policy gets the words themselves.

Systems: vla-policy, vlm-to-policy
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.data.control.arm_world import PAINTS, Scene
from descend.errors import Mistake, nearest
from descend.text.word_table import split_words

FORMS = (
    "pick the {} cube and place it in the {} bin",
    "take the {} cube and put it in the {} bin",
    "pick {} , place {}",
    "put the {} cube in the {} bin",
)
ONE_BIN = ("pick the {} cube", "take the {} cube and put it in the bin", "pick {}")


WORDS = tuple(sorted({word for form in (*FORMS, *ONE_BIN) for word in split_words(form)} | set(PAINTS)))
"""Every word of these sentences."""
LONGEST = max(len(split_words(form.format("red", "red"))) for form in FORMS)
"""Words in a sentence, at most."""


class Request(NamedTuple):
    """What is asked for: numbers of colours in PAINTS; no bin is −1."""

    cube: int
    bin: int


def compose(scene: Scene, form: Tensor) -> list[str]:
    """A sentence for every scene, in one of the forms (b)."""
    several = scene.bins.shape[1] > 1
    forms = FORMS if several else ONE_BIN
    rows = torch.arange(len(scene))
    cube, place = scene.paint[rows, scene.target].tolist(), scene.bin_paint[rows, scene.place].tolist()
    return [
        forms[int(f) % len(forms)].format(PAINTS[c], PAINTS[p])
        for f, c, p in zip(form.tolist(), cube, place, strict=True)
    ]


def understand(text: str) -> Request:
    """The colours of cube and bin that a text names, in this order."""
    named = [word for word in split_words(text) if word in PAINTS]
    if not named:
        known = ", ".join(PAINTS)
        hint = next((found for word in split_words(text) if (found := nearest(word, PAINTS))), "")
        raise Mistake(f"{text!r} names no colour; say which cube to pick, one of {known}.{hint}")
    if len(named) > 2:
        raise Mistake(f"{text!r} names {len(named)} colours; name the cube's and then the bin's")
    return Request(PAINTS.index(named[0]), PAINTS.index(named[1]) if len(named) > 1 else -1)


def aim(scene: Scene, request: Request) -> Scene:
    """The scenes with the cube and bin that are asked for as what is meant; a colour that is not there is a mistake."""
    target = find_paint(scene.paint, request.cube, "cube")
    place = scene.place if request.bin < 0 else find_paint(scene.bin_paint, request.bin, "bin")
    return scene.changed(target=target, place=place)


def find_paint(paint: Tensor, wanted: int, thing: str) -> Tensor:
    """Which of the things (b, n) has the colour (b)."""
    has = paint == wanted
    if not bool(has.any(dim=1).all()):
        row = int((~has.any(dim=1)).nonzero()[0])
        there = ", ".join(PAINTS[k] for k in paint[row].tolist())
        raise Mistake(f"there is no {PAINTS[wanted]} {thing}; the {thing}s here are {there}")
    return has.int().argmax(dim=1)
