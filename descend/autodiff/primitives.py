"""The primitives of differentiation: for each, its value, its vector-Jacobian and its Jacobian-vector product.

    y = f(x),  J = ∂y/∂x (b x a)        vjp: x̄ = Jᵀ ȳ  (reverse mode)        jvp: ẏ = J ẋ  (forward mode)
    both describe one linear map: ⟨ȳ, J ẋ⟩ = ⟨Jᵀ ȳ, ẋ⟩

J is never built. A sum over broadcast axes is the adjoint of broadcasting. A primitive called with plain tensors gives
a tensor; called with a traced value (of the tape, of forward mode, of a graph) it lets that value decide.

Erratum: the title of MF 10.4.1 says Jacobian-vector product; the operation Jᵀ ȳ is the vector-Jacobian product.

Systems: vjp-and-jvp-primitives
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from descend.ops.backward.layers import softmax_backward


class Traced:
    """A value that sees the operations done to it. Subclasses say in `apply` what a primitive makes of it."""

    def apply(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return ADD(self, other)

    def __radd__(self, other: Any) -> Any:
        return ADD(other, self)

    def __sub__(self, other: Any) -> Any:
        return SUB(self, other)

    def __rsub__(self, other: Any) -> Any:
        return SUB(other, self)

    def __mul__(self, other: Any) -> Any:
        return MUL(self, other)

    def __rmul__(self, other: Any) -> Any:
        return MUL(other, self)

    def __truediv__(self, other: Any) -> Any:
        return DIV(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return DIV(other, self)

    def __matmul__(self, other: Any) -> Any:
        return MATMUL(self, other)

    def __neg__(self) -> Any:
        return NEG(self)

    def __pow__(self, n: float) -> Any:
        return power(n)(self)


@dataclass(frozen=True)
class Primitive:
    """`vjp(ȳ, y, *x)` gives the adjoint of each input, `jvp(ẋ, y, *x)` the tangent of y from a tuple of tangents."""

    name: str
    value: Callable[..., Tensor]
    vjp: Callable[..., tuple[Tensor, ...]]
    jvp: Callable[..., Tensor]

    def __call__(self, *inputs: Any) -> Any:
        for x in inputs:
            if isinstance(x, Traced):
                return x.apply(self, inputs)
        return self.value(*inputs)


def unbroadcast(g: Tensor, like: Tensor) -> Tensor:
    """Sum over the axes that broadcasting added or stretched: the adjoint of `expand`."""
    return g.sum_to_size(like.shape)


def elementwise(name: str, f: Callable[[Tensor], Tensor], slope: Callable[[Tensor, Tensor], Tensor]) -> Primitive:
    """A function of single elements; `slope(y, x)` is its derivative, so J is diagonal and both products are one."""
    return Primitive(name, f, lambda g, y, x: (g * slope(y, x),), lambda t, y, x: t[0] * slope(y, x))


def matrices(a: Tensor, b: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The factors and the product's adjoint with vectors as matrices of one row or column."""
    if b.dim() == 1:
        b, g = b[:, None], g[..., None]
    if a.dim() == 1:
        a, g = a[None], g.unsqueeze(-2)
    return a, b, g


def matmul_vjp(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Ā = Ȳ Bᵀ, B̄ = Aᵀ Ȳ"""
    left, right, out = matrices(a, b, g)
    a_bar, b_bar = out @ right.mT, left.mT @ out
    return unbroadcast(a_bar, left).view_as(a), unbroadcast(b_bar, right).view_as(b)


def log_softmax_vjp(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    """x̄ = ȳ − p Σ ȳ"""
    return (g - y.exp() * g.sum(dim=-1, keepdim=True),)


def power(n: float) -> Primitive:
    """xⁿ for a fixed n."""
    return elementwise(f"pow{n:g}", lambda x: x**n, lambda y, x: n * x ** (n - 1))


def total(dim: int) -> Primitive:
    """Σ over one axis."""
    return Primitive(
        f"sum{dim}",
        lambda x: x.sum(dim),
        lambda g, y, x: (g.unsqueeze(dim).expand_as(x),),
        lambda t, y, x: t[0].sum(dim),
    )


ADD = Primitive(
    "add",
    lambda a, b: a + b,
    lambda g, y, a, b: (unbroadcast(g, a), unbroadcast(g, b)),
    lambda t, y, a, b: t[0] + t[1],
)
SUB = Primitive(
    "sub",
    lambda a, b: a - b,
    lambda g, y, a, b: (unbroadcast(g, a), unbroadcast(-g, b)),
    lambda t, y, a, b: t[0] - t[1],
)
MUL = Primitive(
    "mul",
    lambda a, b: a * b,
    lambda g, y, a, b: (unbroadcast(g * b, a), unbroadcast(g * a, b)),
    lambda t, y, a, b: t[0] * b + a * t[1],
)
DIV = Primitive(
    "div",
    lambda a, b: a / b,
    lambda g, y, a, b: (unbroadcast(g / b, a), unbroadcast(-g * y / b, b)),
    lambda t, y, a, b: (t[0] - y * t[1]) / b,
)
MATMUL = Primitive("matmul", torch.matmul, matmul_vjp, lambda t, y, a, b: t[0] @ b + a @ t[1])
TRANSPOSE = Primitive("transpose", lambda x: x.mT, lambda g, y, x: (g.mT,), lambda t, y, x: t[0].mT)
SUM = Primitive("sum", torch.sum, lambda g, y, x: (g.expand_as(x),), lambda t, y, x: t[0].sum())
MEAN = Primitive("mean", torch.mean, lambda g, y, x: ((g / x.numel()).expand_as(x),), lambda t, y, x: t[0].mean())
SOFTMAX = Primitive(
    "softmax",
    lambda x: x.softmax(-1),
    lambda g, y, x: (softmax_backward(y, g),),
    lambda t, y, x: softmax_backward(y, t[0]),  # diag(p) − p pᵀ is symmetric
)
LOG_SOFTMAX = Primitive(
    "log_softmax",
    lambda x: x.log_softmax(-1),
    log_softmax_vjp,
    lambda t, y, x: t[0] - (y.exp() * t[0]).sum(dim=-1, keepdim=True),
)
NEG = elementwise("neg", torch.neg, lambda y, x: -torch.ones_like(x))
EXP = elementwise("exp", torch.exp, lambda y, x: y)
LOG = elementwise("log", torch.log, lambda y, x: 1 / x)
SIN = elementwise("sin", torch.sin, lambda y, x: x.cos())
COS = elementwise("cos", torch.cos, lambda y, x: -x.sin())
SQRT = elementwise("sqrt", torch.sqrt, lambda y, x: 0.5 / y)
TANH = elementwise("tanh", torch.tanh, lambda y, x: 1 - y.square())
SIGMOID = elementwise("sigmoid", torch.sigmoid, lambda y, x: y * (1 - y))
RELU = elementwise("relu", torch.relu, lambda y, x: (x > 0).to(x.dtype))
IDENTITY = elementwise("identity", torch.clone, lambda y, x: torch.ones_like(x))

PRIMITIVES = {
    p.name: p
    for p in (ADD, SUB, MUL, DIV, MATMUL, TRANSPOSE, SUM, MEAN, SOFTMAX, LOG_SOFTMAX, NEG, EXP, LOG, SIN, COS, SQRT)
} | {p.name: p for p in (TANH, SIGMOID, RELU, IDENTITY, power(2), power(3), total(0), total(-1))}


def tensor(x: Any, like: Tensor | None = None) -> Tensor:
    """A tensor of x; a plain number takes the dtype of its partner."""
    if isinstance(x, Tensor):
        return x
    return torch.as_tensor(x, dtype=torch.float64 if like is None else like.dtype)


def chain_backward(jacobians: list[Tensor], g: Tensor) -> list[Tensor]:
    """The adjoints along x → h₁ → .. → h_L, the input's first: g_{l-1} = J_lᵀ g_l, for layers given by their J_l."""
    adjoints = [g]
    for j in reversed(jacobians):
        adjoints.append(j.T @ adjoints[-1])
    return adjoints[::-1]
