"""Small files and functions; the exceptions are printed with their reasons."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.contracts.source import PACKAGE, files, files_of, folders, part

FILE_LIMIT, FUNCTION_LIMIT, PARAMETER_LIMIT = 400, 60, 8
EXCEPTIONS: dict[str, str] = {}  # "nn/x.py" or "nn/x.py:function" -> reason


def lines(path: str) -> int:
    return len((PACKAGE / path).read_text(encoding="utf-8").splitlines())


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("folder", folders())
def test_sizes(folder: str) -> None:
    found = [wrong for path in files_of(folder) for wrong in too_large(path)]
    assert not found, "\n".join(found)


def too_large(path: str) -> Iterator[str]:
    """What is too long in a file, or takes too much, without an exception."""
    if lines(path) > FILE_LIMIT and path not in EXCEPTIONS:
        yield f"{path} has {lines(path)} lines: split the ideas"
    for function in functions(files()[path]):
        size = (function.end_lineno or 0) - function.lineno + 1
        name = f"{path}:{function.name}"
        if size > FUNCTION_LIMIT and name not in EXCEPTIONS:
            yield f"{name} has {size} lines"
        if part(path) == "nn" and function.name == "__init__":
            taken = len(function.args.args) + len(function.args.kwonlyargs) - 1
            if taken > PARAMETER_LIMIT:
                yield f"{name} takes {taken} parameters"


def test_exceptions_are_still_needed() -> None:
    for name in EXCEPTIONS:
        assert name.partition(":")[0] in files(), f"{name} is gone: delete its exception"
