"""Who claims which system: the line "Systems: slug, slug" in a docstring, read from the source and never imported.

A claim stands in the docstring of a module, a class or a function. A line that ends with a comma continues in the next.
What a claim is worth is said by the tests (`proof.py`): a docstring alone proves nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

LINE = re.compile(r"^[ \t]*Systems:[ \t]*((?:[^\n]*,[ \t]*\n)*[^\n]*)$", re.MULTILINE)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Claim:
    """`symbol` is the dotted name inside the file, "" for the file itself; `line` is where it starts."""

    slug: str
    path: str
    line: int
    symbol: str

    @property
    def at(self) -> str:
        """path:line, as an editor opens it."""
        return f"{self.path}:{self.line}"


def claims(package: Path = PACKAGE, only: Collection[str] | None = None) -> dict[str, list[Claim]]:
    """slug -> its claims, by path and line. With `only`, files that name none of these slugs are not even parsed."""
    found: dict[str, list[Claim]] = {}
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Systems:" not in source or (only is not None and not any(slug in source for slug in only)):
            continue
        for claim in claims_in(source, path.relative_to(package.parent).as_posix()):
            if only is None or claim.slug in only:
                found.setdefault(claim.slug, []).append(claim)
    return found


def claims_in(source: str, path: str) -> Iterator[Claim]:
    """The claims of one file."""
    for symbol, node in walk_documented(ast.parse(source)):
        for slug in slugs(ast.get_docstring(node) or ""):
            yield Claim(slug, path, 1 if isinstance(node, ast.Module) else node.lineno, symbol)


def walk_documented(node: Documented, symbol: str = "") -> Iterator[tuple[str, Documented]]:
    """The file, its classes and functions, and theirs, with their dotted names."""
    yield symbol, node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from walk_documented(child, f"{symbol}.{child.name}".lstrip("."))


def slugs(docstring: str) -> list[str]:
    """The slugs on the docstring's claim lines."""
    return [slug.strip() for line in LINE.findall(docstring) for slug in line.split(",") if slug.strip()]


def without_claims(docstring: str) -> str:
    """The docstring as a reader wants it: without the claim lines."""
    return LINE.sub("", docstring).strip()
