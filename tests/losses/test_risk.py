"""Reductions: mean, sum and weights; the risk of a whole data set by batches of any sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.losses.classification import cross_entropy
from descend.losses.regression import squared_error
from descend.losses.risk import empirical_risk, per_example, risk_of, summed_risk, weighted_risk
from tests.close import close
from tests.engine.small import small, train


def data(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, dtype=torch.float64, generator=random)
    return x, x @ torch.arange(5.0).double()[:, None] + torch.randn(n, 1, dtype=torch.float64, generator=random)


@pytest.mark.system("empirical-risk")
@pytest.mark.system("empirical-risk", "mean-and-sum")
def test_mean_sum_and_weights() -> None:
    """DLN: i = 0 .. m−1 is m terms (the printed m + 1 would give 0.625)."""
    losses = torch.tensor([0.9, 0.4, 0.1, 0.6], dtype=torch.float64)
    close(empirical_risk(losses), torch.tensor(0.5, dtype=torch.float64))
    close(summed_risk(losses), 4 * empirical_risk(losses))
    close(weighted_risk(losses, torch.tensor([1.0, 0, 0, 3]).double()), torch.tensor(2.7 / 4, dtype=torch.float64))
    close(weighted_risk(losses, torch.ones(4).double()), empirical_risk(losses))
    close(per_example(torch.arange(12.0).view(2, 3, 2)), torch.tensor([15.0, 51.0]))
    assert per_example(losses) is losses


@pytest.mark.system("empirical-risk")
@pytest.mark.system("empirical-risk", "full-pass")
@pytest.mark.parametrize("cuts", [(7,), (1, 6), (3, 3, 1)])
def test_risk_by_batches_is_the_mean_of_examples(cuts: tuple[int, ...]) -> None:
    """MF-A.25: the gradient of the mean is the mean of the gradients, for any batching."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(5, 3).double(), data(7)[0], torch.arange(7) % 3
    risk, gradients = risk_of(model, zip(x.split(cuts), y.split(cuts), strict=True), cross_entropy)
    close(risk, cross_entropy(model(x), y).mean())

    def one(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(torch.func.functional_call(model, weights, (x,)), y)

    each = torch.func.vmap(torch.func.grad(one), (None, 0, 0))(dict(model.named_parameters()), x, y)
    for found, (name, _) in zip(gradients, model.named_parameters(), strict=True):
        close(found, each[name].mean(0))


@pytest.mark.system("empirical-risk")
@pytest.mark.system("empirical-risk", "gap")
def test_the_gap_to_the_held_out_risk_shrinks_with_the_data() -> None:
    """DLN-A.76: the minimiser of the empirical risk, on 8, 32 and 512 examples; means of 30 samples each."""
    x_new, y_new = data(4000, seed=99)
    gaps = []
    for m in (8, 32, 512):
        gap = 0.0
        for seed in range(30):
            x, y = data(m, seed)
            w = torch.linalg.lstsq(x, y).solution
            gap += float(empirical_risk(squared_error(x_new @ w, y_new)) - empirical_risk(squared_error(x @ w, y)))
        gaps.append(gap / 30)
    assert gaps[0] > 4 * gaps[1] > 16 * gaps[2]
    assert abs(gaps[2]) < 0.1


@pytest.mark.system("empirical-risk")
def test_bad_input() -> None:
    losses = torch.ones(3)
    with pytest.raises(Mistake, match=r"losses and weights differ in shape: \(3,\) and \(3, 1\)"):
        weighted_risk(losses, torch.ones(3, 1))
    with pytest.raises(Mistake, match="add up to 0"):
        weighted_risk(losses, torch.zeros(3))
    with pytest.raises(Mistake, match="batches are empty"):
        risk_of(nn.Linear(1, 1), [], squared_error)


@pytest.mark.system("empirical-risk", "reported")
def test_a_run_reports_the_risk_on_both_sets(tmp_path: Path) -> None:
    """DLN-A.76: the training loss of every step and the held-out loss of every evaluation are in the run's record."""
    lines = list(train(small(tmp_path, steps=8), tmp_path / "run").lines())
    risks = [line["loss"] for line in lines if "loss" in line]
    held_out = [line["valid"]["loss"] for line in lines if "valid" in line]
    assert len(risks) == 8
    assert len(held_out) >= 2
    assert risks[-1] < risks[0]
    assert held_out[-1] < held_out[0]
