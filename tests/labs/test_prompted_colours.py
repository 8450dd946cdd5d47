"""Prompts that are followed, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.labs import prompted_colours
from descend.labs._evidence import judge_seed
from descend.labs.prompted_colours import draw_squares, figure, measure, read_colours
from descend.seeds import generator

verdict = partial(judge_seed, prompted_colours)


@pytest.mark.system("text-to-image-pipeline")
def test_numbers_verdict_and_figure() -> None:
    """A few steps say nothing; what the whole budget gives is recorded with the other labs."""
    numbers = measure(0, budget=0.4)
    assert verdict(numbers) == "open"
    assert numbers["real"] == 1
    assert numbers["untrained"] < 0.5
    assert len(figure(numbers).axes) == 16
    assert verdict({**numbers, "steps": 480, "right": [0.7, 0.9]}) == "supported"
    assert verdict({**numbers, "steps": 480, "right": [1.0, 0.5]}) == "refuted"


def test_the_reader_reads_real_images_right() -> None:
    found = draw_squares(200, generator(0))
    assert found.y is not None
    assert torch.equal(read_colours(found.x / 255), found.y)
    assert found.captions[0].split()[2] == "square"
