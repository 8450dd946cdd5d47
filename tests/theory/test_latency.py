"""The book's budget, and what a loop can do with one."""

from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.theory.latency import BOOK, Budget, batch_latency, throughput_gain


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


@pytest.mark.system("inference-optimization", "batch-throughput")
@pytest.mark.system("inference-optimization")
def test_a_batch_waits_for_its_last_image() -> None:
    """The book's table: the wait rises with the batch while the time for an image falls."""
    batches, rates = (1, 4, 16, 64), (10.0, 35.0, 100.0, 200.0)
    waits = [1000 * batch_latency(b, rate) for b, rate in zip(batches, rates, strict=True)]
    assert [round(wait) for wait in waits] == [100, 114, 160, 320]
    assert [wait / b for wait, b in zip(waits, batches, strict=True)] == pytest.approx([1000 / r for r in rates])
    assert throughput_gain(rates) == [1, 3.5, 10, 20]
    with pytest.raises(Mistake, match="a batch of 4 at 0 a second"):
        batch_latency(4, 0)
