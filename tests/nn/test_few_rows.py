"""The fast linear maps are functional.linear, whatever the number of rows and the shape."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from descend.nn.few_rows import MOST_ROWS, FewRows
from tests.close import close


def example(outputs: int, inputs: int, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return (
        torch.randn(outputs, inputs, generator=g),
        torch.randn(outputs, generator=g),
        torch.randn(rows, inputs, generator=g),
    )


@pytest.mark.parametrize("rows", [1, 2, 16, MOST_ROWS, MOST_ROWS + 1])
@pytest.mark.parametrize(("outputs", "inputs"), [(48, 32), (37, 20), (5, 700), (3, 8)])
def test_is_linear(outputs: int, inputs: int, rows: int) -> None:
    """37 and 5 are no multiple of the threads; 700 inputs take the other order."""
    w, b, x = example(outputs, inputs, rows)
    for bias in (b, None):
        linear = FewRows(w, bias)
        close(linear(x), F.linear(x, w, bias))
        columns = x.t().contiguous().t()  # what another of these maps may give
        close(linear(columns), F.linear(x, w, bias))
        linear.slice(3)
        close(linear(x), F.linear(x, w, bias))


def test_more_threads_than_outputs() -> None:
    w, b, x = example(3, 8, 1)
    linear = FewRows(w, b)
    linear.slice(16)
    close(linear(x), F.linear(x, w, b))


def test_other_types_use_torchs_own() -> None:
    w, b, x = (t.double() for t in example(7, 5, 2))
    linear = FewRows(w, b)
    assert torch.equal(linear(x), F.linear(x, w, b))
    assert torch.equal(linear(x[:1]), F.linear(x[:1], w, b))


@pytest.mark.parametrize("rows", [1, 5])
def test_it_has_no_copy_of_the_weights(rows: int) -> None:
    w, b, x = example(6, 4, rows)
    linear = FewRows(w, b)
    w += 1.0
    b -= 1.0
    close(linear(x), F.linear(x, w, b))
