"""The loss around a trained model: along a line between two models, and on a plane through one.

    line      L((1 − t) θ_a + t θ_b)                                  t = 0 and 1 are the two models
    plane     L(θ* + a d₁ + b d₂)                                     a = b = 0 is the model
    d         Gaussian, every filter as long as the model's:  d_i ← d_i ‖θ_i‖ / ‖d_i‖;  0 for biases and norms

A filter is a row of a matrix or of a kernel: the weights into one unit. Without this normalization a network whose
weights are large would look flat: ReLU networks can be rescaled without changing what they compute. DLN names the
pictures of Li et al. only; the normalization is theirs. Batch statistics stay the model's on a plane; along a line they
go from one model's to the other's.

Systems: loss-landscape
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]
"""Name -> tensor, of what a direction may move."""


def read_weights(model: nn.Module) -> Weights:
    """Copies of all parameters and floating-point buffers."""
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: part.detach().clone() for name, part in named.items() if part.is_floating_point()}


def draw_direction(model: nn.Module, random: torch.Generator) -> Weights:
    """A random direction, filter by filter as long as the model's trained weights; 0 elsewhere."""
    found = {name: torch.zeros_like(part) for name, part in read_weights(model).items()}
    for name, part in model.named_parameters():
        if part.requires_grad and part.dim() > 1:
            d = torch.randn(part.shape, generator=random).to(part)
            found[name] = normalize_filters(d, part.detach())
    return found


def normalize_filters(direction: Tensor, weight: Tensor) -> Tensor:
    """d_i ‖θ_i‖ / ‖d_i‖ for every row i."""
    d, w = direction.flatten(1), weight.flatten(1)
    return (d * (w.norm(dim=1) / d.norm(dim=1))[:, None]).view_as(direction)


def subtract(end: Mapping[str, Tensor], start: Mapping[str, Tensor]) -> Weights:
    """The way from one model to another of the same shapes."""
    if end.keys() != start.keys() or any(end[name].shape != start[name].shape for name in end):
        raise ValueError("the two models do not have the same weights; a line needs two of one shape")
    return {name: end[name] - start[name] for name in start}


@contextmanager
def moving(model: nn.Module, directions: Sequence[Weights]) -> Iterator[Callable[[Sequence[float]], None]]:
    """Inside, call it with steps to put the model at θ* + Σ steps_k d_k; afterwards it is where it was, to the bit."""
    base = read_weights(model)
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}

    @torch.no_grad()
    def move(steps: Sequence[float]) -> None:
        for name, part in base.items():
            moved = part.clone()
            for step, direction in zip(steps, directions, strict=True):
                if step:
                    moved += step * direction[name]
            named[name].copy_(moved)

    try:
        yield move
    finally:
        move([0.0] * len(directions))


def scan_line(model: nn.Module, loss: Callable[[], float], direction: Weights, steps: Sequence[float]) -> list[float]:
    """The loss at θ* + t d for every t."""
    with moving(model, [direction]) as move:
        return [at(move, loss, [t]) for t in steps]


def scan_plane(
    model: nn.Module, loss: Callable[[], float], first: Weights, second: Weights, steps: Sequence[float]
) -> Tensor:
    """The loss at θ* + a d₁ + b d₂: row i has b = steps[i], column j has a = steps[j]."""
    with moving(model, [first, second]) as move:
        return torch.tensor([[at(move, loss, [a, b]) for a in steps] for b in steps], dtype=torch.float64)


def at(move: Callable[[Sequence[float]], None], loss: Callable[[], float], steps: Sequence[float]) -> float:
    move(steps)
    with torch.no_grad():
        return float(loss())
