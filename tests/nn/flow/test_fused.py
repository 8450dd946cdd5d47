"""The fast form of affine layers is the readable one: values, gradients, gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from descend.native.build import library
from descend.nn.flow.autoregressive import MaskedAutoregressive
from descend.nn.flow.bijection import Bijection, Chain
from descend.nn.flow.coupling import Conditioner, Coupling
from descend.nn.flow.fused import Step, can_fuse
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine
from tests.close import close
from tests.nn.flow.jacobians import chain, points, shake

LAYERS: dict[str, Callable[[], Bijection]] = {
    "first": lambda: Coupling(5, range(2), Conditioner(2, 3, 2, 8, 2), Affine(2.0)),
    "last": lambda: Coupling(5, range(3, 5), Conditioner(2, 3, 2, 8, 1), Affine(3.0)),
    "maf": lambda: MaskedAutoregressive(MADE([3, 1, 2, 5, 4], 2, 12, 2), Affine(2.0)),
}


def find_steps(flow: Chain) -> list[Step | None]:
    return [layer.affine() for layer in flow.layers if isinstance(layer, Bijection)]


def readable(flow: Chain, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the layers say one by one, which is the readable form."""
    total = torch.zeros(len(x), dtype=x.dtype)
    for layer in reversed(flow.layers):
        x, log_det = layer.inverse(x)  # type: ignore[operator]
        total = total + log_det
    return x, total


@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_the_readable_form(name: str) -> None:
    layer = chain(shake(LAYERS[name]()), shake(LAYERS["first"]()))
    found = []
    for move in (layer.inverse, lambda x: readable(layer, x)):
        x = points(7, 5).requires_grad_(True)
        layer.zero_grad()
        z, log_det = move(x)
        ((z * points(7, 5, seed=2)).sum() + (log_det * points(7, 1, seed=3)[:, 0]).sum()).backward()
        found.append([z, log_det, x.grad, *(p.grad for p in layer.parameters())])
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_and_their_gradients_are_right(name: str) -> None:
    layer = chain(shake(LAYERS[name](), 0.7), shake(LAYERS["last"](), 0.7))
    x = points(3, 5).requires_grad_(True)
    assert can_fuse(x, find_steps(layer))
    assert torch.autograd.gradcheck(layer.inverse, (x,))
    assert torch.autograd.gradgradcheck(layer.inverse, (x,))


def test_the_score_of_a_flow_can_be_trained() -> None:
    """∂/∂θ of ‖∇ log p(x)‖²: a gradient of a gradient, through both forms."""
    layer = chain(shake(LAYERS["maf"]()), shake(LAYERS["first"]()))
    found = []
    for move in (layer.inverse, lambda x: readable(layer, x)):
        x = points(4, 5).requires_grad_(True)
        layer.zero_grad()
        z, log_det = move(x)
        (score,) = torch.autograd.grad((log_det - z.square().sum(1) / 2).sum(), x, create_graph=True)
        score.square().sum().backward()
        found.append([p.grad.clone() for p in layer.parameters() if p.grad is not None])
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("name", LAYERS)
def test_compiled_code_is_the_readable_form(name: str) -> None:
    """In float32, where there is a compiler: values and all gradients, for sizes that fill no vector."""
    if library() is None:
        pytest.skip("no compiler")
    flow = chain(shake(LAYERS[name]()), shake(LAYERS["first" if name == "maf" else name]())).float()
    found = []
    for move in (flow.inverse, lambda x: readable(flow, x)):
        x = points(37, 5).float().requires_grad_(True)
        flow.zero_grad()
        z, log_det = move(x)
        if move == flow.inverse:
            assert type(z.grad_fn).__name__ == "CompiledInverseBackward"
        ((z * points(37, 5, seed=2)).sum() + (log_det * points(37, 1, seed=3)[:, 0]).sum()).backward()
        found.append([z, log_det, x.grad, *(p.grad for p in flow.parameters())])
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


def test_levels_of_different_numbers_have_no_compiled_code() -> None:
    flow = chain(LAYERS["first"](), LAYERS["last"]())
    z, _ = flow.inverse(torch.randn(3, 5))
    assert type(z.grad_fn).__name__ == "AffineInverseBackward"
    close(z, readable(flow, flow(z)[0])[0], loosen=10)


def test_compilers_and_autocast_see_the_readable_form() -> None:
    x, steps = torch.zeros(2, 5), find_steps(chain(LAYERS["first"]()))
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_fuse(x, steps)
    assert can_fuse(x, steps)
    assert not can_fuse(x, [*steps, None])
