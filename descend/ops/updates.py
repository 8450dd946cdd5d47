"""The optimizers as everybody writes them: one function each, from the old weights and gradient to the new weights.

    θ weights, g gradient of the loss at θ, η learning rate (lr), t = 1, 2, ... the number of the step

What a rule remembers (v, m, ...) starts at zero, is handed in, and is handed back beside the weights. These are for
reading and for checking: training runs the same equations on all weights at once (`descend.optim.rules`), and the
forms of the books that differ, such as ε inside the root, are in `descend.optim.adaptive` and `descend.optim.momentum`.

Systems: gradient-descent, momentum, nesterov-momentum, adagrad, rmsprop, adadelta, adam, adamw
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def descent_step(theta: Tensor, g: Tensor, lr: float) -> Tensor:
    """A step against the gradient; on a random batch this is stochastic gradient descent.

        θ ← θ − η g

    Returns the new θ.
    """
    return theta - lr * g


def momentum_step(theta: Tensor, g: Tensor, v: Tensor, lr: float, mu: float = 0.9) -> tuple[Tensor, Tensor]:
    """The velocity v keeps a share μ of itself, and the gradient pushes it.

        v ← μ v + g
        θ ← θ − η v

    Returns the new θ and v.
    """
    v = mu * v + g
    return theta - lr * v, v


def nesterov_momentum_step(
    theta: Tensor, gradient: Callable[[Tensor], Tensor], v: Tensor, lr: float, mu: float = 0.9
) -> tuple[Tensor, Tensor]:
    """The gradient is taken where the velocity would carry the weights.

        v ← μ v − η g(θ + μ v)
        θ ← θ + v

    Returns the new θ and v.
    """
    v = mu * v - lr * gradient(theta + mu * v)
    return theta + v, v


def adagrad_step(
    theta: Tensor, g: Tensor, total: Tensor, lr: float = 0.01, eps: float = 1e-10
) -> tuple[Tensor, Tensor]:
    """Each weight's step is divided by the root of all its squared gradients so far.

        G ← G + g²
        θ ← θ − η g / (√G + ε)

    Returns the new θ and G.
    """
    total = total + g**2
    return theta - lr * g / (total.sqrt() + eps), total


def rmsprop_step(
    theta: Tensor, g: Tensor, mean: Tensor, lr: float = 0.01, gamma: float = 0.99, eps: float = 1e-8
) -> tuple[Tensor, Tensor]:
    """Each weight's step is divided by the recent typical size of its gradient.

        E ← γ E + (1 − γ) g²
        θ ← θ − η g / (√E + ε)

    Returns the new θ and E.
    """
    mean = gamma * mean + (1 - gamma) * g**2
    return theta - lr * g / (mean.sqrt() + eps), mean


def adadelta_step(
    theta: Tensor, g: Tensor, means: tuple[Tensor, Tensor], lr: float = 1.0, gamma: float = 0.9, eps: float = 1e-6
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The size of a step comes from the sizes of the last steps; `means` are E of g² and D of Δ².

        E ← γ E + (1 − γ) g²
        Δ = √(D + ε) / √(E + ε) · g
        D ← γ D + (1 − γ) Δ²
        θ ← θ − η Δ

    Returns the new θ, and E and D.
    """
    of_g, of_delta = means
    of_g = gamma * of_g + (1 - gamma) * g**2
    delta = (of_delta + eps).sqrt() / (of_g + eps).sqrt() * g
    of_delta = gamma * of_delta + (1 - gamma) * delta**2
    return theta - lr * delta, (of_g, of_delta)


def adam_step(
    theta: Tensor,
    g: Tensor,
    moments: tuple[Tensor, Tensor],
    t: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Step t = 1, 2, ...: along the average gradient m, divided by the typical size √v of the gradient.

        m ← β₁ m + (1 − β₁) g               m̂ = m / (1 − β₁ᵗ)
        v ← β₂ v + (1 − β₂) g²              v̂ = v / (1 − β₂ᵗ)
        θ ← θ − η m̂ / (√v̂ + ε)

    Returns the new θ, and m and v.
    """
    (m, v), (beta1, beta2) = moments, betas
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat = m / (1 - beta1**t)  # both start at zero and are too small at first
    v_hat = v / (1 - beta2**t)
    return theta - lr * m_hat / (v_hat.sqrt() + eps), (m, v)


def adamw_step(
    theta: Tensor,
    g: Tensor,
    moments: tuple[Tensor, Tensor],
    t: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.01,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Adam on weights that were first made a little smaller; the gradient knows nothing of the decay.

        θ ← (1 − η λ) θ − η m̂ / (√v̂ + ε)

    Returns the new θ, and m and v.
    """
    return adam_step((1 - lr * weight_decay) * theta, g, moments, t, lr, betas)
