from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.data.images.digits import load_digits_split
from descend.labs import cnn_inductive_biases
from descend.labs._evidence import judge_seed
from descend.labs.cnn_inductive_biases import (
    FRAME,
    IMAGES,
    accuracy,
    convolutional,
    dense,
    extrapolation,
    figure,
    fit_model,
    frame,
    measure,
    moved_accuracy,
    permute,
)

verdict = partial(judge_seed, cnn_inductive_biases)

SLUG = "cnn-inductive-biases"
FOUND: dict[str, Any] = {
    "network": ["dense", "convolutional"],
    "original": [0.95, 0.97],
    "permuted": [0.96, 0.80],
    "shift_0": [0.95, 0.97],
    "shift_1": [0.6, 0.95],
    "shift_2": [0.3, 0.9],
    "steps": 120,
    "test_images": 270,
    "outside_error_form": 0.02,
    "outside_error_mlp": 1.5,
}


@pytest.mark.system("cnn-inductive-biases", "order")
@pytest.mark.system(SLUG)
def test_a_dense_network_cannot_see_the_order() -> None:
    """Permuting the columns of the first weight undoes any permutation: the same function, the same gradients."""
    torch.manual_seed(0)
    model, x = dense(), torch.randn(5, 1, FRAME, FRAME)
    before = model(x)
    order = torch.randperm(FRAME**2)
    with torch.no_grad():
        model[1].weight.copy_(model[1].weight[:, order])
    assert torch.allclose(model(permute(x, order)), before, atol=1e-5)
    counts = [sum(p.numel() for p in build().parameters()) for build in (dense, convolutional)]
    assert counts == [9_930, 9_784]


@pytest.mark.system(SLUG)
def test_measured_in_little() -> None:
    numbers = measure(seed=0, budget=0.08)
    assert verdict(numbers) == "open"
    assert 0 < numbers["original"][1] <= 1
    assert len(figure(numbers).axes) == 2


def test_verdicts_can_fail() -> None:
    assert verdict(FOUND) == "supported"
    changes = {"permuted": [0.8, 0.8], "shift_2": [0.85, 0.9], "outside_error_form": 1.0}
    for name, value in changes.items():
        assert verdict(FOUND | {name: value}) == "refuted"
    doctored = deepcopy(FOUND)
    doctored["permuted"][1] = 0.95
    assert verdict(doctored) == "refuted"


@pytest.mark.system("cnn-inductive-biases", "right-form")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_right_form_extrapolates(seed: int) -> None:
    found = extrapolation(seed)
    assert found["outside_error_form"] < 0.2 * found["outside_error_mlp"]


@pytest.mark.system("cnn-inductive-biases", "shift")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shifted_digits_need_shared_weights(seed: int) -> None:
    """After 50 steps both know centred digits; moved by 2 pixels, only the convolutional network does."""
    digits = load_digits_split()
    x, y = frame(digits.train.x[:IMAGES]), digits.train.y[:IMAGES]
    test, truth = frame(digits.valid.x), digits.valid.y
    models = [fit_model(build, x, y, 50, seed) for build in (dense, convolutional)]
    assert min(accuracy(model, test, truth) for model in models) > 0.7
    moved = [moved_accuracy(model, test, truth, 2) for model in models]
    assert moved[1] > moved[0] + 0.4


def test_framed_digits_keep_their_pixels() -> None:
    x = torch.rand(2, 1, 8, 8)
    assert torch.equal(frame(x)[..., 2:10, 2:10], x)
    assert frame(x).shape[-1] == FRAME
