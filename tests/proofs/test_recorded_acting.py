"""What policies of the arm reached in training, and what its labs found, on three seeds each."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_labs import read_verdict
from tests.proofs.test_recorded_results import read

LABS = [
    pytest.param("bimodal-demonstrations", marks=pytest.mark.system("diffusion-policy", "bimodal")),
    pytest.param("control-latency", marks=pytest.mark.system("perception-control-pipeline", "measured")),
    pytest.param("requests-to-a-policy", marks=pytest.mark.system("vlm-to-policy", "policies")),
]


@pytest.mark.parametrize("lab", LABS)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    assert read_verdict(lab) == "supported"


@pytest.mark.system("pick-and-place", "success")
def test_act_places_the_cube_in_95_of_100_episodes() -> None:
    assert min(read("act-pick-place success")) >= 0.95


@pytest.mark.system("act-policy", "held-out")
def test_act_predicts_held_out_demonstrations() -> None:
    """Always the mean chunk of the demonstrations is off by 0.0875."""
    assert max(read("act-pick-place error")) <= 0.01


@pytest.mark.system("diffusion-policy", "recipe")
def test_diffusion_policy_does_both_tasks() -> None:
    for task in ("detour", "pick-place"):
        assert min(read(f"diffusion-policy-{task} success")) >= 0.95


@pytest.mark.system("vla-policy", "named")
def test_the_named_cube_is_taken() -> None:
    assert min(read("vla-sort named")) >= 0.90


@pytest.mark.system("vla-policy", "swapped")
def test_swapped_words_and_colours_swap_the_cube() -> None:
    for swap in ("words_swap", "colours_swap"):
        assert min(read(f"vla-sort {swap}")) >= 0.90
