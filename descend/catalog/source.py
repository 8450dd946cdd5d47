"""The code behind a claim, as a reader wants to see it: the docstring with the equation, then what computes it.

A file that claims several systems shows, for each, the functions and classes named like it (`causal_mask` for
causal-mask) and those of the same file that they use. When no name fits, the whole file is shown.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import pairwise

from descend.catalog.claims import PACKAGE, Claim, walk_documented, without_claims

LONGEST = 100  # lines of code shown for one claim; the file has the rest

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Piece:
    """Some lines of a file, from `line` on."""

    line: int
    text: str


def read(claim: Claim) -> tuple[str, list[Piece]]:
    """The docstring that claims (without the claim), and the pieces of code to show."""
    source = (PACKAGE.parent / claim.path).read_text(encoding="utf-8")
    tree = ast.parse(source)
    node = next(node for symbol, node in walk_documented(tree) if symbol == claim.symbol)
    text = without_claims(ast.get_docstring(node) or "")
    wanted = [node] if isinstance(node, Definition) else choose_definitions(tree, claim.slug)
    pieces = [piece(source, n) for n in wanted] or body(source, tree)
    return text, trim(pieces, claim.path)


def choose_definitions(tree: ast.Module, slug: str) -> list[Definition]:
    """The definitions named like the slug, and those they use, in the order of the file."""
    defined = {n.name: n for n in tree.body if isinstance(n, Definition)}
    parts = slug.split("-")
    # GPT2 is gpt-2 and BatchNorm is batch-norm: a name may write two words of the slug as one.
    words = {*parts, *(a + b for a, b in pairwise(parts))}
    exact = [n for n in defined if "".join(name_words(n)) == "".join(parts) or set(parts) <= set(name_words(n))]
    names = exact or most([n for n in defined if set(name_words(n)) <= words])
    seen: set[str] = set()
    while names:
        name = names.pop()
        seen.add(name)
        used = {n.id for n in ast.walk(defined[name]) if isinstance(n, ast.Name)}
        names += [n for n in used & defined.keys() if n not in seen]
    return [n for name, n in defined.items() if name in seen]


def name_words(name: str) -> list[str]:
    """causal_mask -> causal, mask; ReplayBuffer -> replay, buffer; GPT2Config -> gpt2, config."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", name)]


def most(names: list[str]) -> list[str]:
    """Those with the most words."""
    return [n for n in names if len(name_words(n)) == max(len(name_words(m)) for m in names)]


def piece(source: str, node: ast.stmt) -> Piece:
    """A statement with its decorators."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return Piece(first, "\n".join(source.splitlines()[first - 1 : node.end_lineno]))


def body(source: str, tree: ast.Module) -> list[Piece]:
    """The whole file after its docstring and imports."""
    rest = [n for n in tree.body if not isinstance(n, ast.Import | ast.ImportFrom | ast.Expr)]
    if not rest:
        return []
    first = piece(source, rest[0]).line
    return [Piece(first, "\n".join(source.splitlines()[first - 1 :]).rstrip())]


def trim(pieces: list[Piece], path: str) -> list[Piece]:
    """At most LONGEST lines; what is left out is said."""
    shown: list[Piece] = []
    room = LONGEST
    for p in pieces:
        lines = p.text.split("\n")
        if len(lines) > room:
            head = lines[: max(room, 0)]
            note = f"# ... {sum(len(q.text.splitlines()) for q in pieces) - LONGEST} more lines in {path}"
            return [*shown, Piece(p.line, "\n".join([*head, note]))]
        shown.append(p)
        room -= len(lines)
    return shown
