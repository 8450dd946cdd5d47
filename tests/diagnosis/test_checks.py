"""Every check is a function of the signs alone: it speaks when they say so, and else is silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend.diagnosis.course import find_highest_rate, read_course
from descend.diagnosis.curves import (
    detect_high_rate,
    detect_low_rate,
    detect_no_progress,
    detect_overfitting,
    detect_spikes,
    detect_underfitting,
)
from descend.diagnosis.evidence import detect_constant_predictions, detect_leak, detect_nan
from descend.diagnosis.inside import (
    detect_dead_relu,
    detect_exploding,
    detect_growing_norms,
    detect_saturation,
    detect_vanishing,
)
from descend.diagnosis.signs import Answers, Better, Curve, LayerSigns, Signs, Units, flatten

CHECKS = [
    *(detect_high_rate, detect_low_rate, detect_overfitting, detect_underfitting, detect_no_progress),
    *(detect_nan, detect_leak, detect_constant_predictions, detect_spikes),
    *(detect_dead_relu, detect_saturation, detect_vanishing, detect_exploding, detect_growing_norms),
]


def curve(*losses: float) -> Curve:
    return tuple(enumerate(losses, 1))


def layers(*signals: float, move: float = 0.003) -> tuple[LayerSigns, ...]:
    return tuple(LayerSigns(f"model.{i}", s, s, 1.0, move) for i, s in enumerate(signals))


FLAT, FALLS = curve(*[2.3] * 20), curve(*[2.3 * 0.8**i for i in range(20)])


@pytest.mark.parametrize("check", CHECKS)
def test_without_signs_nothing_is_said(check: object) -> None:
    assert check(Signs()) is None  # type: ignore[operator]
    assert check(Signs(train=FALLS, valid=FALLS[::4], layers=layers(1, 1, 1), chance=2.3)) is None  # type: ignore[operator]


def test_rate_too_high() -> None:
    rose = Signs(train=curve(*[2.3] * 5, *[3.5] * 15), values={"optim.lr": 0.5}, name="mine")
    found = detect_high_rate(rose)
    assert found
    assert "--optim.lr 0.05" in found.change
    assert "lr-find mine" in found.change
    assert detect_high_rate(replace(rose, train=FLAT)) is None
    assert detect_high_rate(replace(rose, train=curve(2.3, 90.0, *[2.3] * 18)))
    assert detect_high_rate(replace(rose, train=curve(2.3, 90.0, *[0.3] * 18))) is None  # it learned all the same
    assert detect_high_rate(replace(rose, layers=layers(1, 1, move=1e-5))) is None  # the weights stand still
    assert detect_high_rate(Signs(train=FLAT, layers=layers(1, 1, move=0.3)))  # every step turns them over
    decay = {"optim.lr": 0.01, "optim.weight_decay": 10.0}
    assert detect_high_rate(Signs(train=FLAT, layers=layers(1, 1, move=0.3), values=decay)) is None


def test_a_first_batch_of_luck_is_no_rise() -> None:
    lucky = Signs(train=curve(0.85, *[1.0] * 19), chance=1.0)
    assert detect_high_rate(lucky) is None
    assert detect_high_rate(replace(lucky, chance=None)) is None


def test_rate_too_low() -> None:
    signs = Signs(train=FLAT, layers=layers(1, 1, 1, move=2e-5), values={"optim.lr": 1e-6})
    found = detect_low_rate(signs)
    assert found
    assert "--optim.lr 0.0001" in found.change
    assert detect_low_rate(replace(signs, layers=layers(1e-9, 1, 1, move=2e-5))) is None  # the gradient does not arrive
    assert detect_low_rate(replace(signs, layers=layers(1, 1, 1, move=1e-2))) is None
    assert detect_low_rate(replace(signs, train=FALLS)) is None


def test_overfit() -> None:
    signs = Signs(train=FALLS, valid=((4, 1.5), (8, 1.0), (12, 1.2), (16, 1.6), (20, 1.7)))
    found = detect_overfitting(signs)
    assert found
    assert "best at step 8 (1) and is now 1.65" in found.evidence
    assert "--patience" in found.change
    assert detect_overfitting(replace(signs, train=FLAT)) is None  # both rise: no overfitting
    assert detect_overfitting(replace(signs, valid=((4, 1.0), (8, 0.40), (12, 0.41), (16, 0.41), (20, 0.41)))) is None
    stays = ((4, 1.5), (8, 1.4), (12, 1.4), (16, 1.4), (20, 1.4))
    assert detect_overfitting(replace(signs, valid=stays))  # a tenth of it is left in training


def test_underfit() -> None:
    better = Better("neighbours", "accuracy", theirs=0.95, ours=0.3)
    signs = Signs(train=FLAT, valid=FLAT[::4], chance=2.3, fitted=2.2, better=better)
    assert detect_underfitting(signs)
    nobody = replace(better, theirs=0.35)  # does better with these data
    assert detect_underfitting(replace(signs, better=nobody)) is None
    assert detect_underfitting(replace(signs, fitted=0.5)) is None
    falling = curve(*[2.3 - 0.05 * i for i in range(20)])
    assert detect_underfitting(replace(signs, train=falling)) is None
    heavy = detect_underfitting(replace(signs, values={"optim.weight_decay": 20.0, "model.hidden": [4]}))
    assert heavy
    assert heavy.change == "--optim.weight-decay 0.2 (it is 20), then a larger --model.hidden"


def test_no_progress() -> None:
    assert detect_no_progress(Signs(train=FLAT, valid=FLAT[::4]))
    assert detect_no_progress(Signs(train=FLAT, valid=FLAT[:3])) is None


@pytest.mark.system("training-monitoring", "doctor")
def test_spikes_are_named_with_their_steps() -> None:
    lines = [{"step": n, "time": n, "loss": 1.0} for n in range(1, 61)]
    for step in (40, 52):
        said = f"step {step}: the loss jumped to 90 from about 1; training went on"
        lines.append({"step": step, "time": step, "event": "warning", "finding": "spike", "said": said})
    recipe = {"name": "mine", "values": {"optim": {"lr": 0.1}, "loop": {"steps": 60, "spikes": "tell", "clip": 0.0}}}
    found = detect_spikes(read_course(recipe, lines))
    assert found
    assert found.evidence == "step 40: the loss jumped to 90 from about 1; training went on; another one at 52"
    assert found.change == "look at the data of that step; --clip 1.0, --spikes rollback (or skip), --optim.lr 0.05"
    recipe["values"]["loop"] |= {"spikes": "skip", "clip": 1.0}  # type: ignore[index]
    found = detect_spikes(read_course(recipe, lines[:-1]))
    assert found
    assert found.evidence == "step 40: the loss jumped to 90 from about 1; training went on"
    assert found.change == "look at the data of that step; --optim.lr 0.05"


def test_nan() -> None:
    found = detect_nan(Signs(fault="the loss is nan", fault_step=7, values={"optim.lr": 0.1}))
    assert found
    assert found.evidence == "step 7: the loss is nan"
    assert found.change == "--optim.lr 0.01 and --clip 1.0"
    found = detect_nan(Signs(spoilt=(3, 5)))
    assert found
    assert "2 training example(s)" in found.evidence


def test_leak() -> None:
    assert detect_leak(Signs(doubled=0.3))
    assert detect_leak(Signs(doubled=0.03)) is None
    assert detect_leak(Signs(doubled=0.3, repeated=0.2)) is None  # doubles are usual in this table
    found = detect_leak(Signs(columns=(("age", 0.4), ("closed", 0.999))))
    assert found
    assert "--data.drop closed" in found.change


def test_constant_predictions() -> None:
    signs = Signs(answers=Answers(top=1.0, label="class 0", true_top=0.95, count=200), values={"balance.by": "none"})
    found = detect_constant_predictions(signs)
    assert found
    assert "--balance.by weights" in found.change
    assert detect_constant_predictions(Signs(answers=Answers(0.97, "class 0", 0.95, 200))) is None
    assert detect_constant_predictions(Signs(answers=Answers(1.0, "class 0", 1.0, 200))) is None  # so is the truth


def test_units() -> None:
    half = Units("model.a", "relu", 10, dead=0.6, saturated=0.0)
    assert detect_dead_relu(Signs(train=FLAT, units=(half,)))
    assert detect_dead_relu(Signs(train=FALLS, units=(half,))) is None  # it learned without them
    assert detect_dead_relu(Signs(units=(half,))) is None  # a game: no loss that ought to fall
    assert detect_dead_relu(Signs(units=(replace(half, dead=0.95),)))
    ends = Units("model.a", "tanh", 0, dead=0.0, saturated=0.8)
    found = detect_saturation(Signs(train=FLAT, units=(ends,)))
    assert found
    assert "80% after a (tanh)" in found.evidence


def test_gradients_by_layer() -> None:
    fades, grows = layers(1e-5, 1e-3, 1e-1), layers(1e3, 10, 1)
    found = detect_vanishing(Signs(train=FLAT, layers=fades))
    assert found
    assert "0 1.0e-05, 1 1.0e-03, 2 1.0e-01; 1.0e-04 of it arrives, a factor of 0.01 per layer" in found.evidence
    assert detect_exploding(Signs(train=FLAT, layers=fades)) is None
    assert detect_exploding(Signs(train=FLAT, layers=grows))
    assert detect_vanishing(Signs(train=FLAT, layers=grows)) is None
    assert detect_exploding(Signs(fault="nan", layers=grows))  # a run that failed at once has no curve
    assert detect_growing_norms(Signs(norms=curve(*[1.0] * 10, *[90.0] * 10), values={"clip": 1.0}))
    assert detect_growing_norms(Signs(norms=curve(*[1.0] * 20))) is None


def test_the_course_is_read_from_the_lines() -> None:
    lines: list[dict[str, Any]] = [
        {"step": 1, "loss": 2.0, "lr": 0.1, "grad_norm": 3.0},
        {"step": 1, "valid": {"loss": 2.1, "accuracy": 0.1}},
        {"step": 2, "loss": 1.0, "lr": 0.2},
        {"step": 2, "event": "failed", "fault": "the loss is nan"},
    ]
    recipe = {"name": "mine", "values": {"class": "a:B", "optim": {"class": "c:D", "lr": 0.1}, "loop": {"steps": 9}}}
    signs = read_course(recipe, lines)
    assert signs.values == {"optim.lr": 0.1, "steps": 9} == flatten(recipe["values"])  # type: ignore[arg-type]
    assert (signs.train, signs.valid, signs.norms) == (curve(2.0, 1.0), ((1, 2.1),), ((1, 3.0),))
    assert (signs.name, signs.steps, signs.fault, signs.fault_step) == ("mine", 9, "the loss is nan", 3)
    assert find_highest_rate(lines) == 0.2
    damaged: list[Any] = [3, {"loss": 1.0}, {"step": 3, "loss": float("nan")}, {"step": 4, "valid": 7}]
    assert replace(read_course(recipe, lines + damaged), done=2, ended="failed") == signs
    assert find_highest_rate(lines + damaged) == 0.2
    reward = [{"step": 1, "loss": 2.0}, {"step": 1, "valid": {"return": 9.0}}]
    assert read_course(recipe, reward).train == ()
