"""Expressions such as sin(x*y) + x**2, read with `ast` and computed with torch: nothing else can be said in them."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake, nearest
from descend.ranges import shorten

UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}
SHARED = (
    "abs acos asin atan cos cosh dot erf exp log log2 log10 matmul max maximum mean min minimum norm outer prod relu "
    "sigmoid sign sin sinh sqrt square sum tan tanh"
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in SHARED.split()},
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softplus": torch.nn.functional.softplus,
    "gelu": torch.nn.functional.gelu,
}
NUMBERS = {"pi": math.pi, "e": math.e}
LONGEST = 2000  # characters of an expression
DEEPEST = 100  # levels of nesting
FAULTS = (TypeError, ValueError, RuntimeError, IndexError, ArithmeticError)
"""What numbers and shapes that do not go together raise."""


class Expression:
    """An expression as a function of its variables, in the order in which they appear.

    After a call, `names` has every part of the expression with its value: that is how a trace names its nodes.
    """

    def __init__(self, text: str):
        if len(text) > LONGEST:
            raise Mistake(f"an expression of {len(text):,} characters: give at most {LONGEST:,}, or trace a function")
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise Mistake(f"{shorten(text)!r} is not an expression: {error.msg} at character {error.offset}") from None
        except (ValueError, RecursionError, MemoryError) as error:  # a null character; nested too deeply
            raise Mistake(f"{shorten(text)!r} is not an expression: {error or 'nested too deeply'}") from None
        if measure_depth(self.tree) > DEEPEST:
            raise Mistake(f"{shorten(text)!r} is nested more than {DEEPEST} levels deep; trace a function instead")
        self.text, self.names = text, dict[str, Any]()
        self.variables = list(dict.fromkeys(list_variables(self.tree)))
        self.check(self.tree)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in self.variables])

    def check(self, node: ast.AST) -> None:
        """Refuse what has no meaning here, before anything is computed."""
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.keywords:
                raise self.wrong(node, "only plain calls such as sin(x) are understood")
            if node.func.id not in FUNCTIONS:
                hint = nearest(node.func.id, FUNCTIONS)
                raise Mistake(f"there is no function {node.func.id!r}.{hint} Known: {', '.join(sorted(FUNCTIONS))}")
            children: list[ast.expr] = node.args
        elif isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            children = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
            children = [node.operand]
        elif isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
            children = []
        else:
            raise self.wrong(node, "write it with + - * / ** @, numbers, variables and functions")
        for child in children:
            self.check(child)

    def wrong(self, node: ast.AST, why: str) -> Mistake:
        return Mistake(f"{shorten(ast.unparse(node))!r} is not understood: {why}")

    def __call__(self, *inputs: Tensor) -> Any:
        self.names = {}
        return self.compute(self.tree, dict(zip(self.variables, inputs, strict=True)))

    def compute(self, node: ast.AST, values: Mapping[str, Tensor]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return values[node.id] if node.id in values else NUMBERS[node.id]
        if isinstance(node, ast.BinOp):
            pair = [self.compute(node.left, values), self.compute(node.right, values)]
            if not any(isinstance(x, Tensor) for x in pair):
                pair = self.attempt(
                    node, lambda *whole: [*map(float, whole)], pair
                )  # 9**9**9 in whole numbers never ends
            y = self.attempt(node, BINARY[type(node.op)], pair)
        elif isinstance(node, ast.UnaryOp):
            y = UNARY[type(node.op)](self.compute(node.operand, values))
        else:
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Name)
            y = self.call(node, node.func.id, [self.compute(arg, values) for arg in node.args])
        self.names[ast.unparse(node)] = y
        return y

    def call(self, node: ast.AST, name: str, args: list[Any]) -> Any:
        make = lambda x: x if isinstance(x, Tensor) else torch.tensor(float(x), dtype=torch.float64)
        return self.attempt(node, lambda *given: FUNCTIONS[name](*map(make, given)), args)

    def attempt(self, node: ast.AST, compute: Callable[..., Any], args: list[Any]) -> Any:
        """The result, a real number; or the part of the expression that has none."""
        try:
            y = compute(*args)
        except FAULTS as error:
            said = str(error.args[-1] if error.args else "").strip().splitlines() or [type(error).__name__]
            raise self.wrong(node, said[0][:120]) from None
        if isinstance(y, complex):
            raise self.wrong(node, "its value is not a real number")
        return y


def measure_depth(tree: ast.AST) -> int:
    """Levels of nesting, counted without recursion."""
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return depth


def list_variables(tree: ast.AST) -> list[str]:
    """The names in an expression that are neither functions nor numbers, from left to right."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return [node.id for node in names if node.id not in NUMBERS]


def read_values(at: list[str]) -> dict[str, Tensor]:
    """["x=1", "w=[[1,2],[3,4]]"] as float64 tensors."""
    found = {}
    for text in at:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise Mistake(f"--at {shorten(text)}: write a name and a value, such as --at x=1 or --at w=[1,2]")
        try:
            found[name] = torch.tensor(ast.literal_eval(value), dtype=torch.float64)
        except (*FAULTS, SyntaxError, MemoryError):  # RecursionError is a RuntimeError
            raise Mistake(
                f"--at {shorten(text)}: {shorten(value)!r} is neither a number nor a list of numbers"
            ) from None
    return found


def order_inputs(expression: Expression, at: Mapping[str, Tensor]) -> list[Tensor]:
    """The value of every variable, in order."""
    missing = [name for name in expression.variables if name not in at]
    if missing:
        given = " ".join(f"--at {name}=VALUE" for name in missing)
        raise Mistake(f"{shorten(expression.text)!r} needs a value for {', '.join(missing)}: add {given}")
    if spare := [name for name in at if name not in expression.variables]:
        known = ", ".join(expression.variables) or "none"
        raise Mistake(f"--at {spare[0]}: the expression has no variable {spare[0]!r}; its variables: {known}")
    return [at[name] for name in expression.variables]
