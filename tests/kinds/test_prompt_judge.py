"""A judge of prompts: it finds the share of images that show what they were asked to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Wish
from descend.data.images.captions import RADIUS, TILT, combinations
from descend.data.toys.scenes import COLOURS, SHAPES, draw_scenes
from descend.kinds import prompt_judge
from descend.kinds.prompt_judge import EACH, EVERY, ask_pairs, judge_prompts, rate_reader, train_reader
from descend.seeds import generator

SIDE = 16


class Painter(nn.Module):
    """Draws the shape that its prompt names, in the colour that comes `off` places after the one it names."""

    def __init__(self, off: int):
        super().__init__()
        self.off, self.nothing = off, nn.Parameter(torch.zeros(()))

    def generate(self, chance: Any, wish: Wish) -> Tensor:
        words = [prompt.removeprefix("a picture of ").split() for prompt in wish.prompts]
        shape = torch.tensor([[SHAPES.index(name)] for _, _, name in words])
        colour = torch.tensor([[(COLOURS.index(name) + self.off) % len(COLOURS)] for _, name, _ in words])
        present = torch.ones(len(words), 1, dtype=torch.bool)
        return 2 * draw_scenes(shape, colour, present, SIDE, generator(5, len(words)), RADIUS, TILT).x - 1


@pytest.mark.system("text-to-image-pipeline")
def test_right_images_are_told_from_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A painter that obeys is right as often as the reader reads rightly; one of wrong colours never is."""
    reader = train_reader(SIDE, 250)
    monkeypatch.setattr(prompt_judge, "train_reader", lambda side: reader)
    accuracy = rate_reader(reader, SIDE)
    assert accuracy > 0.6, "a short training at 16 pixels reads most scenes"
    obeys, errs = (judge_prompts(Painter(off), ask_pairs(600), SIDE) for off in (0, 1))
    assert obeys["reader"] == accuracy
    assert abs(obeys["right"] - accuracy) < 0.12
    assert errs["right"] == errs["colour"] < 0.1 < errs["shape"]


def test_every_pair_is_asked_as_often() -> None:
    asked = ask_pairs(1000)
    assert asked[asked >= 0].bincount().tolist() == [EACH] * len(EVERY)
    assert (asked[EACH * len(EVERY) :] == -1).all()
    assert len(ask_pairs(10)) == 10
    seen, apart = combinations()
    assert set(seen) | set(apart) == set(EVERY)
