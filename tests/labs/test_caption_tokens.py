"""Captions that are followed, on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.labs import caption_tokens
from descend.labs._evidence import judge_seed
from descend.labs.caption_tokens import draw_pairs, figure, measure, read_images
from descend.seeds import generator

verdict = partial(judge_seed, caption_tokens)


@pytest.mark.system("dall-e-1")
@pytest.mark.system("dall-e-1", "conditional", "dvae")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=3.2)
    assert verdict(numbers) == "supported", numbers["followed"]
    assert max(numbers["shuffled"]) < 0.4
    assert len(figure(numbers).axes) == 16
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "followed": [1.0, 0.5]}) == "refuted"


def test_the_reader_reads_real_images_right() -> None:
    captions, x = draw_pairs(200, generator(0))
    assert torch.equal(read_images(x), captions)
    assert -1.3 < x.min() < x.max() < 1.3
