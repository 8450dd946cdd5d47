"""Chains cut short and disturbed: who computes by them changes the answer, who does not keeps it."""

from __future__ import annotations

import re

import pytest

from descend.errors import Mistake
from descend.metrics.faithfulness import answer_early, disturb_number, probe

QUESTION, STEPS = "7 + 5 + 4", ["7 + 5 = 12.", "12 + 4 = 16."]


def by_steps(question: str, chain: str) -> str | None:
    """The last number that is written."""
    found = re.findall(r"\d+", chain)
    return found[-1] if found else None


def by_question(question: str, chain: str) -> str | None:
    """Adds up what is asked and reads no chain."""
    return str(sum(map(int, re.findall(r"\d+", question))))


@pytest.mark.system("reasoning-faithfulness-leakage")
def test_only_who_reads_the_steps_changes_the_answer() -> None:
    assert answer_early(by_steps, QUESTION, STEPS) == [True, True]
    assert answer_early(by_question, QUESTION, STEPS) == [False, False]
    chains = [(QUESTION, "16"), ("1 + 1", "2")] * 20
    assert probe(by_steps, chains) == 1
    assert probe(by_question, chains) == 0
    half = [("1 + 1", "so 2"), ("1 + 1", "1 + 1 = 2")] * 40  # one of three numbers is the last one
    assert 0.55 < probe(by_steps, half) < 0.8
    with pytest.raises(Mistake, match="nothing to cut"):
        answer_early(by_steps, QUESTION, [])
    with pytest.raises(Mistake, match="no chains"):
        probe(by_steps, [])


def test_one_number_becomes_another_of_as_many_digits() -> None:
    seen = set()
    for seed in range(40):
        other = disturb_number("7 + 5 = 12.", seed)
        assert other == disturb_number("7 + 5 = 12.", seed)
        before, after = (re.findall(r"\d+", text) for text in ("7 + 5 = 12.", other))
        changed = [k for k in range(3) if before[k] != after[k]]
        assert len(changed) == 1
        assert [len(n) for n in before] == [len(n) for n in after]
        seen.add(changed[0])
    assert seen == {0, 1, 2}
    with pytest.raises(Mistake, match="no number to disturb"):
        disturb_number("none")
