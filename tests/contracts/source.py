"""The package's source files as syntax trees: what the contract tests read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "descend"

LEVELS = {
    -2: ("errors",),
    -1: ("contracts", "files", "native", "own_code", "ranges", "seeds"),
    0: ("ops", "theory", "web"),
    1: ("nn", "losses", "metrics", "optim", "text", "weights", "autodiff", "interpret", "sampling"),
    2: ("models", "classic", "data"),
    3: ("tasks", "engine", "views"),
    4: ("kinds",),
    5: ("recipes", "pipelines", "inference"),
    6: ("labs", "report", "tracing", "diagnosis", "tuning"),
    7: ("catalog", "server", "exports"),
    8: ("workbench",),
    9: ("verbs",),
    10: ("cli", "__init__"),
    11: ("__main__",),
}
LEVEL = {name: level for level, names in LEVELS.items() for name in names}


@cache
def files() -> dict[str, ast.Module]:
    """Path below the package -> syntax tree."""
    found = sorted(PACKAGE.rglob("*.py"))
    return {str(p.relative_to(PACKAGE)): ast.parse(p.read_text(encoding="utf-8")) for p in found}


def part(path: str) -> str:
    """The folder (or single file) that a path belongs to: "nn/mlp.py" -> "nn", "cli.py" -> "cli"."""
    return path.partition("/")[0].removesuffix(".py")


def folders() -> list[str]:
    """The folders and single files of the package."""
    return sorted({part(path.relative_to(PACKAGE).as_posix()) for path in PACKAGE.rglob("*.py")})


def files_of(folder: str) -> dict[str, ast.Module]:
    """Path below the package -> syntax tree, of one folder."""
    return {path: tree for path, tree in files().items() if part(path) == folder}


def nodes_of(folder: str) -> Iterator[tuple[str, ast.AST]]:
    """(path, node) for every node in a folder's syntax trees."""
    for path, tree in files_of(folder).items():
        yield from ((path, node) for node in ast.walk(tree))


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of descend that a tree imports, anywhere: in functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "descend")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "descend":
            if node.module == "descend":
                yield from (f"descend.{alias.name}" for alias in node.names)
            else:
                yield node.module


def size_report(count: int = 10) -> list[str]:
    """The longest files, and the whole."""
    lines = {path: len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) for path in files()}
    longest = sorted(lines, key=lambda path: -lines[path])[:count]
    return [f"{sum(lines.values())} lines in {len(lines)} files; the longest:", *(f"{lines[p]:5} {p}" for p in longest)]
