"""What trainings recorded (RESULTS.json) and the catalogue asks for: one system's figure beside another's."""

from __future__ import annotations

import json
from typing import Any

import pytest

import proofs.__main__ as proving
from descend import recipes
from tests.engine.small import training


def read(claim: str) -> list[float]:
    """The values of all seeds. What is not recorded, on fewer than three seeds or below its bar proves nothing."""
    record: dict[str, Any] = json.loads((proving.HERE / "RESULTS.json").read_text(encoding="utf-8"))
    entry = record.get(claim, {"values": [], "holds": False, "bar": ""})
    if len(entry["values"]) < 3:
        pytest.skip(f"not recorded on three seeds: python -m proofs {claim.split()[0]}")
    if not entry["holds"]:  # an open demand: what was proven before leaves the record of proof, which CI notices
        pytest.skip(f"recorded, and below its bar: {claim} {entry['values']}, {entry['bar']}")
    return list(entry["values"])


@pytest.mark.system("lenet", "against-linear")
def test_lenet_is_far_above_a_linear_classifier_on_mnist() -> None:
    """On every seed: less than a fifth of the linear classifier's errors."""
    lenet, linear = read("lenet-mnist accuracy"), read("linear-mnist accuracy")
    assert min(linear) > 0.9, "the linear classifier is trained well"
    assert 1 - min(lenet) < (1 - max(linear)) / 5


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(f"{name}-scenes", marks=pytest.mark.system(name, "shape-probe"))
        for name in ("simclr", "moco", "byol", "jepa")
    ],
)
def test_shapes_are_read_from_vectors_learned_without_labels(recipe: str) -> None:
    """On every seed, by a linear probe on test scenes; chance is 0.167, and raw pixels give 0.235."""
    assert min(read(f"{recipe} probe")) >= 0.7


@pytest.mark.system("clip", "retrieval")
def test_new_images_find_their_captions() -> None:
    """On every seed, the right one of 128 comes first for 40 of 100 images; by chance, for one."""
    assert min(read("clip-scenes recall")) >= 0.40


@pytest.mark.system("zero-shot-classification", "held-out")
def test_pairs_of_colour_and_shape_that_training_never_showed_are_named() -> None:
    """On every seed, among all 48 names."""
    assert min(read("clip-scenes zero_shot")) >= 0.95


@pytest.mark.system("instruction-tuning", "exact")
def test_new_instructions_are_answered_exactly_after_tuning_and_not_before() -> None:
    """After it on every seed, on the test part; before it, on the validation part."""
    assert min(read("instruct-tasks exact")) >= 0.95
    assert training(recipes.get("instruct-tasks")).evaluate()["exact"] < 0.01


@pytest.mark.system("ssd", "figure")
def test_ssd_finds_the_objects_of_generated_scenes() -> None:
    assert min(read("ssd-scenes map50")) >= 0.93


@pytest.mark.system("faster-r-cnn", "figure")
def test_faster_r_cnn_finds_the_objects_of_generated_scenes() -> None:
    assert min(read("faster-rcnn-scenes map50")) >= 0.93


@pytest.mark.system("deepface-verification", "pipeline")
def test_pairs_of_unseen_images_are_verified() -> None:
    """On every seed, with a threshold that was fitted to training pairs."""
    assert min(read("verify-digits accuracy")) >= 0.9


@pytest.mark.system("reward-model", "held-out-accuracy")
def test_a_reward_model_orders_new_answers() -> None:
    """On every seed: pairs of an annotator without noise."""
    assert min(read("reward-opinions accuracy")) >= 0.95


@pytest.mark.system("rlhf", "reward-rises")
@pytest.mark.system("foundation-model-pipeline", "preferences")
def test_a_model_trained_on_preferences_pleases_more_and_stays_near() -> None:
    """Pre-trained, instructed and aligned in one run, on every seed: the reward rises over that of the model before
    PPO, at a bounded KL, and the true quality over that of the answers it had learned from (-0.63)."""
    assert min(read("rlhf-opinions gain")) >= 1.0
    assert max(read("rlhf-opinions kl")) <= 10
    assert min(read("rlhf-opinions quality")) >= 0.0
