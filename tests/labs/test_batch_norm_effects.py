from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from descend.labs import batch_norm_effects
from descend.labs._evidence import judge_seed
from descend.labs.batch_norm_effects import BATCH, CHUNKS, RATES, SCALES, TRAINED, build, figure, gradients, measure
from tests.close import close

verdict = partial(judge_seed, batch_norm_effects)

SLUG = "batch-norm-effects"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.0)


@pytest.mark.system(SLUG)
def test_larger_learning_rates(numbers: dict[str, Any]) -> None:
    """At a rate of 1 the plain net is lost, the normalised one has learnt."""
    at = RATES.index(1.0)
    assert numbers["plain"][at] < 0.3
    assert numbers["batch_norm"][at] > 0.85


@pytest.mark.system(SLUG)
def test_initial_scale_matters_less(numbers: dict[str, Any]) -> None:
    scales = numbers["scales"]
    for scale in (0.1, 3.0):
        at = SCALES.index(scale)
        assert scales["plain"][at] < 0.3 < 0.7 < scales["batch_norm"][at]


@pytest.mark.system(SLUG)
@pytest.mark.system("batch-norm")
def test_few_examples_spoil_the_statistics(numbers: dict[str, Any]) -> None:
    found = dict(zip(CHUNKS, numbers["chunks"]["accuracy"], strict=True))
    assert found[2] < found[4] < found[32]
    assert found[2] < 0.5


@pytest.mark.system(SLUG)
def test_gradient_turns_less_and_inputs_shift_less(numbers: dict[str, Any]) -> None:
    """At the rates at which the plain net trains; a dead net's gradient hardly changes either."""
    trained = [i for i, accuracy in enumerate(numbers["plain"]) if accuracy >= TRAINED]
    assert trained
    for name in ("change", "shift"):
        for i in trained:
            assert numbers[f"batch_norm_{name}"][i] < numbers[f"plain_{name}"][i], (name, RATES[i])


@pytest.mark.system(SLUG)
def test_the_nets_side_by_side_are_nets() -> None:
    """Logits and gradients of the second net of three are those of F.batch_norm and autograd, written plainly."""
    random = torch.Generator().manual_seed(0)
    nets = build(torch.tensor([0.5, 1.0, 2.0]), BATCH, random)
    x, y = torch.rand(BATCH, 64, generator=random), torch.randint(10, (BATCH,), generator=random)
    found, _ = gradients(nets, x, y)
    weights = [w[1].clone().requires_grad_() for w in nets.weights]
    a = x
    for w in weights[:-1]:
        a = torch.relu(F.batch_norm(a @ w, None, None, training=True))
    F.cross_entropy(a @ weights[-1], y).backward()
    for ours, w in zip(found, weights, strict=False):
        close(ours[1], w.grad, loosen=5)  # float32 through four layers


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    changes: tuple[tuple[str, Any], ...] = (
        ("plain", numbers["batch_norm"]),  # a plain net that trains at every rate
        ("scales", {**numbers["scales"], "plain": numbers["scales"]["batch_norm"]}),
        ("batch_norm_change", [100.0] * len(RATES)),
        ("batch_norm_shift", [100.0] * len(RATES)),
        ("chunks", {**numbers["chunks"], "accuracy": [0.9] * len(CHUNKS)}),
        ("undo_error", 0.1),
    )
    for name, value in changes:
        doctored = deepcopy(numbers)
        doctored[name] = value
        assert verdict(doctored) == "refuted", name
    nothing = {**numbers, "plain": [0.1] * len(RATES)}
    assert verdict(nothing) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    panels = figure(numbers).axes
    assert len(panels) == 4
    close(panels[0].get_lines()[1].get_ydata(), numbers["batch_norm"])
