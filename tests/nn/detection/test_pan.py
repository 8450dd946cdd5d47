"""PAN: sizes are kept, and every output depends on every input."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.detection.csp import plain_chain, silu_unit
from descend.nn.detection.pan import NarrowedPathAggregation, PathAggregation, SummedPathAggregation, double
from tests.close import close

pytestmark = pytest.mark.system("path-aggregation-neck")
NECKS = {
    "beside": lambda widths: PathAggregation(widths, lambda a, b: silu_unit(a, b, 3)),
    "narrowed": lambda widths: NarrowedPathAggregation(widths, lambda a, b: silu_unit(a, b, 3)),
    "summed": lambda widths: SummedPathAggregation(widths, 6),
}


@pytest.mark.system("path-aggregation-neck", "sizes")
def test_the_books_sizes() -> None:
    """52 × 52 × 128, 26 × 26 × 256, 13 × 13 × 512 of an image of 416."""
    shapes = [(1, 128, 52, 52), (1, 256, 26, 26), (1, 512, 13, 13)]
    with torch.device("meta"):
        neck = PathAggregation((128, 256, 512), lambda a, b: plain_chain(a, b, 1))
        found = neck([torch.empty(shape) for shape in shapes])
    assert [tuple(y.shape) for y in found] == shapes


@pytest.mark.system("path-aggregation-neck", "both-ways", "fusions")
@pytest.mark.parametrize("name", NECKS)
def test_every_output_depends_on_every_input(name: str) -> None:
    torch.manual_seed(0)
    neck: nn.Module = NECKS[name]((4, 6, 8)).eval()
    maps = [torch.randn(1, c, s, s, requires_grad=True) for c, s in ((4, 16), (6, 8), (8, 4))]
    found = neck(maps)
    assert [y.shape[2] for y in found] == [16, 8, 4]
    for y in found:
        for gradient in torch.autograd.grad(y.square().sum(), maps, retain_graph=True):
            assert gradient.abs().sum() > 0


@pytest.mark.system("path-aggregation-neck", "fusions")
def test_by_the_equations() -> None:
    torch.manual_seed(0)
    c3, c4 = torch.randn(1, 4, 8, 8), torch.randn(1, 6, 4, 4)
    neck = NECKS["beside"]((4, 6)).eval()
    n3 = neck.top_down[0](torch.cat([double(c4), c3], dim=1))
    fine, coarse = neck([c3, c4])
    close(fine, n3)
    close(coarse, neck.bottom_up[0](torch.cat([neck.down[0](n3), c4], dim=1)))
    neck = NECKS["summed"]((4, 6)).eval()
    n3 = neck.lateral[0](c3) + double(neck.lateral[1](c4))
    fine, coarse = neck([c3, c4])
    close(fine, n3)
    close(coarse, neck.mix[0](neck.lateral[1](c4) + neck.down[0](n3)))
    assert double(torch.tensor([[[[1.0, 2.0]]]])).tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]
