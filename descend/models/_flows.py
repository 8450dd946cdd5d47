"""What every normalizing flow does with its layers, written once.

log p(x) = log N(f⁻¹(x); 0, I) + log|det ∂f⁻¹/∂x|            x = f(z), z ~ N(0, I)
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Chance, Wish
from descend.nn.flow.bijection import Chain, standard_normal
from descend.weights.pretrained import Pretrained


class Flow(Pretrained):
    """points (b, D) -> log p(x) (b), from layers that lead from noise to points"""

    flow: Chain
    offers: frozenset[str] = frozenset()

    def forward(self, x: Tensor) -> Tensor:
        return self.log_prob(x)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) of each point (b)."""
        prior, log_det = self.terms(x)
        return prior + log_det

    def terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log p_z(f⁻¹(x)) and log|det J(x)| of each point, whose sum is log p(x)."""
        z, log_det = self.flow.inverse(x)
        return standard_normal(z), log_det

    def check(self, x: Tensor) -> None:
        """Refuse points that a layer makes NaN or infinity of, and name it."""
        self.flow.check(x)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points."""
        return self.push(chance.normal(self.config.size))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n new points (n, D)."""
        return self.push(torch.randn(n, self.config.size, generator=generator))

    def push(self, z: Tensor) -> Tensor:
        """Noise (b, D) to points."""
        x: Tensor = self.flow(z)[0]
        return x

    def stages(self, z: Tensor) -> list[Tensor]:
        """Noise, and what each layer makes of it."""
        return self.flow.stages(z)
