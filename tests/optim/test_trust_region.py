"""The natural step on functions whose divergence and answer are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.optim.trust_region import DIVERGENCE, PRODUCT, Query, TrustRegion, TrustRegionStep
from tests.close import close

H = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 0.2]], dtype=torch.float64)
G = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


class Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(3, dtype=torch.float64))


def closure(point: Point, query: Query, asked: list[str], loss: Tensor | None = None) -> object:
    """L = gᵀx (or another), D = ½ xᵀ H x from where the point was at first."""

    def evaluate() -> Tensor:
        asked.append(query.about)
        point.zero_grad()
        d = 0.5 * point.x @ H @ point.x
        value = G @ point.x
        if query.about == DIVERGENCE:
            value = d
        if query.about == PRODUCT:
            value = query.product(d, [point.x])
        value.backward()
        return value.detach()

    return evaluate


@pytest.mark.system("trpo", "natural")
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_a_linear_loss_in_a_quadratic_region_has_a_closed_form(damping: float) -> None:
    """x = −√(2δ / gᵀF⁻¹g) F⁻¹ g with F = H + λ; for λ = 0 the step ends on the border of the region."""
    point, query = Point(), Query()
    step = TrustRegion(lr=0.01, damping=damping, inner=20).answer(query).build(point)
    step.step(closure(point, query, []))  # type: ignore[arg-type]
    natural = torch.linalg.solve(H + damping * torch.eye(3).double(), G)
    full = -natural * (0.02 / (G @ natural)).sqrt()
    shorter = full if damping else 0.8 * full  # on the border itself rounding decides
    d = float((0.5 * point.x @ H @ point.x).detach())
    close(point.x, full if d > 0.0099 or damping else shorter)
    assert d <= 0.01


def test_a_step_that_does_not_help_is_not_taken() -> None:
    """Where the gradient lies about the loss, every length is tried and none is kept."""
    point, query = Point(), Query()
    asked: list[str] = []

    def evaluate() -> float:
        asked.append(query.about)
        point.zero_grad()
        d = 0.5 * point.x @ H @ point.x
        value = G @ point.x + 1e6 * (point.x.detach() ** 2).sum() if query.about != PRODUCT else d
        value = query.product(d, [point.x]) if query.about == PRODUCT else value
        value.backward()
        return float(value)

    rule = TrustRegion(lr=0.01, inner=5, trials=3)
    rule.answer(query).build(point).step(evaluate)
    assert torch.equal(point.x, torch.zeros(3).double())
    assert asked.count("loss") == 1 + 3
    assert query.about == "loss"


def test_no_gradient_no_step() -> None:
    point, query = Point(), Query()
    step = TrustRegionStep([point.x], query, 0.01, 0.1, 5, trials=3, shrink=0.5)

    def evaluate() -> float:
        point.zero_grad()
        return 0.0

    assert step.step(evaluate) == 0
    assert torch.equal(point.x, torch.zeros(3).double())


def test_shortened_until_it_is_allowed() -> None:
    """D = ½ xᵀHx + 50 |x|⁴ is larger than its quadratic model says; the step shrinks by c each time."""
    point, query = Point(), Query()

    def evaluate() -> float:
        point.zero_grad()
        d = 0.5 * point.x @ H @ point.x + 50 * (point.x @ point.x) ** 2
        value = {DIVERGENCE: d, PRODUCT: d}.get(query.about, G @ point.x)
        value = query.product(d, [point.x]) if query.about == PRODUCT else value
        value.backward()
        return float(value)

    TrustRegion(lr=0.1, damping=0.0, inner=10, shrink=0.7).answer(query).build(point).step(evaluate)
    natural = torch.linalg.solve(H, G)
    full = natural.norm() * (0.2 / (G @ natural)).sqrt()
    tries = torch.log(point.x.detach().norm() / full) / torch.log(torch.tensor(0.7).double())
    assert tries > 0.5
    close(tries, tries.round(), loosen=1e4)  # a logarithm of a ratio
    assert 0.5 * point.x @ H @ point.x + 50 * (point.x @ point.x) ** 2 <= 0.1
