"""What was recorded of prompting, instruction tuning and corpora: labs on three seeds, the figure of short tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend import recipes
from tests.engine.small import training
from tests.proofs.test_recorded_labs import require_support
from tests.proofs.test_recorded_results import read

LABS = [
    pytest.param("in-context-shots", marks=pytest.mark.system("in-context-learning", "shots")),
    pytest.param(
        "reasoning-steps",
        marks=[
            pytest.mark.system("chain-of-thought", "steps-help"),
            pytest.mark.system("self-consistency", "votes-help"),
            pytest.mark.system("reasoning-faithfulness-leakage", "leaked-gap", "faithfulness"),
        ],
    ),
    pytest.param(
        "instruction-following",
        marks=[
            pytest.mark.system("instruction-tuning", "held-out-tasks"),
            pytest.mark.system("instruction-dataset", "student"),
        ],
    ),
    pytest.param("pretrained-start", marks=pytest.mark.system("fine-tuning-objective", "from-scratch")),
    pytest.param(
        "catastrophic-forgetting", marks=pytest.mark.system("catastrophic-forgetting", "forgets", "mitigations")
    ),
    pytest.param("clean-corpus", marks=pytest.mark.system("corpus-preparation", "helps")),
]


@pytest.mark.parametrize("lab", LABS)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    require_support(lab)


@pytest.mark.system("instruction-tuning", "exact")
def test_generated_tasks_are_answered_exactly() -> None:
    """Untuned, none is: the greedy text of random weights is no answer."""
    if min(read("instruct-tasks exact")) < 0.95:
        pytest.skip("95% is not reached on every recorded seed: the demand stays open")
    recipe: Any = recipes.get("instruct-tasks")
    untuned = replace(recipe, data=replace(recipe.data, count=60, held_out=60))
    assert training(untuned).evaluate()["exact"] < 0.02
