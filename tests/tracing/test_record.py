"""What ran is what is recorded: in-place writes, views, random calls, own functions, modules, no_grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from descend.errors import Mistake
from descend.tracing.modes import differentiate, measure_disagreement
from descend.tracing.program import Program
from descend.tracing.record import record
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def checked(fn: Callable[..., Any], *inputs: Any) -> Program:
    """The program of fn; it computes the same again, and its gradients are those of autograd."""
    program = record(fn, inputs, lambda y: y)
    close(program.evaluate([node.value for node in program.leaves]), program.nodes[program.output].value)
    assert not program.refused
    assert program.torch_gradients
    assert any(g.abs().max() > 0 for g in program.torch_gradients.values())
    assert measure_disagreement(program, differentiate(program)) < 1e-9
    return program


def calls(program: Program) -> list[str]:
    return [node.op for node in program.operations]


def test_names_are_those_of_the_variables() -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        z = w @ x
        h = z.tanh()
        return (h * h).sum()

    program = checked(f, t([1.0, 2.0]), t([[0.1, 0.2], [0.3, 0.4]]))
    assert [node.name for node in program.nodes] == ["x", "w", "z", "h", "v3", "v4"]
    assert calls(program) == ["matmul", "tanh", "mul", "sum"]
    assert program.nodes[4].parents == (3, 3)


def test_writing_in_place_makes_new_values() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 2
        y += x
        y.mul_(x)
        return y.sum()

    program = checked(f, t([1.0, 2.0]))
    assert calls(program) == ["mul", "add_", "mul_", "sum"]


def test_the_function_may_write_to_its_input_and_the_caller_does_not_see_it() -> None:
    x = t([1.0, 2.0, 3.0])

    def f(x: Tensor) -> Tensor:
        x[0] = 5.0
        x *= 2
        return (x**2).sum()

    program = checked(f, x)
    assert x.tolist() == [1, 2, 3]
    gradient = differentiate(program).adjoints[0]
    assert gradient is not None
    assert gradient.tolist() == [0, 16, 24]


def test_a_write_is_seen_through_every_view() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1
        row, column, flat = y[0], y[:, 1], y.view(-1)
        row.mul_(3)
        flat[3] = x.sum()
        column.add_(row.clone())
        return (y * x).sum() + row.prod() + (flat**2).sum() + column.sum()

    program = checked(f, t([[1.0, 2.0], [3.0, 4.0]]))
    assert calls(program).count("overwritten") == 6


OPERATIONS: list[Callable[[Tensor, Tensor], Any]] = [
    lambda a, b: a.mul_(0.5),
    lambda a, b: a.add_(b.sum()),
    lambda a, b: a.copy_(b.flip(-1).reshape(a.shape) if a.numel() == b.numel() else b.sum()),
    lambda a, b: a.sin_(),
    lambda a, b: a.__setitem__(0, b.sum()),
    lambda a, b: a.T,
    lambda a, b: a[0],
    lambda a, b: a[..., 0:1],
    lambda a, b: a * 1.0,
    lambda a, b: a.reshape(-1),
]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7))
@pytest.mark.filterwarnings("ignore:The use of `x.T`")
def test_random_programs_of_views_and_writes(program: list[tuple[int, int, int]]) -> None:
    """Whatever is written through whatever view, values are torch's; so are gradients, unless torch refuses."""

    def f(x: Tensor) -> Tensor:
        seen = [x * 1.0]
        for kind, i, j in program:
            a, b = seen[i % len(seen)], seen[j % len(seen)].clone()
            if a.dim() or kind in (0, 1, 3, 8, 9):
                y = OPERATIONS[kind](a, b)
                seen += [y] if isinstance(y, Tensor) and y is not a else []
        return torch.stack([(y * torch.arange(1, y.numel() + 1).reshape(y.shape)).sum() for y in seen]).sum()

    found = record(f, [t([[0.5, -0.3], [0.8, 0.1]])], lambda y: y)
    close(found.evaluate([node.value for node in found.leaves]), found.nodes[found.output].value)
    if not found.refused:
        assert measure_disagreement(found, differentiate(found)) < 1e-9


def test_what_autograd_refuses_is_said() -> None:
    def f(x: Tensor) -> Tensor:
        y = x.exp()
        z = y.sum()
        y.mul_(2)
        return z

    assert "modified by an inplace operation" in record(f, [t([1.0])], lambda y: y).refused


def test_nothing_flows_through_no_grad_and_detach() -> None:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            a = x * 3
        return (x * a + x * x.detach()).sum()

    program = checked(f, t([2.0]))
    found = differentiate(program)
    gradient, tangent = found.adjoints[0], found.tangents[program.output]
    assert gradient is not None
    assert tangent is not None
    assert gradient.tolist() == [8.0]
    assert tangent.item() == 8.0


def test_random_calls_are_repeated_exactly() -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state()
    program = checked(lambda x: (F.dropout(x, 0.5) * torch.randn(100).double()).sum(), torch.ones(100).double())
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    assert (F.dropout(torch.ones(100).double(), 0.5) * torch.randn(100).double()).sum() == program.nodes[-1].value
    assert torch.equal(torch.get_rng_state(), after)  # tracing draws as often as the function


class Twice(torch.autograd.Function):
    """2x², with a rule that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 4 * ctx.saved_tensors[0] * g


def test_an_own_autograd_function_is_one_operation() -> None:
    before = torch.autograd.Function.__dict__["apply"]
    program = checked(lambda x: Twice.apply(x.sin()).sum(), t([0.3, 0.7]))
    assert calls(program) == ["sin", "Twice", "sum"]
    tangent = differentiate(program).tangents[program.output]
    close(tangent, (4 * t([0.3, 0.7]).sin() * t([0.3, 0.7]).cos()).sum())  # J row by row: there is no other way
    assert torch.autograd.Function.__dict__["apply"] is before


def test_modules_give_names_and_places() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4)
    net = nn.Sequential(nn.Linear(3, 4), norm, nn.ReLU(), nn.Linear(4, 1)).double()
    assert norm.running_mean is not None
    before = norm.running_mean.clone()
    program = record(net, [torch.randn(5, 3).double()], lambda y: y.sum())
    assert measure_disagreement(program, differentiate(program)) < 1e-9
    assert {"0.weight", "1.bias", "3.weight"} <= {node.name for node in program.nodes}
    assert [node.where for node in program.operations] == ["0", "1", "2", "3", ""]
    assert not torch.equal(norm.running_mean, before)  # the run itself updates it, once
    once = norm.running_mean.clone()
    differentiate(program)
    assert torch.equal(norm.running_mean, once)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.cat([x, x * 2]).max(0).values.sum(),
        lambda x: sum(row.prod() for row in x),
        lambda x: torch.einsum("ij,kj->ik", x, x).diagonal().sum(),
        lambda x: x.topk(1).values.sum() + x[x > 0].sum(),
        lambda x: torch.where(x > 0, x, x.exp()).mean(),
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]).sum(),
        lambda x: torch.linalg.solve(x, torch.ones(2, dtype=torch.float64)).sum(),
        lambda x: x.T.contiguous().view(-1)[1:3].sum() * x.norm(),
    ],
)
def test_many_kinds_of_operations(fn: Callable[[Tensor], Tensor]) -> None:
    checked(fn, t([[0.5, -0.3], [0.8, 0.1]]))


def test_dead_ends_are_counted_and_left_out() -> None:
    def f(x: Tensor) -> Tensor:
        x.sin().cos()
        return x * 2

    program = checked(f, t(1.0))
    assert calls(program) == ["mul"]
    assert program.skipped == 2


def test_mistakes() -> None:
    def inner(x: Tensor) -> Tensor:
        y = (x**2).sum()
        return torch.autograd.grad(y, x, create_graph=True)[0].sum()

    with pytest.raises(Mistake, match="calls grad; trace the function that it differentiates"):
        record(inner, [t([1.0])], lambda y: y)

    with pytest.raises(Mistake, match="fft makes complex numbers"):
        record(lambda x: torch.fft.fft(x).abs().sum(), [t([1.0, 2.0])], lambda y: y)
    with pytest.raises(Mistake, match="lazy parameters"):
        record(nn.LazyLinear(2), [t([1.0, 2.0])], lambda y: y.sum())

    def overlap(x: Tensor) -> Tensor:
        y = x * 1
        y[:, 1].add_(y[0])
        return y.sum()

    with pytest.raises(Mistake, match="add_ reads memory that it writes to"):
        record(overlap, [t([[1.0, 2.0], [3.0, 4.0]])], lambda y: y)
    with pytest.raises(Mistake, match=r"does not depend on anything differentiable \(x\)"):
        record(lambda x: x * 2, [torch.tensor(3)], lambda y: y)
