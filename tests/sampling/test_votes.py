"""The vote of chains: ties, silence, and how often it is right, against scipy and by counting all outcomes."""

from __future__ import annotations

from itertools import product

import pytest
from scipy.stats import binom

from descend.errors import Mistake
from descend.sampling.votes import answer_consistently, vote, vote_accuracy
from descend.text.reasoning import parse_answer
from tests.close import close

SLUG = "self-consistency"


@pytest.mark.system(SLUG, "ties")
def test_the_first_of_equals_is_taken_and_silence_does_not_vote() -> None:
    found = vote(["9", "27", None, "27", "9"])
    assert (found.answer, found.tied, found.silent, found.counts) == ("9", True, 1, {"9": 2, "27": 2})
    assert found.share == 0.5
    assert vote(["27", "9", "9"]).answer == "9"
    assert not vote(["27", "9", "9"]).tied
    nothing = vote([None, None])
    assert (nothing.answer, nothing.tied, nothing.silent, nothing.share) == (None, False, 2, 0.0)


def test_chains_are_written_by_seed_and_parsed() -> None:
    chains = ["The answer is 9.", "I do not know.", "The answer is 27.", "So the answer is 9 apples."]
    found, written = answer_consistently(lambda seed: chains[seed], parse_answer, 4)
    assert written == chains
    assert (found.answer, found.silent, found.counts) == ("9", 1, {"9": 2, "27": 1})
    with pytest.raises(Mistake, match="at least one"):
        answer_consistently(lambda seed: "", parse_answer, 0)


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "two-answers")
@pytest.mark.parametrize("p", [0.4, 0.6, 0.9])
@pytest.mark.parametrize("n", [1, 4, 5, 10, 41])
def test_the_binomial_distribution_says_how_often_the_vote_is_right(p: float, n: int) -> None:
    ties = 0.5 * binom.pmf(n // 2, n, p) if n % 2 == 0 else 0.0
    close(vote_accuracy(p, n), binom.sf(n // 2, n, p) + ties)
    if n > 1:
        assert (vote_accuracy(p, n) > p) is (p > 0.5)


@pytest.mark.system(SLUG, "two-answers")
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_the_vote_itself_is_right_that_often(n: int) -> None:
    """Every sequence of n answers, weighed by its probability; ties go to the first, right half of the time."""
    p, total = 0.7, 0.0
    for answers in product(("right", "wrong"), repeat=n):
        weight = p ** answers.count("right") * (1 - p) ** answers.count("wrong")
        total += weight * (vote(answers).answer == "right")
    close(vote_accuracy(p, n), total)


def test_no_probability_and_no_chains_are_named() -> None:
    for p, n in ((1.2, 3), (0.5, 0)):
        with pytest.raises(Mistake, match="a probability and a number of chains"):
            vote_accuracy(p, n)
