"""Temperature scaling: one number that makes a classifier as sure as it is right, learned from held-out examples.

    p_T(k | x) = softmax(z(x) / T)_k        T* = argmin_T −(1/n) Σ_i log p_T(y_i | x_i)

The order of the classes stays, so no answer changes, only how sure it is: T > 1 for a model that is too sure. With
a = 1/T the loss is convex, and its slope is E_p[z] − z_y on average, so that bisection finds the one minimum.

VOM 13.9.1 claims that cross-entropy calibrates and defines no measure (ECE: `metrics/classification.py`).

Systems: calibration-ece
"""

from __future__ import annotations

from torch import Tensor

from descend.errors import Mistake

COLDEST, HOTTEST = 0.01, 100.0
HALVINGS = 60


def log_loss(z: Tensor, y: Tensor, temperature: float = 1.0) -> float:
    """−(1/n) Σ log softmax(z / T)_y of logits z (n, K) and classes y (n)."""
    return -(z.double() / temperature).log_softmax(dim=-1).gather(1, y[:, None]).mean().item()


def fit_temperature(z: Tensor, y: Tensor) -> float:
    """T* of logits z (n, K) and classes y (n), between 0.01 and 100: where every answer is right, colder is better."""
    if not len(y):
        raise Mistake("a temperature is learned from held-out examples, and there are none")
    if not z.isfinite().all():
        raise Mistake("the model's logits are not numbers (NaN or infinity): its weights are damaged")
    z = z.double()
    true = z.gather(1, y[:, None])[:, 0]

    def slope(a: float) -> float:
        return float((((a * z).softmax(dim=-1) * z).sum(dim=-1) - true).mean())

    low, high = 1 / HOTTEST, 1 / COLDEST
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 1 / (low * high) ** 0.5
