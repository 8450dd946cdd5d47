"""RNN, LSTM and attention: counted operations of real layers, real paths of the gradient."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from descend.ops.attention.dot_product import attention
from descend.theory.sequence_cost import (
    ATTENTION,
    LSTM,
    RNN,
    crossover,
    recurrent_multiplications,
    step_multiplications,
)

SLUG = "sequence-architecture-comparison"


@pytest.mark.system(SLUG, "paths")
@pytest.mark.system(SLUG)
def test_paths_and_steps() -> None:
    assert (RNN.path(1, 100), LSTM.path(100, 1), ATTENTION.path(1, 100)) == (99, 99, 1)
    assert ATTENTION.path(5, 5) == RNN.path(5, 5) == 0
    assert (RNN.steps(1000), LSTM.steps(1000), ATTENTION.steps(1000)) == (1000, 1000, 1)


def depth(node: object, seen: dict[object, int]) -> int:
    """The longest chain of recurrent products in a graph."""
    if node is None:
        return 0
    if node not in seen:
        below = max((depth(n, seen) for n, _ in node.next_functions), default=0)  # type: ignore[attr-defined]
        seen[node] = below + ("Tanh" in type(node).__name__ or "Softmax" in type(node).__name__)
    return seen[node]


@pytest.mark.system(SLUG, "critical-path")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("n", [3, 10])
def test_steps_in_a_row_of_real_graphs(n: int) -> None:
    """The critical path in nonlinear steps: n in an RNN, one softmax in attention, whatever n."""
    x = torch.randn(n, 4, requires_grad=True)
    cell, h = torch.nn.Linear(8, 4), torch.zeros(4)
    for row in x:
        h = torch.tanh(cell(torch.cat([row, h])))
    assert depth(h.grad_fn, {}) == RNN.steps(n)
    assert depth(attention(x, x, x)[0].grad_fn, {}) == ATTENTION.steps(n)


@pytest.mark.system(SLUG, "counts")
@pytest.mark.system(SLUG)
@pytest.mark.filterwarnings("ignore:TF32")
@pytest.mark.parametrize(("kind", "law", "gates"), [(torch.nn.RNN, RNN, 1), (torch.nn.LSTM, LSTM, 4)])
def test_counts_of_real_recurrent_layers(kind: type[torch.nn.RNNBase], law: object, gates: int) -> None:
    n, d_x, d_h = 7, 3, 5
    layer = kind(d_x, d_h)
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:  # fused: not counted
        layer(torch.randn(n, 1, d_x))
    assert counter.get_total_flops() == 2 * n * step_multiplications(d_x, d_h, gates)
    assert law.multiplications(n, d_h) == n * gates * recurrent_multiplications(d_h)  # type: ignore[attr-defined]


@pytest.mark.system(SLUG, "crossover")
@pytest.mark.system(SLUG)
def test_costs_cross_at_n_equal_to_d() -> None:
    for d in (8, 512):
        n = crossover(d)
        assert ATTENTION.multiplications(n, d) == RNN.multiplications(n, d)
        assert ATTENTION.multiplications(n - 1, d) < RNN.multiplications(n - 1, d)
        assert ATTENTION.multiplications(n + 1, d) > RNN.multiplications(n + 1, d)


@pytest.mark.system("attention-cost-model", "routing")
@pytest.mark.system(SLUG)
def test_every_input_reaches_every_output_in_one_layer_of_attention() -> None:
    x = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    jacobian = torch.autograd.functional.jacobian(lambda x: attention(x, x, x)[0], x)
    assert (jacobian.abs().amax(dim=(1, 3)) > 0).all()
