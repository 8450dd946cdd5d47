"""Masks over images: exact colours, edges, errors, and the exhibit."""

from __future__ import annotations

import numpy as np
import pytest

from descend.contracts import Exhibit
from descend.report.exhibits import make_section
from descend.report.overlay import VOID, draw_masks, make_palette, mark_errors, overlay_mask
from tests.close import close

COLOURS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.system("semantic-segmentation-task", "colour-map")
def test_inside_tinted_edges_whole_and_class_0_untouched() -> None:
    image = np.full((3, 4, 4), 0.4)
    mask = np.zeros((4, 4), int)
    mask[1:, 1:] = 1
    shown = overlay_mask(image, mask, COLOURS)
    close(shown[0, 0], np.array([0.4, 0.4, 0.4]))
    close(shown[2, 2], np.array([0.79, 0.14, 0.14]))
    mask[3, 3] = 2
    close(overlay_mask(image, mask, COLOURS)[3, 2], np.array([1.0, 0.0, 0.0]))  # its neighbour has another class


def test_errors_are_red_and_pixels_without_a_class_are_not() -> None:
    image = np.ones((1, 2, 2))
    shown = mark_errors(image, np.array([[0, 1], [VOID, 1]]), np.array([[0, 0], [2, 1]]))
    assert (shown[0, 1] == [0.93, 0.11, 0.14]).all()
    assert (shown[[0, 1, 1], [0, 0, 1]] == 0.35).all()


def test_colours_differ() -> None:
    tones = make_palette(21)
    assert tones.shape == (21, 3)
    apart = np.abs(tones[:, None] - tones[None]).max(-1) + np.eye(21)
    assert apart.min() > 0.05
    assert ((tones >= 0) & (tones <= 1)).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="the mask is"):
        overlay_mask(np.zeros((3, 4, 4)), np.zeros((4, 5)), COLOURS)
    with pytest.raises(ValueError, match="class 3 has no colour"):
        overlay_mask(np.zeros((3, 2, 2)), np.full((2, 2), 3), COLOURS)
    with pytest.raises(ValueError, match="shape"):
        overlay_mask(np.zeros((2, 2, 2)), np.zeros((2, 2)), COLOURS)


@pytest.mark.system("semantic-segmentation-task", "colour-map")
def test_the_exhibit_has_four_images_a_row_and_a_legend() -> None:
    content = {
        "images": np.random.default_rng(0).random((2, 3, 8, 8)),
        "truth": np.ones((2, 8, 8), int),
        "answers": np.zeros((2, 8, 8), int),
        "labels": ["earth", "a<b"],
        "captions": ["first", "second"],
    }
    drawn = draw_masks(content)
    assert drawn.count("data:image/png;base64,") == 8
    assert "a&lt;b" in drawn
    assert "earth" not in drawn  # class 0 is not tinted
    assert "could not be drawn" not in make_section(Exhibit("masks", "Hardest", content))
