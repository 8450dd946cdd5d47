"""Twenty colours, as far apart as twenty can be: measured in OKLab, also as colour-blind readers see them."""

from __future__ import annotations

import numpy as np
import pytest

from descend.web.palette import DARK, LIGHT, PALETTE, read_colour
from descend.web.style import STYLE

# Linear RGB -> cone responses -> OKLab (Ottosson 2020).
CONES = np.array(
    [[0.4122215, 0.5363325, 0.0514460], [0.2119035, 0.6806995, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
)
LAB = np.array(
    [[0.2104543, 0.7936178, -0.0040720], [1.9779985, -2.4285922, 0.4505937], [0.0259040, 0.7827718, -0.8086758]]
)
# What is left of linear RGB without one kind of cone (Machado, Oliveira and Fernandes 2009).
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def to_oklab(colours: tuple[str, ...], sight: str) -> np.ndarray:
    rgb = np.array([read_colour(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen: np.ndarray = np.cbrt((linear @ SIGHT[sight].T).clip(0, 1) @ CONES.T) @ LAB.T
    return seen


def test_white_is_light_and_grey_has_no_hue() -> None:
    assert np.allclose(to_oklab(("#ffffff",), "all cones"), [[1, 0, 0]], atol=1e-3)
    assert np.allclose(to_oklab(("#777777",), "protanopia")[0, 1:], 0, atol=1e-3)


@pytest.mark.parametrize(("sight", "least"), [("all cones", 0.115), ("protanopia", 0.07), ("deuteranopia", 0.07)])
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_no_two_colours_are_near(colours: tuple[str, ...], sight: str, least: float) -> None:
    seen = to_oklab(colours, sight)
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + np.eye(len(seen))
    i, j = np.unravel_index(apart.argmin(), apart.shape)
    assert apart.min() > least, f"{colours[i]} and {colours[j]}"


def test_all_can_be_seen_on_their_page() -> None:
    assert to_oklab(LIGHT, "all cones")[:, 0].max() < 0.82  # a card is white
    assert to_oklab(DARK, "all cones")[:, 0].min() > 0.5  # a card is 0.23


def test_the_page_knows_every_colour() -> None:
    assert PALETTE == len(LIGHT) == len(DARK) == 20
    assert all(f"--c{k}: {colour};" in STYLE for tones in (LIGHT, DARK) for k, colour in enumerate(tones))
