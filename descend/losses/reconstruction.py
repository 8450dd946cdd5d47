"""What an autoencoder minimises, from x (b, ..) and its reconstruction y of the same shape; one value for each example.

    DLN     J = ½ Σ_i ‖x⁽ⁱ⁾ − y⁽ⁱ⁾‖²        a SUM over examples, with ½: `half_squared_error(x, y).sum()`
    S940    J = E ‖x − y‖²                  an expectation, without ½: `squared_error(x, y).mean()`
    sparse  J + λ Σ_j |a_j|                 a: the ACTIVATIONS of the hidden layer, not its weights

Neither divides by the number of pixels, so torch's mse_loss is smaller by that factor. All of them have the same
minimum; learning rates and λ, β beside them do not mean the same.

Systems: autoencoder, sparse-autoencoder
"""

from __future__ import annotations

from torch import Tensor

from descend.losses.checks import same_shape


def squared_error(x: Tensor, y: Tensor) -> Tensor:
    """‖x − y‖², summed over all but the first axis: (b, ..), (b, ..) -> (b)"""
    same_shape(x, y, "examples and reconstructions")
    return (x - y).square().flatten(1).sum(1)


def half_squared_error(x: Tensor, y: Tensor) -> Tensor:
    """½ ‖x − y‖²: (b, ..), (b, ..) -> (b)"""
    return squared_error(x, y) / 2


def activation_penalty(a: Tensor) -> Tensor:
    """Σ_j |a_j| of each example's activations: (b, ..) -> (b)"""
    return a.abs().flatten(1).sum(1)


def near_zero(a: Tensor, below: float = 1e-2) -> Tensor:
    """Share of each example's activations that are nearly 0: (b, ..) -> (b)"""
    return (a.abs() < below).flatten(1).to(a.dtype).mean(1)
