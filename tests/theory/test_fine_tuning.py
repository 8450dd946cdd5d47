"""Fine-tuning in figures, and the printed rule of thumb inside each range and at its ends."""

from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.theory.fine_tuning import adapter_storage, data_ratio, storage, tokens_for_ratio
from descend.theory.fine_tuning_choice import METHODS, TuningNeeds, recommend


@pytest.mark.system("fine-tuning-objective", "storage")
def test_ten_tasks_of_a_model_of_70_billion() -> None:
    assert storage(70e9) == 140e9
    assert storage(70e9, tasks=10) == 1.4e12
    assert storage(70e9, bits=4) == 35e9
    assert adapter_storage(70e9, 70e6, tasks=10) == 140e9 + 1.4e9


@pytest.mark.system("fine-tuning-objective", "data-ratio")
def test_the_printed_ratio_compares_tokens_with_examples() -> None:
    assert data_ratio(1e12, 1e4, 1000) == 1e5  # not within the printed 100 to 10,000
    assert [tokens_for_ratio(1e12, 1e4, ratio) for ratio in (100, 10_000)] == [1e6, 1e4]


@pytest.mark.system("fine-tuning-recommender")
@pytest.mark.system("fine-tuning-recommender", "thresholds")
@pytest.mark.parametrize(
    ("examples", "method"),
    [
        (0, "prompting"), (50, "prompting"), (99, "prompting"), (100, "prefix"), (500, "prefix"), (999, "prefix"),
        (1_000, "lora"), (30_000, "lora"), (99_999, "lora"), (100_000, "full"), (10**7, "full"),
    ],
)  # fmt: skip
def test_the_number_of_examples_decides(examples: int, method: str) -> None:
    choice = recommend(examples)
    assert choice.method == method
    assert choice.reasons[0].startswith(f"{examples:,} examples: ")


@pytest.mark.system("fine-tuning-recommender", "needs")
@pytest.mark.parametrize(
    ("examples", "needs", "method", "why"),
    [
        (10_000, TuningNeeds(modular=True), "adapters", "many experiments"),
        (10_000, TuningNeeds(modular=True, overhead=False), "lora", "no overhead"),
        (200_000, TuningNeeds(tasks=10), "lora", "10 tasks"),
        (200_000, TuningNeeds(general=True), "lora", "general ability"),
        (200_000, TuningNeeds(different=True), "full", "100,000 and more"),
        (500, TuningNeeds(different=True), "lora", "a prefix only varies"),
        (500, TuningNeeds(smallest=True), "prefix", "100 to 1,000"),
        (5_000, TuningNeeds(smallest=True), "prefix", "smallest footprint"),
        (5_000, TuningNeeds(tasks=3, general=True), "lora", "1,000 to 100,000"),
        (200_000, TuningNeeds(tasks=4, modular=True), "adapters", "overhead is acceptable"),
    ],
)
def test_what_is_needed_moves_the_choice(examples: int, needs: TuningNeeds, method: str, why: str) -> None:
    choice = recommend(examples, needs)
    assert choice.method == method
    assert choice.method in METHODS
    assert any(why in reason for reason in choice.reasons)


def test_what_cannot_be_is_refused() -> None:
    for examples, needs in ((-1, TuningNeeds()), (10, TuningNeeds(tasks=0))):
        with pytest.raises(Mistake, match="give 0 or more examples"):
            recommend(examples, needs)
