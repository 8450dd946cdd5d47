"""Every check is a function of the signs alone: it speaks when they say so, and else is silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend.diagnosis.course import course, highest_rate
from descend.diagnosis.curves import no_progress, overfit, rate_too_high, rate_too_low, underfit
from descend.diagnosis.evidence import constant_predictions, leak, not_finite
from descend.diagnosis.inside import dead_relu, exploding, growing_norms, saturated_units, vanishing
from descend.diagnosis.signs import Answers, Better, Curve, Layer, Signs, Units, flat

CHECKS = [
    *(rate_too_high, rate_too_low, overfit, underfit, no_progress),
    *(not_finite, leak, constant_predictions),
    *(dead_relu, saturated_units, vanishing, exploding, growing_norms),
]


def curve(*losses: float) -> Curve:
    return tuple(enumerate(losses, 1))


def layers(*signals: float, move: float = 0.003) -> tuple[Layer, ...]:
    return tuple(Layer(f"model.{i}", s, s, 1.0, move) for i, s in enumerate(signals))


FLAT, FALLS = curve(*[2.3] * 20), curve(*[2.3 * 0.8**i for i in range(20)])


@pytest.mark.parametrize("check", CHECKS)
def test_without_signs_nothing_is_said(check: object) -> None:
    assert check(Signs()) is None  # type: ignore[operator]
    assert check(Signs(train=FALLS, valid=FALLS[::4], layers=layers(1, 1, 1), chance=2.3)) is None  # type: ignore[operator]


def test_rate_too_high() -> None:
    rose = Signs(train=curve(*[2.3] * 5, *[3.5] * 15), values={"optim.lr": 0.5}, name="mine")
    found = rate_too_high(rose)
    assert found
    assert "--optim.lr 0.05" in found.change
    assert "lr-find mine" in found.change
    assert rate_too_high(replace(rose, train=FLAT)) is None
    assert rate_too_high(replace(rose, train=curve(2.3, 90.0, *[2.3] * 18)))
    assert rate_too_high(replace(rose, train=curve(2.3, 90.0, *[0.3] * 18))) is None  # it learned all the same
    assert rate_too_high(replace(rose, layers=layers(1, 1, move=1e-5))) is None  # the weights stand still
    assert rate_too_high(Signs(train=FLAT, layers=layers(1, 1, move=0.3)))  # every step turns them over
    decay = {"optim.lr": 0.01, "optim.weight_decay": 10.0}
    assert rate_too_high(Signs(train=FLAT, layers=layers(1, 1, move=0.3), values=decay)) is None


def test_a_first_batch_of_luck_is_no_rise() -> None:
    lucky = Signs(train=curve(0.85, *[1.0] * 19), chance=1.0)
    assert rate_too_high(lucky) is None
    assert rate_too_high(replace(lucky, chance=None)) is None


def test_rate_too_low() -> None:
    signs = Signs(train=FLAT, layers=layers(1, 1, 1, move=2e-5), values={"optim.lr": 1e-6})
    found = rate_too_low(signs)
    assert found
    assert "--optim.lr 0.0001" in found.change
    assert rate_too_low(replace(signs, layers=layers(1e-9, 1, 1, move=2e-5))) is None  # the gradient does not arrive
    assert rate_too_low(replace(signs, layers=layers(1, 1, 1, move=1e-2))) is None
    assert rate_too_low(replace(signs, train=FALLS)) is None


def test_overfit() -> None:
    signs = Signs(train=FALLS, valid=((4, 1.5), (8, 1.0), (12, 1.2), (16, 1.6), (20, 1.7)))
    found = overfit(signs)
    assert found
    assert "best at step 8 (1) and is now 1.65" in found.evidence
    assert "--patience" in found.change
    assert overfit(replace(signs, train=FLAT)) is None  # both rise: no overfitting
    assert overfit(replace(signs, valid=((4, 1.0), (8, 0.40), (12, 0.41), (16, 0.41), (20, 0.41)))) is None
    stays = ((4, 1.5), (8, 1.4), (12, 1.4), (16, 1.4), (20, 1.4))
    assert overfit(replace(signs, valid=stays))  # a tenth of it is left in training


def test_underfit() -> None:
    better = Better("neighbours", "accuracy", theirs=0.95, ours=0.3)
    signs = Signs(train=FLAT, valid=FLAT[::4], chance=2.3, fitted=2.2, better=better)
    assert underfit(signs)
    assert underfit(replace(signs, better=replace(better, theirs=0.35))) is None  # nobody does better with these data
    assert underfit(replace(signs, fitted=0.5)) is None
    assert underfit(replace(signs, train=curve(*[2.3 - 0.05 * i for i in range(20)]))) is None  # it still falls
    heavy = underfit(replace(signs, values={"optim.weight_decay": 20.0, "model.hidden": [4]}))
    assert heavy
    assert heavy.change == "--optim.weight-decay 0.2 (it is 20), then a larger --model.hidden"


def test_no_progress() -> None:
    assert no_progress(Signs(train=FLAT, valid=FLAT[::4]))
    assert no_progress(Signs(train=FLAT, valid=FLAT[:3])) is None


def test_nan() -> None:
    found = not_finite(Signs(fault="the loss is nan", fault_step=7, values={"optim.lr": 0.1}))
    assert found
    assert found.evidence == "step 7: the loss is nan"
    assert found.change == "--optim.lr 0.01 and --clip 1.0"
    found = not_finite(Signs(spoilt=(3, 5)))
    assert found
    assert "2 training example(s)" in found.evidence


def test_leak() -> None:
    assert leak(Signs(doubled=0.3))
    assert leak(Signs(doubled=0.03)) is None
    assert leak(Signs(doubled=0.3, repeated=0.2)) is None  # doubles are usual in this table
    found = leak(Signs(columns=(("age", 0.4), ("closed", 0.999))))
    assert found
    assert "--data.drop closed" in found.change


def test_constant_predictions() -> None:
    signs = Signs(answers=Answers(top=1.0, label="class 0", true_top=0.95, count=200), values={"balance.by": "none"})
    found = constant_predictions(signs)
    assert found
    assert "--balance.by weights" in found.change
    assert constant_predictions(Signs(answers=Answers(0.97, "class 0", 0.95, 200))) is None
    assert constant_predictions(Signs(answers=Answers(1.0, "class 0", 1.0, 200))) is None  # so is the truth


def test_units() -> None:
    half = Units("model.a", "relu", 10, dead=0.6, saturated=0.0)
    assert dead_relu(Signs(train=FLAT, units=(half,)))
    assert dead_relu(Signs(train=FALLS, units=(half,))) is None  # it learned without them
    assert dead_relu(Signs(units=(half,))) is None  # a game: no loss that ought to fall
    assert dead_relu(Signs(units=(replace(half, dead=0.95),)))
    ends = Units("model.a", "tanh", 0, dead=0.0, saturated=0.8)
    found = saturated_units(Signs(train=FLAT, units=(ends,)))
    assert found
    assert "80% after a (tanh)" in found.evidence


def test_gradients_by_layer() -> None:
    fades, grows = layers(1e-5, 1e-3, 1e-1), layers(1e3, 10, 1)
    found = vanishing(Signs(train=FLAT, layers=fades))
    assert found
    assert "0 1.0e-05, 1 1.0e-03, 2 1.0e-01; 1.0e-04 of it arrives, a factor 0.01 a layer" in found.evidence
    assert exploding(Signs(train=FLAT, layers=fades)) is None
    assert exploding(Signs(train=FLAT, layers=grows))
    assert vanishing(Signs(train=FLAT, layers=grows)) is None
    assert exploding(Signs(fault="nan", layers=grows))  # a run that failed at once has no curve
    assert growing_norms(Signs(norms=curve(*[1.0] * 10, *[90.0] * 10), values={"clip": 1.0}))
    assert growing_norms(Signs(norms=curve(*[1.0] * 20))) is None


def test_the_course_is_read_from_the_lines() -> None:
    lines: list[dict[str, Any]] = [
        {"step": 1, "loss": 2.0, "lr": 0.1, "grad_norm": 3.0},
        {"step": 1, "valid": {"loss": 2.1, "accuracy": 0.1}},
        {"step": 2, "loss": 1.0, "lr": 0.2},
        {"step": 2, "event": "failed", "fault": "the loss is nan"},
    ]
    recipe = {"name": "mine", "values": {"class": "a:B", "optim": {"class": "c:D", "lr": 0.1}, "loop": {"steps": 9}}}
    signs = course(recipe, lines)
    assert signs.values == {"optim.lr": 0.1, "steps": 9} == flat(recipe["values"])  # type: ignore[arg-type]
    assert (signs.train, signs.valid, signs.norms) == (curve(2.0, 1.0), ((1, 2.1),), ((1, 3.0),))
    assert (signs.name, signs.steps, signs.fault, signs.fault_step) == ("mine", 9, "the loss is nan", 3)
    assert highest_rate(lines) == 0.2
    damaged: list[Any] = [3, {"loss": 1.0}, {"step": 3, "loss": float("nan")}, {"step": 4, "valid": 7}]
    assert course(recipe, lines + damaged) == signs
    assert highest_rate(lines + damaged) == 0.2
    assert course(recipe, [{"step": 1, "loss": 2.0}, {"step": 1, "valid": {"return": 9.0}}]).train == ()  # a reward
