"""The mutants of a source file: each is one small change that alters what the code computes.

    a < b     a <= b        comparisons, also == and !=, is and is not, in and not in
    a + b     a - b         arithmetic, also * and /, // and *, ** and *
    n         n + 1         whole numbers
    a and b   a or b        and conditions negated or taken as true, `not` removed, True and False swapped
    x.mean()  x.sum()       and other pairs of names: max and min, sin and cos, zeros and ones, ...
    x.detach()  x           and other calls that return their object changed
    return a + b  return a  one operand
    f(x)      pass          a call whose result nobody takes

What changes no result is left out: docstrings, type hints, messages of errors, text, `__repr__`, and figures. So are
constants outside of functions: they are settings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Pow: ("**", "*"),
    ast.Mod: ("%", "+"),
}
PAIRS = "mean sum, max min, amax amin, argmax argmin, maximum minimum, zeros ones, sin cos, floor ceil, cumsum cumprod"
NAMES = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
UNARY_CALLS = {"detach", "abs", "sqrt", "exp", "log", "square", "flip", "transpose", "sigmoid", "tanh", "softmax"}
HIDDEN = ast.Raise | ast.Assert | ast.JoinedStr | ast.FunctionDef | ast.ClassDef  # functions inside come on their own
COSMETIC = {"__repr__", "__str__", "figure", "print", "warn", "warning", "write_line", "set_title", "set_xlabel"}


@dataclass(frozen=True)
class Mutant:
    """source[start:end] becomes `new`; `line` counts from 1."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def key(self) -> str:
        """What tells it from the others, also in a later run on the same source."""
        return f"{self.path}:{self.line} [{self.start}] {self.old} -> {self.new}"

    def apply(self, source: str) -> str:
        """The whole changed source; the columns of a syntax tree count bytes."""
        raw = source.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()


def find_mutants(source: str, path: str) -> list[Mutant]:
    """All mutants of a file, in the order of the source."""
    return sorted(set(Finder(source, path).visit_functions()), key=lambda m: (m.start, m.end, m.new))


class Finder:
    """Walks the bodies of the functions of a file."""

    def __init__(self, source: str, path: str):
        self.tree, self.path, self.raw = ast.parse(source), path, source.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def visit_functions(self) -> Iterator[Mutant]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and node.name not in COSMETIC:
                for statement in node.body:
                    yield from self.visit(statement)

    def visit(self, node: ast.AST) -> Iterator[Mutant]:
        """The mutants of a node and of all below it, without those places where a change means nothing."""
        if isinstance(node, HIDDEN):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in COSMETIC:
            return
        yield from self.change(node)
        hints = {id(node.annotation)} if isinstance(node, ast.AnnAssign) else set()
        if isinstance(node, ast.Call) and called(node) == "cast":
            hints = {id(node.args[0])}
        for child in ast.iter_child_nodes(node):
            if id(child) not in hints:
                yield from self.visit(child)

    def change(self, node: ast.AST) -> Iterator[Mutant]:
        """The mutants of this node alone."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield self.between(node, left, right, *COMPARISONS[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                yield self.between(node, left, right, *ARITHMETIC[type(op)])
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield self.between(node, left, right, *(("and", "or") if isinstance(op, ast.And) else ("or", "and")))
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
                yield self.replace(node, f"({self.text(operand)})")
            case ast.Constant(value=bool(value)):
                yield self.replace(node, str(not value))
            case ast.Constant(value=int(value)):
                yield self.replace(node, str(value + 1))
            case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() | ast.BoolOp() as test):
                yield self.replace(test, f"(not ({self.text(test)}))")
            case ast.IfExp(body=body):
                yield self.replace(node, f"({self.text(body)})")
            case ast.Attribute(attr=attr) if attr in NAMES:
                yield self.replace(node, self.text(node).removesuffix(attr) + NAMES[attr])
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield self.replace(node.func, NAMES[name])
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in UNARY_CALLS and not is_module(value):
                yield self.replace(node, f"({self.text(value)})")
            case ast.Return(value=ast.BinOp(left=left) as value):
                yield self.replace(value, f"({self.text(left)})")
            case ast.Expr(value=ast.Call()):
                yield self.replace(node, "pass")

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def replace(self, node: ast.AST, new: str) -> Mutant:
        start, end = self.span(node)
        return Mutant(self.path, node.lineno, start, end, self.text(node), new)  # type: ignore[attr-defined]

    def between(self, node: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> Mutant:
        """The operator between two operands; the whole expression is shown, since "+" alone says little."""
        (start, end), gap_start, gap_end = self.span(node), self.span(left)[1], self.span(right)[0]
        before, gap, after = (
            self.raw[a:b].decode() for a, b in ((start, gap_start), (gap_start, gap_end), (gap_end, end))
        )
        return self.replace(node, before + gap.replace(old, new, 1) + after)


def is_module(node: ast.AST) -> bool:
    """torch.exp(x) is no method of x."""
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "np", "math", "nn")


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )
