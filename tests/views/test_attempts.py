"""An exhibit that fails leaves a note, and the others are there."""

from __future__ import annotations

import errno

import pytest

from descend.contracts import Exhibit
from descend.errors import Mistake
from descend.report.exhibits import make_section
from descend.views.attempts import LETTERS, name_reason, show_each


def fail() -> Exhibit:
    raise IndexError("index 0 is out of bounds\nfor dimension 0")


def test_the_others_are_shown_and_the_report_says_why_one_is_not() -> None:
    first, last = Exhibit("text", "First", "a"), Exhibit("text", "Last", "b")
    shown = show_each({"First": lambda: first, "Broken <1>": fail, "Lists": lambda: [last, last]})
    assert [shown[0], *shown[2:]] == [first, last, last]
    page = make_section(shown[1])
    assert "Broken &lt;1&gt;" in page
    assert "Not shown: IndexError: index 0 is out of bounds<" in page


def test_a_reason_is_one_line_in_words() -> None:
    assert name_reason(Mistake("give at least 3")) == "give at least 3"
    assert name_reason(ValueError()) == "ValueError"
    assert "no space left on device" in name_reason(OSError(errno.ENOSPC, "No space left on device", "report.html"))
    assert len(name_reason(ValueError("x" * 10**6))) == LETTERS


def test_ctrl_c_still_ends_the_program() -> None:
    def interrupt() -> Exhibit:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show_each({"Slow": interrupt})
