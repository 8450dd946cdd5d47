"""Small files and functions; the exceptions are printed with their reasons."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.source import PACKAGE, files, part

FILE_LIMIT, FUNCTION_LIMIT, PARAMETER_LIMIT = 400, 60, 8
EXCEPTIONS: dict[str, str] = {}  # "nn/x.py" or "nn/x.py:function" -> reason


def lines(path: str) -> int:
    return len((PACKAGE / path).read_text(encoding="utf-8").splitlines())


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", sorted(files()))
def test_sizes(path: str) -> None:
    assert lines(path) <= FILE_LIMIT or path in EXCEPTIONS, f"{path} has {lines(path)} lines: split the ideas"
    for function in functions(files()[path]):
        size = (function.end_lineno or 0) - function.lineno + 1
        name = f"{path}:{function.name}"
        assert size <= FUNCTION_LIMIT or name in EXCEPTIONS, f"{name} has {size} lines"
        if part(path) == "nn" and function.name == "__init__":
            taken = len(function.args.args) + len(function.args.kwonlyargs) - 1
            assert taken <= PARAMETER_LIMIT, f"{name} takes {taken} parameters"


def test_exceptions_are_still_needed() -> None:
    for name in EXCEPTIONS:
        assert name.partition(":")[0] in files(), f"{name} is gone: delete its exception"
