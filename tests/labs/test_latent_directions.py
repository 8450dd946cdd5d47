"""Directions of attributes in a VAE and in a GAN, on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.labs import latent_directions
from descend.labs._evidence import judge_seed
from descend.labs.latent_directions import draw_images, figure, find_spot, measure, read_bar
from descend.seeds import generator

verdict = partial(judge_seed, latent_directions)

SLUG = "latent-traversals"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "direction", "smooth", "edits")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=3.5)
    assert verdict(numbers) == "supported", numbers
    assert len(figure(numbers).axes) == 2
    for change in ({"steps": 10}, {"pattern": [0.5, 0.9]}, {"edited": [1.0, 0.2]}, {"walk": [8.0, 1.0]}):
        assert verdict({**numbers, **change}) == ("open" if "steps" in change else "refuted")


def test_the_images_are_what_they_say() -> None:
    x, has = draw_images(100, generator(0))
    assert torch.equal(read_bar(x), has)
    assert 0 <= x.min() <= x.max() <= 1
    one = torch.zeros(1, 1, 8, 8)
    one[0, 0, 2, 5] = 1
    assert find_spot(one).tolist() == [[2.0, 5.0]]
