from __future__ import annotations

from pathlib import Path

import pytest

from descend.labs._mark import mark_file

LAB = """
from math import sqrt
from descend.labs._tool import help_measure
SIZE = 3
UNUSED = 4
CLAIM = "it holds."
def deeper(x):
    return sqrt(x) + SIZE
def measure(seed, budget):
    '''Numbers.'''
    return {"x": deeper(seed) + help_measure()}
def effects(numbers):
    return {"x": numbers["x"]}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "_tool.py").write_text("def help_measure():\n    return 1\ndef other():\n    return 2\n")
    (tmp_path / "lab.py").write_text(LAB)
    return tmp_path / "lab.py"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("it holds", "it does not hold"),
        ("UNUSED = 4", "UNUSED = 5"),
        ("'''Numbers.'''", "'''Other words.'''  # and a comment"),
        ('{"x": numbers["x"]}', '{"x": 2 * numbers["x"]}'),
        ("SIZE = 3", "SIZE  =  3\n"),
    ],
)
def test_words_and_judgement_do_not_count(lab: Path, old: str, new: str) -> None:
    before = mark_file(lab)
    lab.write_text(LAB.replace(old, new))
    assert mark_file(lab) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SIZE = 3", "SIZE = 4"),
        ("sqrt(x) + SIZE", "sqrt(x) - SIZE"),
        ("from math import sqrt", "from cmath import sqrt"),
        ("deeper(seed)", "deeper(seed + 1)"),
    ],
)
def test_what_measure_uses_counts(lab: Path, old: str, new: str) -> None:
    before = mark_file(lab)
    lab.write_text(LAB.replace(old, new))
    assert mark_file(lab) != before


def test_what_it_uses_of_other_labs_counts(lab: Path) -> None:
    before, tool = mark_file(lab), lab.with_name("_tool.py")
    text = tool.read_text()
    tool.write_text(text.replace("return 2", "return 3"))
    assert mark_file(lab) == before
    tool.write_text(text.replace("return 1", "return 3"))
    assert mark_file(lab) != before
