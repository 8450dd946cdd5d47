"""What a robot's policy is given: numbers brought to one scale, and an observation as tokens.

    standardize    (x − μ) / σ,  μ and σ of the demonstrations, kept with the weights; σ = 1 for constants
    state          s -> W s + b                                   one token
    image          three convolutions with stride 2, ReLU -> a token for every 8×8 pixels, with a learned place
    told           convolutions in the light of an instruction -> the places that are looked at

Systems: act-policy, diffusion-policy, vla-policy
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

STRIDE = 8  # pixels of a token, in each direction
MAPS, SEEN = 64, 48  # of the middle layer; of the one that is told what to look for
LEAST = 1e-4  # a spread below this counts as none


class Standardize(nn.Module):
    """(.., n) -> (.., n), by a mean and a spread that `fit` takes from data."""

    mean: Tensor
    std: Tensor

    def __init__(self, numbers: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(numbers))
        self.register_buffer("std", torch.ones(numbers))

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """From examples (.., n)."""
        flat = x.flatten(0, -2).double()
        std = flat.std(dim=0, correction=0)
        self.mean.copy_(flat.mean(dim=0))
        self.std.copy_(torch.where(std > LEAST, std, torch.ones_like(std)))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std

    def restore(self, x: Tensor) -> Tensor:
        """Back to the numbers of the data."""
        return x * self.std + self.mean


class ImageTokens(nn.Module):
    """images (b, 3, h, w) in 0..1 -> tokens (b, h/8 · w/8, width)"""

    def __init__(self, height: int, width: int, tokens: int):
        super().__init__()
        if height % STRIDE or width % STRIDE:
            raise ValueError(f"images of {height}×{width}: both sides must be multiples of {STRIDE}")
        self.convs = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(32, MAPS, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(MAPS, tokens, 3, stride=2, padding=1),
        )
        self.places = nn.Parameter(0.02 * torch.randn(height // STRIDE * (width // STRIDE), tokens))

    def forward(self, image: Tensor) -> Tensor:
        return self.convs((image - 0.5) / 0.25).flatten(2).mT + self.places


class LookedAt(nn.Module):
    """images (b, 3, h, w) in 0..1 and what was said (b, d) -> one token (b, 1, width): where the things are that matter

    The maps m of the second layer become relu((1 + γ) m + β), γ and β from the text (feature-wise linear modulation).
    Of them k maps of attention p_i are made, each a softmax over the pixels q; the token is W [Σ_q p_i(q) (x, y)(q)]_i
    + b: of the coordinates, in −1..1, of k places that are looked at (spatial softmax)."""

    grid: Tensor

    def __init__(self, height: int, width: int, tokens: int, told: int, places: int = 16):
        super().__init__()
        if height % 2 or width % 2:
            raise ValueError(f"images of {height}×{width}: both sides must be even")
        self.below = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(32, SEEN, 3, padding=1)
        )
        self.modulate = nn.Linear(told, 2 * SEEN)
        self.look = nn.Sequential(nn.Conv2d(SEEN, SEEN, 3, padding=1), nn.ReLU(), nn.Conv2d(SEEN, places, 1))
        self.out = nn.Linear(2 * places, tokens)
        y, x = (torch.linspace(-1, 1, side // 2) for side in (height, width))
        grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).flatten(0, 1)  # (pixels, 2)
        self.register_buffer("grid", grid, persistent=False)

    def places(self, image: Tensor, told: Tensor) -> Tensor:
        """Coordinates x, y in −1..1 of the places (b, k, 2)."""
        gamma, beta = self.modulate(told)[..., None, None].chunk(2, dim=1)
        maps = ((1 + gamma) * self.below((image - 0.5) / 0.25) + beta).relu()
        return self.look(maps).flatten(2).softmax(dim=-1) @ self.grid.to(maps)

    def forward(self, image: Tensor, told: Tensor) -> Tensor:
        return self.out(self.places(image, told).flatten(1))[:, None]


class ObservationTokens(nn.Module):
    """state (b, s) and, with a camera, image (b, 3, h, w) -> tokens (b, n, width)"""

    def __init__(self, state: int, width: int, image: tuple[int, ...] = ()):
        super().__init__()
        self.state = nn.Linear(state, width)
        self.image = ImageTokens(image[0], image[1], width) if image else None

    def forward(self, state: Tensor, image: Tensor | None = None) -> Tensor:
        tokens = self.state(state)[:, None]
        if self.image is None:
            return tokens
        if image is None:
            raise ValueError("this policy has a camera: give an image")
        return torch.cat([tokens, self.image(image)], dim=1)
