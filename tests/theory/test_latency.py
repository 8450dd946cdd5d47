"""The book's budget, and what a loop can do with one."""

from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.theory.latency import BOOK, Budget


@pytest.mark.system("perception-control-pipeline", "budget")
def test_the_books_stages_leave_17_5_hertz() -> None:
    budget = Budget(BOOK)
    assert budget.total == 57
    assert budget.hertz == pytest.approx(17.54385965)
    assert budget.slack(10) == 43
    assert budget.slack(20) == -7


def test_a_stage_that_takes_longer_is_named() -> None:
    assert Budget({**BOOK, "policy": 31.0}).over(BOOK) == {"policy": 11.0}
    assert not Budget(BOOK).over(BOOK)
    with pytest.raises(Mistake, match="stage policy: -1"):
        Budget({"policy": -1.0})
    with pytest.raises(Mistake, match="at least one stage"):
        Budget({})
