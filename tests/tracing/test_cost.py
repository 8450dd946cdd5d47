"""FLOPs by closed form, memory that checkpointing lowers, gradients that it leaves alone."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.tracing.cost import FlopCounter, count_alive, measure_costs, sweep
from descend.tracing.program import Program
from descend.tracing.record import record
from tests.close import close

DEPTH, WIDTH, BATCH = 12, 16, 64


def deep() -> Program:
    random = torch.Generator().manual_seed(0)
    weights = [torch.randn(WIDTH, WIDTH, generator=random, dtype=torch.float64) / 4 for _ in range(DEPTH)]

    def f(x: Tensor, *weights: Tensor) -> Tensor:
        for w in weights:
            x = (x @ w).tanh()
        return x.sum()

    return record(f, [torch.randn(BATCH, WIDTH, generator=random, dtype=torch.float64), *weights], lambda y: y)


def test_flops_of_a_deep_network() -> None:
    """A layer is 2bd² + bd; the backward pass is twice the products, and a little more."""
    evaluate, reverse, checkpointed, forward = measure_costs(deep())
    product, rest = 2 * BATCH * WIDTH**2, BATCH * WIDTH
    assert evaluate.flops == DEPTH * (product + rest) + 1
    assert reverse.flops is not None
    assert forward.flops is not None
    assert checkpointed.flops is not None
    assert DEPTH * 3 * product <= reverse.flops <= DEPTH * 3.4 * product
    assert DEPTH * 3 * product <= forward.flops <= DEPTH * 3.4 * product  # ẏ = ẋ W + x Ẇ
    assert reverse.flops < checkpointed.flops < reverse.flops + evaluate.flops
    assert (reverse.passes, forward.passes) == (1, BATCH * WIDTH + DEPTH * WIDTH**2)
    assert all(cost.seconds is not None and cost.seconds > 0 for cost in (evaluate, reverse, checkpointed, forward))


def test_memory_of_each_mode() -> None:
    program = deep()
    _, reverse, checkpointed, forward = measure_costs(program, segments=4)
    activation = BATCH * WIDTH * 8
    assert reverse.memory == DEPTH * activation  # tanh keeps its output, matmul its inputs: the same tensors
    assert checkpointed.memory is not None
    assert checkpointed.memory < 0.6 * reverse.memory
    assert checkpointed.evaluations is not None
    assert reverse.evaluations == 2 * DEPTH + 1
    assert reverse.evaluations < checkpointed.evaluations < 2 * reverse.evaluations
    assert count_alive(program) == 2 * activation
    assert forward.memory == 4 * activation  # it does not grow with depth


def test_checkpointing_leaves_the_gradients_alone() -> None:
    program = deep()
    whole = sweep(program, 1)
    for segments in (2, 5, len(program.operations)):
        for ours, theirs in zip(sweep(program, segments).gradients, whole.gradients, strict=True):
            assert torch.equal(ours, theirs)
    for index, gradient in program.torch_gradients.items():
        close(whole.gradients[program.sources.index(program.nodes[index])], gradient)


def test_views_and_copies_are_free() -> None:
    x = torch.ones(4, 6)
    with FlopCounter() as counter:
        x.t().reshape(-1).view(2, 12).clone()
    assert counter.total == 0
    with FlopCounter() as counter:
        x @ x.t()
        x + 1
    assert counter.total == 2 * 4 * 4 * 6 + 24
