"""The mutants of small sources, and how they are counted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutation.__main__ import report, run_tests
from mutation.mutants import find_mutants


def changes(body: str) -> set[tuple[str, str]]:
    """(old, new) of all mutants of a function's body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f'def f(x: int = 3) -> None:\n    """Docs of 7 < 8."""\n{lines}'
    found = find_mutants(source, "descend/ops/f.py")
    for mutant in found:
        changed = mutant.apply(source)
        ast.parse(changed)
        assert changed != source
        assert mutant.old in source
        assert source.splitlines()[mutant.line - 1].strip() in body
    return {(mutant.old, mutant.new) for mutant in found}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = a < b", {("a < b", "a <= b")}),
        ("y = a is not b", {("a is not b", "a is b")}),
        ("y = (a) + (b)", {("(a) + (b)", "(a) - (b)")}),
        ("return a * b", {("a * b", "a / b"), ("a * b", "(a)")}),
        ("y = x[-1]", {("1", "2")}),
        ("y = -x", {("-x", "(x)")}),
        ("y = keepdim or True", {("keepdim or True", "keepdim and True"), ("True", "False")}),
        ("if ready:\n    pass", {("ready", "(not (ready))")}),
        ("y = a if b else c", {("a if b else c", "(a)")}),
        ("y = (α - x).mean()", {("(α - x).mean", "(α - x).sum"), ("α - x", "α + x")}),
        ("y = max(a, b)", {("max", "min")}),
        ("y = x.detach()", {("x.detach()", "(x)")}),
        ("y = torch.exp(x)", set()),
        ("zero_grad()", {("zero_grad()", "pass")}),
    ],
)
def test_every_operator(body: str, expected: set[tuple[str, str]]) -> None:
    assert changes(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        'raise Mistake(f"{1 + 1} is wrong")',
        'y = f"{a < b}"',
        "y: tuple[1, 2] = x",
        "print(1)",
        "assert x > 1",
        "y = 'text'",
    ],
)
def test_what_computes_nothing_is_left_alone(body: str) -> None:
    assert changes(body) == set()


def test_settings_and_figures_are_left_alone() -> None:
    assert not find_mutants(
        "EPS = 1\nclass A:\n    width: int = 8\n    def __repr__(self):\n        return 1\n", "a.py"
    )


def test_functions_inside_functions_are_visited_once() -> None:
    found = find_mutants("def f():\n    def g():\n        return a < b\n    return g\n", "a.py")
    assert [mutant.key for mutant in found] == ["a.py:3 [37] a < b -> a <= b"]


def test_a_mutant_is_caught_by_the_test_that_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--proof')\n")
    (tmp_path / "test_a.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    assert run_tests(["test_a.py"], tmp_path) == ("survived", "")
    (tmp_path / "test_a.py").write_text("def test_it():\n    assert 1 - 1 == 2\n")
    assert run_tests(["test_a.py"], tmp_path) == ("caught", "test_a.py::test_it")


def test_the_report_counts_by_folder() -> None:
    outcomes = [("ops", "caught"), ("ops", "survived"), ("nn", "timeout"), ("nn", "unclear")]
    lines = report([{"outcome": o, "change": f"descend/{folder}/a.py:1  a  ->  b"} for folder, o in outcomes])
    assert lines == [
        "survived: descend/ops/a.py:1  a  ->  b",
        "unclear: descend/nn/a.py:1  a  ->  b",
        "nn              1 of    1 caught",
        "ops             1 of    2 caught",
        "2 of 3 caught (66.7%)",
    ]
