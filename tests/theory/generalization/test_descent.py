"""The descent inequality along runs, and the threshold 2/L."""

from __future__ import annotations

import pytest
import torch

from descend.theory.generalization.descent import (
    descent_bound,
    largest_rate,
    smoothness_of_least_squares,
    smoothness_of_logistic,
)


def draw(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(60, 4, generator=random, dtype=torch.float64) * torch.tensor([0.5, 1, 2, 3]).double()
    return x, (torch.rand(60, generator=random) < (x[:, 0] - x[:, 2]).sigmoid()).double()


def logistic(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)


def squares(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 0.5 * (x @ w - y).square().mean()


LOSSES = [
    pytest.param(logistic, smoothness_of_logistic, id="logistic"),
    pytest.param(squares, smoothness_of_least_squares, id="squares"),
]


@pytest.mark.system("descent-inequality")
@pytest.mark.system("descent-inequality", "mini-batches")
@pytest.mark.parametrize(("loss", "smoothness"), LOSSES)
def test_it_holds_along_mini_batch_runs(loss, smoothness) -> None:  # type: ignore[no-untyped-def]
    slope = torch.func.grad(loss)
    for seed in range(3):
        (x, y), random = draw(seed), torch.Generator().manual_seed(seed)
        big = smoothness(x)
        rose = 0
        for share in (0.1, 1.0, 3.0):  # of 1/L, also beyond the threshold
            w = torch.zeros(4, dtype=torch.float64)
            for _ in range(60):
                batch = torch.randint(60, (6,), generator=random)
                step = slope(w, x[batch], y[batch])
                before = loss(w, x, y)
                bound = descent_bound(before, slope(w, x, y), step, share / big, big)
                w = w - share / big * step
                assert loss(w, x, y) <= bound + 1e-12
                rose += bool(loss(w, x, y) > before)
        assert rose  # a mini-batch may raise the loss: the inequality is not just that it falls


@pytest.mark.system("descent-inequality", "threshold")
@pytest.mark.parametrize(("loss", "smoothness"), LOSSES)
def test_below_two_over_l_every_exact_step_falls(loss, smoothness) -> None:  # type: ignore[no-untyped-def]
    slope, (x, y) = torch.func.grad(loss), draw(0)
    big = smoothness(x)
    for share in (0.1, 1.0, 1.9, 1.999):
        w = 3 * torch.randn(4, generator=torch.Generator().manual_seed(1)).double()
        for _ in range(100):
            after = w - share / 2 * largest_rate(big) * slope(w, x, y)
            assert loss(after, x, y) < loss(w, x, y) or slope(w, x, y).norm() < 1e-9
            w = after


@pytest.mark.system("descent-inequality", "threshold")
def test_above_it_need_not() -> None:
    """Along the steepest direction of least squares the loss rises just above 2/L, and falls just below."""
    x, y = draw(0)
    big = smoothness_of_least_squares(x)
    best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    w = best + torch.linalg.svd(x).Vh[0]
    g = torch.func.grad(squares)(w, x, y)
    for share, falls in ((0.999, True), (1.001, False)):
        assert bool(squares(w - share * largest_rate(big) * g, x, y) < squares(w, x, y)) is falls
