"""Two networks with weights set by hand: XOR, and the factory's defects. Hidden units lift points that no line parts.

    XOR        u = φ(x₁ − ½), φ(x₂ − ½), φ(x₁ + x₂ − 3/2)        y = v · u
               step units  v = (1, 1, −2)        ReLU units  v = (2, 2, −4)
    factory    h = relu(W₁ x + b₁)        (feature A, feature B) = W₂ h + b₂        x = (size, weight)
               h₃ = relu(3/2 + (weight − size)/2) is above 0 exactly where weight > size − 3
    density    r = relu(weight/size − 3/2)
               quality = 0.3 size + 0.2 weight + 0.8 r        defect = −0.1 size − 0.1 weight + 0.9 r

Errata of VOM: 9.8.5 calls the XOR units ReLU but counts a firing one as 1, which is a step; a true ReLU gives ½ there,
so its output weights are doubled. The points that 9.8.13 prints for (1, 1) and (2.5, 1) do not follow from its weights,
which give (0.65, 1.4) and (1.025, 0.95). The scores of 9.8.9 are not probabilities, and one threshold on the density
cannot single out the middle band where its defects lie.

Systems: feature-lifting-factory, xor-and-inseparability
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.ops.dense import step

XOR_CORNERS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
XOR_UNITS = (((1.0, 0.0), -0.5), ((0.0, 1.0), -0.5), ((1.0, 1.0), -1.5))
STEP_WEIGHTS = (1.0, 1.0, -2.0)
RELU_WEIGHTS = (2.0, 2.0, -4.0)

FACTORY_W1, FACTORY_B1 = ((1.0, 0.0), (0.0, 1.0), (-0.5, 0.5)), (0.0, 0.0, 1.5)
FACTORY_W2, FACTORY_B2 = ((0.3, 0.2, 0.1), (0.1, 0.1, 0.8)), (0.0, 0.0)
DENSITY_THRESHOLD = 1.5


def xor_network(x: Tensor, unit: Callable[[Tensor], Tensor], out: tuple[float, ...]) -> Tensor:
    """v · φ(W x + b) with the three threshold units: points (n, 2) -> (n)."""
    w, b = x.new_tensor([w for w, _ in XOR_UNITS]), x.new_tensor([b for _, b in XOR_UNITS])
    return unit(x @ w.T + b) @ x.new_tensor(out)


def xor_of_steps(x: Tensor) -> Tensor:
    """XOR with units that fire from their threshold on; 0, 1, 1, 0 at the corners."""
    return xor_network(x, step, STEP_WEIGHTS)


def xor_of_relus(x: Tensor) -> Tensor:
    """XOR with rectified units; 0, 1, 1, 0 at the corners."""
    return xor_network(x, torch.relu, RELU_WEIGHTS)


def lift(x: Tensor, w1: Tensor, b1: Tensor) -> Tensor:
    """h = relu(W₁ x + b₁): points (n, 2) -> (n, 3)."""
    return torch.relu(x @ w1.T + b1)


def feature_map(x: Tensor) -> Tensor:
    """(feature A, feature B) of parts (size, weight): (n, 2) -> (n, 2)."""
    w1, b1, w2, b2 = (x.new_tensor(v) for v in (FACTORY_W1, FACTORY_B1, FACTORY_W2, FACTORY_B2))
    return lift(x, w1, b1) @ w2.T + b2


def density_scores(x: Tensor) -> Tensor:
    """(quality, defect) of parts (size, weight), from the third feature density = weight / size: (n, 2) -> (n, 2)."""
    size, weight = x.unbind(dim=-1)
    r = torch.relu(weight / size - DENSITY_THRESHOLD)
    return torch.stack([0.3 * size + 0.2 * weight + 0.8 * r, -0.1 * size - 0.1 * weight + 0.9 * r], dim=-1)
