"""Generators that collapse and discriminators that have left the margin: what is said, and when nothing is."""

from __future__ import annotations

import pytest

from descend.diagnosis.course import read_course
from descend.diagnosis.generators import detect_margin_left, detect_mode_collapse
from descend.diagnosis.live import Watcher
from descend.diagnosis.signs import Curve, Signs

GAN = {"optim.g.lr": 0.002, "optim.d.lr": 0.001, "game.g_moves": 3, "game.loss": "non-saturating", "data.modes": 8}


def curve(*values: float) -> Curve:
    return tuple(enumerate(values, 1))


def points(*modes: float) -> Signs:
    return Signs(values=GAN, judged={"modes": curve(*modes)})


@pytest.mark.system("mode-collapse", "doctor")
def test_a_generator_that_collapsed() -> None:
    found = detect_mode_collapse(points(2, 7, 6, 3, 2, 2, 2))
    assert found
    assert found.name == "mode-collapse"
    assert "cover 2 of 8 modes" in found.evidence
    assert "after 7 at its best" in found.evidence
    assert found.change.startswith("--game.norm spectral --game.loss hinge, or --game.g-moves 2, or --optim.g.lr 0.001")
    assert detect_mode_collapse(points(1, 4, 7, 8, 8, 8)) is None
    assert detect_mode_collapse(points(1, 8, 8, 1, 8, 8)) is None  # it came back
    assert detect_mode_collapse(points(1, 1, 1)) is None  # too early to say


@pytest.mark.system("mode-collapse", "doctor")
def test_classes_of_images() -> None:
    judged = {"classes": curve(10, 9, 4, 4, 4, 4), "coverage": curve(1.0, 0.9, 0.4, 0.4, 0.4, 0.4)}
    found = detect_mode_collapse(Signs(values={"optim.g.lr": 1e-3}, judged=judged))
    assert found
    assert "cover 4 of 10 classes" in found.evidence
    assert detect_mode_collapse(Signs(judged={"classes": curve(4, 4, 4, 4, 4)})) is None  # of how many?


@pytest.mark.system("mode-collapse", "doctor")
def test_a_discriminator_beyond_the_margin() -> None:
    measured = {"real_beyond_margin": curve(*[0.5] * 5, *[1.0] * 15)}
    won = Signs(values=GAN, measured={**measured, "fake_beyond_margin": curve(*[0.5] * 5, *[0.99] * 15)})
    found = detect_margin_left(won)
    assert found
    assert "100% of real and 99% of generated" in found.evidence
    assert found.change.startswith("--optim.d.lr 0.0003")
    fair = Signs(values=GAN, measured={**measured, "fake_beyond_margin": curve(*[0.5] * 20)})
    assert detect_margin_left(fair) is None


@pytest.mark.system("mode-collapse", "doctor")
def test_validation_scores_are_read_from_the_lines_and_watched() -> None:
    recipe = {
        "name": "gan-mixture",
        "values": {"optim": {"class": "Players", "g": {"lr": 0.1}}, "data": {"modes": 8}, "loop": {"steps": 10}},
    }
    lines = [{"step": i, "valid": {"modes": float(m), "quality": 0.5}} for i, m in enumerate((8, 3, 1, 1, 1), 1)]
    signs = read_course(recipe, lines)
    assert signs.judged == {"modes": curve(8, 3, 1, 1, 1), "quality": curve(0.5, 0.5, 0.5, 0.5, 0.5)}
    assert detect_mode_collapse(signs)
    watch = Watcher(recipe)
    said = [watch(line["step"], line["valid"]) for line in lines]  # type: ignore[arg-type]
    assert [bool(one) for one in said] == [False, False, False, True, False]  # once
    again = Watcher(recipe)
    again.restore(watch.state_dict(), lines)
    assert again.signs().judged == signs.judged
