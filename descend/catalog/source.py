"""The code that shows a system best: its standard form first, the fast form beside it, and where else it is built.

The standard form is discovered: among the files that claim the system, the definition that bears its name (or another
name of it), with what it uses in the same file; an equation before the layer, the layer before the model, and a lab
last. Where a name misleads, `spec/shown.tsv` says which definition to show (system, standard, fast: file:symbol,symbol
below the package, several places with a space between). A fast form is always said there, never guessed.
"""

from __future__ import annotations

import ast
import csv
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from descend.catalog.claims import PACKAGE, Claim, walk_documented, without_claims
from descend.catalog.search import aliases
from descend.catalog.systems import SPEC

LONGEST = 100  # lines of code shown for one claim; the file has the rest
FOLDERS = (
    *("ops", "losses", "nn", "optim", "text", "sampling", "classic", "models", "tasks", "data", "metrics", "autodiff"),
    *("theory", "interpret", "engine", "kinds", "labs"),
)
EXACT, LONGER, SHORTER, NONE = range(4)  # how a definition's name meets the system's

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Piece:
    """Some lines of a file, from `line` on."""

    line: int
    text: str


@dataclass(frozen=True)
class Code:
    """A place in the code: where the definition starts, the file's docstring with the equation, and the code."""

    path: str
    line: int
    symbol: str
    equation: str
    pieces: tuple[Piece, ...]

    @property
    def at(self) -> str:
        """path:line, as an editor opens it."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Forms:
    """The standard form of a system, its fast form where there is one, and the other places that build it."""

    standard: tuple[Code, ...]
    fast: tuple[Code, ...]
    more: tuple[Code, ...]


@cache
def shown() -> dict[str, tuple[str, str]]:
    """slug -> (standard, fast) of `spec/shown.tsv`; "" where nothing is said."""
    with (SPEC / "shown.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {r["system"]: (r["standard"] or "", r["fast"] or "") for r in rows}


def forms(slug: str, claimed: Collection[Claim]) -> Forms:
    """The code of a system, in the order in which a reader wants it."""
    if not claimed:
        return Forms((), (), ())
    found = sorted(((rank(claim), read(claim)) for claim in claimed), key=lambda pair: pair[0])
    standard, fast = (tuple(map(read_place, place.split())) for place in shown().get(slug, ("", "")))
    standard = standard or (found[0][1],)
    if standard[0].path not in {claim.path for claim in claimed}:  # the file that claims a system defines it
        standard = (replace(standard[0], equation=found[0][1].equation), *standard[1:])
    seen = {code.path for code in standard + fast}
    return Forms(standard, fast, tuple(code for _, code in found if code.path not in seen))


def rank(claim: Claim) -> tuple[bool, int, int, str]:
    """Labs last; then by how well a name fits; then by the folder's place."""
    folder = claim.path.split("/")[1]
    place = FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)
    fit = EXACT if claim.symbol else choose_names(definitions(parse(claim.path)), claim.slug)[0]
    return folder == "labs", fit, place, claim.path


def read(claim: Claim) -> Code:
    """The docstring that claims (without the claim), and the code to show."""
    tree = parse(claim.path)
    defined = definitions(tree)
    if claim.symbol:
        node = next(node for symbol, node in walk_documented(tree) if symbol == claim.symbol)
        names, wanted = [claim.symbol], [node]
        text = ast.get_docstring(node) or ""
    else:
        fit, names = choose_names(defined, claim.slug)
        if fit == NONE and claim.path.split("/")[1] == "labs":
            names, used = ["measure"], ["measure"]  # what a lab does; the rest of its file prepares and draws
        else:
            used = with_used(defined, names)
        text, wanted = ast.get_docstring(tree) or "", [defined[name] for name in used]
    return make_code(claim.path, names, without_claims(text), wanted)


def read_place(place: str) -> Code:
    """The code of `file:symbol,symbol` in shown.tsv; a symbol may be a method."""
    name, _, symbols = place.partition(":")
    path = f"{PACKAGE.name}/{name}"
    tree, names = parse(path), symbols.split(",")
    nodes = dict(walk_documented(tree))
    # An equation of its own says it best; the file says the rest.
    own, whole = (ast.get_docstring(node) or "" for node in (nodes[names[0]], tree))
    text = f"{own}\n\n{whole}" if "\n    " in own else whole
    return make_code(path, names, without_claims(text), [nodes[name] for name in names])


def make_code(path: str, names: list[str], text: str, wanted: Sequence[ast.AST]) -> Code:
    """The pieces of a file; all of it where no name fits."""
    source, tree = read_source(path), parse(path)
    pieces = [piece(source, n) for n in wanted if isinstance(n, Definition)] or body(source, tree)
    line = pieces[0].line if pieces else 1
    return Code(path, line, names[0] if names else "", text, tuple(trim(pieces, path)))


@cache
def read_source(path: str) -> str:
    """A file of the package."""
    return (PACKAGE.parent / path).read_text(encoding="utf-8")


@cache
def parse(path: str) -> ast.Module:
    """A file of the package, as syntax."""
    return ast.parse(read_source(path))


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """name -> the function or class at the top of the file."""
    return {n.name: n for n in tree.body if isinstance(n, Definition)}


def choose_names(defined: Collection[str], slug: str) -> tuple[int, list[str]]:
    """The names that fit the system best, and how well: its own name or an alias, a longer one, a shorter one."""
    parts = slug.split("-")
    called = {"".join(re.findall("[a-z0-9]+", name.lower())) for name in (slug, *aliases().get(slug, ()))}
    if exact := [n for n in defined if "".join(name_words(n)) in called]:
        own = [n for n in exact if "".join(name_words(n)) == "".join(parts)]
        return EXACT, own or exact
    # GPT2 is gpt-2 and BatchNorm is batch-norm: a name may write two words of the slug as one.
    words = {*parts, *(a + b for a, b in pairwise(parts))}
    if longer := [n for n in defined if set(parts) <= set(name_words(n))]:
        return LONGER, [n for n in longer if len(name_words(n)) == min(len(name_words(m)) for m in longer)]
    shorter = [n for n in defined if set(name_words(n)) <= words]
    most = max((len(name_words(n)) for n in shorter), default=0)
    return (SHORTER if shorter else NONE), [n for n in shorter if len(name_words(n)) == most]


def with_used(defined: dict[str, Definition], names: list[str]) -> list[str]:
    """These definitions, and then those of the same file that they use, in its order."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        used = {n.id for n in ast.walk(defined[name]) if isinstance(n, ast.Name)}
        waiting += [n for n in used & defined.keys() if n not in seen]
    return [*names, *(n for n in defined if n in seen and n not in names)]


def name_words(name: str) -> list[str]:
    """causal_mask -> causal, mask; ReplayBuffer -> replay, buffer; GPT2Config -> gpt2, config."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", name)]


def piece(source: str, node: ast.stmt) -> Piece:
    """A statement with its decorators; a method begins at the left, like a function."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return Piece(first, textwrap.dedent("\n".join(source.splitlines()[first - 1 : node.end_lineno])))


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
