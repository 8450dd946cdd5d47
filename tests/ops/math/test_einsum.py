"""Einstein summation: torch.einsum, plain loops, torch's convolution, and errors that name the index."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.math.einsum import einsum, parse, sizes
from tests.close import close


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("einstein-summation")
@pytest.mark.system("einstein-summation", "own-parser", "free-index")
@pytest.mark.parametrize(
    "text",
    [
        "ik,kj->ij",  # matrix product
        "ij,j->i",  # matrix · vector
        "bmk,bkn->bmn",  # b is repeated but free
        "i,i->",
        "i,j->ij",
        "ij->ji",
        "ij->",
        "ii->i",  # diagonal
        "ii->",  # trace
        "iij->j",
        "ij,jk,kl->il",
        "bhtk,bhsk->bhts",
        "ij,ij->ij",
        "i,ij,j->",
        "ik,kj",  # no arrow: the indices that occur once
        "ba",  # in alphabetical order: a transpose
        ",i->i",
        "IJ,Ji->iI",
    ],
)
def test_equals_torch(text: str) -> None:
    length = {index: 2 + k for k, index in enumerate("ijklbmnthsIJa")}
    operands = [noise(*(length[i] for i in part), seed=k) for k, part in enumerate(text.split("->")[0].split(","))]
    close(einsum(text, *operands), torch.einsum(text, *operands))


@pytest.mark.system("einstein-summation")
@pytest.mark.system("einstein-summation", "free-index")
@given(data=st.data())
@settings(deadline=None, max_examples=25, derandomize=True)
def test_any_expression_equals_plain_loops(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.text("ijk", min_size=1, max_size=3), min_size=1, max_size=3))
    indices = sorted(set("".join(parts)))
    output = "".join(data.draw(st.permutations(indices))[: data.draw(st.integers(0, len(indices)))])
    length = {"i": 2, "j": 3, "k": 2}
    operands = [noise(*(length[i] for i in part), seed=k) for k, part in enumerate(parts)]
    expected = torch.zeros([length[i] for i in output], dtype=torch.float64)
    for point in itertools.product(*(range(length[i]) for i in indices)):
        at = dict(zip(indices, point, strict=True))
        term = torch.ones((), dtype=torch.float64)
        for x, part in zip(operands, parts, strict=True):
            term = term * x[tuple(at[i] for i in part)]
        expected[tuple(at[i] for i in output)] += term
    close(einsum(f"{','.join(parts)}->{output}", *operands), expected)


@pytest.mark.system("einstein-summation")
@pytest.mark.system("einstein-summation", "conv1d")
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_convolution_is_a_sum_of_indices(stride: int) -> None:
    """MF (12.3): no flip, so it is cross-correlation; T − S + 1 outputs at stride 1."""
    x, w = noise(11), noise(3, seed=1)
    y = einsum(f"s,({stride}t+s)->t", w, x)
    close(y, F.conv1d(x.view(1, 1, -1), w.view(1, 1, -1), stride=stride).flatten())
    assert len(y) == (11 - 3) // stride + 1
    x, w = noise(2, 3, 8, 9), noise(5, 3, 2, 4, seed=1)  # channels and two dimensions
    close(einsum("ocuv,bc(h+u)(w+v)->bohw", w, x), F.conv2d(x, w))
    x, w = noise(20), noise(3, seed=1)
    close(einsum("s,(t+4s)->t", w, x), F.conv1d(x.view(1, 1, -1), w.view(1, 1, -1), dilation=4).flatten())


@pytest.mark.system("einstein-summation")
@pytest.mark.system("einstein-summation", "own-parser")
def test_parse_reads_axes_and_output() -> None:
    spec = parse("s, (2t+s) -> t")
    assert spec.operands == (({"s": 1},), ({"t": 2, "s": 1},))
    assert spec.output == "t"
    assert sizes(spec, [(3,), (11,)]) == {"s": 3, "t": 5}
    assert parse("ik,kj").output == "ij"
    assert parse("(t+t)->t").operands == (({"t": 2},),)


@pytest.mark.system("einstein-summation")
def test_gradcheck() -> None:
    a, b = noise(2, 3, 4).requires_grad_(), noise(2, 4, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: einsum("bmk,bkn->bmn", a, b), (a, b))
    x, w = noise(6).requires_grad_(), noise(3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda w, x: einsum("s,(t+s)->t", w, x), (w, x))


@pytest.mark.system("einstein-summation")
@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("ij,jk->iz", [(2, 3), (3, 4)], "output index 'z'"),
        ("ij->ii", [(2, 2)], "output index 'i'"),
        ("i.j->i", [(2, 2)], "cannot read"),
        ("(t+->t", [(2,)], "cannot read"),
        ("(t-s)->t", [(2,)], "cannot read the index"),
        ("(0t+s)->t", [(2,)], "cannot read the index"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "index 'j' has sizes 3 and 4"),
        ("ij->i", [(2,)], r"order \[2\], the tensors have \[1\]"),
        ("i,j->ij", [(2,)], "order"),
        ("(t+s)->t", [(5,)], "sizes of t and s are open"),
        ("s,(t+s)->t", [(6,), (5,)], "runs past its axis"),
    ],
)
def test_mistakes_are_named(text: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        einsum(text, *(noise(*shape) for shape in shapes))
