"""Inference by descent and by listing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.energy.inference import descend_energy, find_minima, infer_by_listing
from descend.seeds import generator
from tests.close import close

pytestmark = pytest.mark.system("energy-function-inference")
DOUBLE = torch.float64


@pytest.mark.system("energy-function-inference", "quadratic")
def test_a_quadratic_energy_is_a_function() -> None:
    """E = ‖y − f(x)‖²: descent ends at f(x) from anywhere; so does the best of a list."""
    f = torch.tensor([[0.7, -1.2]], dtype=DOUBLE)
    starts = 3 * torch.randn(20, 2, generator=generator(0), dtype=DOUBLE)
    ends = descend_energy(lambda y: (y - f).square().sum(1), starts, 0.1, 200)[-1]
    close(ends, f.expand(20, 2))
    line = torch.linspace(-2, 2, 401, dtype=DOUBLE)
    [[best]] = infer_by_listing((line - 0.7).square()[None])[0].nonzero().tolist()
    assert abs(line[best] - 0.7) < 1e-9


@pytest.mark.system("energy-function-inference", "several")
def test_one_x_on_a_circle_has_two_answers() -> None:
    x = 0.6

    def energy(y: Tensor) -> Tensor:
        return (x**2 + y[:, 0].square() - 1).square()

    starts = torch.linspace(-1.5, 1.5, 10, dtype=DOUBLE)[:, None]
    found = find_minima(energy, starts, 0.1, 500, apart=0.1)
    close(found.sort(0).values, torch.tensor([[-0.8], [0.8]], dtype=DOUBLE))
    energies = torch.tensor([[1.0, 0.0, 3.0, 0.0]])
    assert infer_by_listing(energies).tolist() == [[False, True, False, True]]
    assert infer_by_listing(energies, tolerance=1.0).sum() == 3


@pytest.mark.system("energy-function-inference", "monotone")
def test_the_energy_never_increases_for_small_steps() -> None:
    """Curvature L = 10: η = 1/L falls at every step; η above 2/L rises. On a curved energy, too."""
    scale = torch.tensor([10.0, 1.0], dtype=DOUBLE)

    def bowl(y: Tensor) -> Tensor:
        return (scale * y.square()).sum(1) / 2

    starts = torch.randn(10, 2, generator=generator(1), dtype=DOUBLE)
    for eta, falls in ((0.1, True), (0.19, True), (0.21, False)):
        path = descend_energy(bowl, starts, eta, 30)
        energies = torch.stack([bowl(y) for y in path])
        assert bool((energies.diff(dim=0) <= 1e-15).all()) is falls

    def wavy(y: Tensor) -> Tensor:
        return (y.square().sum(1) - 1).square() + (3 * y[:, 0]).cos()

    path = descend_energy(wavy, starts, 0.005, 300)
    assert (torch.stack([wavy(y) for y in path]).diff(dim=0) <= 1e-12).all()
    assert path.shape == (301, 10, 2)
