"""The density's direction of a chain of affine layers as one step of autograd: the same numbers, less between them.

    raw, b = g(x_given)        s = limit tanh(raw / limit)        z_moved = e^{−s} ∘ (x_moved − b)        −Σ s

    backward, given ∂L/∂z and ∂L/∂log_det =: ℓ:
    ∂x_moved = e^{−s} ∘ ∂z_moved       ∂b = −∂x_moved       ∂raw = −(∂z_moved ∘ z_moved + ℓ) ∘ (1 − tanh²)
    and back through g, whose gradient joins that of x_given

g is a stack of linear layers (masked or not) with ReLU between them. Small flows spend most of a step in autograd's
bookkeeping, not in products; here the whole chain is one node. A gradient of the gradient goes through `plain`, the
readable form; `tests/nn/flow/test_fused.py` holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.native import affine

Moved = tuple[Tensor, Tensor]


class Step(NamedTuple):
    """A layer: what goes into its network, what moves, the limit of s, the network's layers and their masks, if any."""

    given: slice
    moved: slice
    limit: float
    network: nn.ModuleList
    masks: tuple[Tensor, ...] = ()

    def shape(self, size: int) -> affine.Shape:
        """Its sizes, for points of `size` coordinates."""
        given, moved = range(size)[self.given], range(size)[self.moved]
        width = int(self.network[0].out_features)  # type: ignore[arg-type]
        return affine.Shape(given.start, len(given), moved.start, len(moved), len(self.network), width)

    def mask(self, weights: Sequence[Tensor]) -> Sequence[Tensor]:
        return [w * m for w, m in zip(weights, self.masks, strict=True)] if self.masks else weights


def can_fuse(x: Tensor, steps: Sequence[Step | None]) -> bool:
    """On CPUs, as written: a compiler fuses the readable form itself, autocast must see it, and sharded weights are put
    together when the layers are called one by one."""
    whole = all(step is not None and type(step.network[0].weight) is nn.Parameter for step in steps)
    plainly = not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
    return whole and plainly and x.device.type == "cpu"


def invert(x: Tensor, steps: Sequence[Step]) -> Moved:
    """z and log|det ∂z/∂x| of points x (b, D) through the layers, the one nearest to the data first."""
    parameters: list[Any] = [p for step in steps for layer in step.network for p in (layer.weight, layer.bias)]
    shapes = [step.shape(x.shape[1]) for step in steps]
    found: Moved
    if affine.usable(x, shapes, parameters):
        found = CompiledInverse.apply(x, steps, shapes, *parameters)
    else:
        found = AffineInverse.apply(x, steps, *parameters)
    return found


def plain(x: Tensor, steps: Sequence[Step], parameters: Sequence[Tensor]) -> Moved:
    """The same by autograd's own operations."""
    total, at = x.new_zeros(len(x)), 0
    for step in steps:
        own = parameters[at : at + 2 * len(step.network)]
        at += len(own)
        *inner, last = zip(step.mask(own[0::2]), own[1::2], strict=True)
        h = x[:, step.given]
        for w, b in inner:
            h = nn.functional.linear(h, w, b).relu()
        raw, shift = nn.functional.linear(h, *last).view(len(x), -1, 2).unbind(-1)
        s = step.limit * (raw / step.limit).tanh()
        z = x.clone()
        z[:, step.moved] = (-s).exp() * (x[:, step.moved] - shift)
        x, total = z, total - s.sum(1)
    return x, total


class AffineInverse(torch.autograd.Function):
    """x, steps, weights and biases in turn -> z, log_det"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, steps: Sequence[Step], *parameters: Tensor) -> Moved:
        ctx.save_for_backward(x, *parameters)
        ctx.steps, ctx.kept = steps, []
        total, at = x.new_zeros(len(x)), 0
        for step in steps:
            own = parameters[at : at + 2 * len(step.network)]
            at += len(own)
            weights, biases = step.mask(own[0::2]), own[1::2]
            h = [x[:, step.given]]
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                h.append(torch.addmm(b, h[-1], w.t()).relu_())
            pair = torch.addmm(biases[-1], h[-1], weights[-1].t()).view(len(x), -1, 2)
            bent = (pair[..., 0] / step.limit).tanh_()
            shrink = bent * -step.limit
            total += shrink.sum(1)
            x = x.clone()
            z = x[:, step.moved].sub_(pair[..., 1]).mul_(shrink.exp_())
            ctx.kept.append((weights, h, bent, shrink, z))
        return x.clone(), total  # what is kept is nobody else's

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_log_det: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # a gradient of this gradient is asked for
            x, *parameters = ctx.saved_tensors
            return differentiate(x, ctx.steps, parameters, (grad, grad_log_det))
        gradients: list[Tensor] = []
        grad, slope = grad.clone(), grad_log_det[:, None]
        for step, (weights, h, bent, shrink, z) in zip(reversed(ctx.steps), reversed(ctx.kept), strict=True):
            d_moved = grad[:, step.moved]
            pair = torch.empty(*z.shape, 2, dtype=z.dtype)
            torch.mul(torch.addcmul(slope, d_moved, z), (bent * bent).sub_(1), out=pair[..., 0])
            d_moved.mul_(shrink)
            torch.neg(d_moved, out=pair[..., 1])
            d = pair.view(len(z), -1)
            for k in range(len(h) - 1, -1, -1):
                d_weight = torch.mm(d.t(), h[k])
                gradients += [d.sum(0), d_weight.mul_(step.masks[k]) if step.masks else d_weight]
                d = torch.mm(d, weights[k])
                if k:
                    d = torch.ops.aten.threshold_backward(d, h[k], 0)
            grad[:, step.given].add_(d)
        return grad, None, *reversed(gradients)


class CompiledInverse(torch.autograd.Function):
    """The same by compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, steps: Sequence[Step], shapes: list[affine.Shape], *parameters: Tensor) -> Moved:
        masks = [m for step in steps for m in step.masks or [None] * len(step.network)]
        ctx.table = affine.make_table(shapes, [step.limit for step in steps], parameters, masks)
        z, log_det, ctx.memory = affine.forward(ctx.table, shapes, x)
        ctx.save_for_backward(x, z, *parameters)
        ctx.steps, ctx.masks = steps, masks  # the table points to them
        return z, log_det

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_log_det: Tensor) -> tuple[Tensor | None, ...]:
        x, z, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():
            first, *others = differentiate(x, ctx.steps, parameters, (grad, grad_log_det))
            return first, None, *others
        dx, found = affine.backward(ctx.table, z, ctx.memory, grad, grad_log_det, parameters)
        return dx, None, None, *found


def differentiate(x: Tensor, steps: Sequence[Step], parameters: Sequence[Tensor], grad: Moved) -> tuple[Any, ...]:
    """The gradients, such that they can be differentiated."""
    x = x if x.requires_grad else x.detach().requires_grad_(True)
    found = torch.autograd.grad(plain(x, steps, parameters), [x, *parameters], grad, create_graph=True)
    return found[0], None, *found[1:]
