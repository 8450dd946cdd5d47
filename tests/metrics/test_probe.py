from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge

from descend.metrics.probe import linear_probe, probe_accuracy
from tests.close import close

SLUG = "attention-head-and-layer-probes"


@pytest.mark.system(SLUG, "probe")
@pytest.mark.system(SLUG)
def test_is_scikit_learns_ridge_on_one_hot_labels() -> None:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 4, generator=random, dtype=torch.float64), torch.randint(3, (60,), generator=random)
    ones = torch.cat([x, torch.ones(60, 1, dtype=torch.float64)], dim=1)
    theirs = Ridge(alpha=60 * 0.1, fit_intercept=False).fit(ones.numpy(), torch.eye(3)[y].numpy())
    close(linear_probe(x, y, ridge=0.1), torch.tensor(theirs.coef_.T))


@pytest.mark.system(SLUG, "probe")
@pytest.mark.system(SLUG)
def test_reads_what_is_there_and_nothing_else() -> None:
    random = torch.Generator().manual_seed(1)
    y = torch.randint(5, (800,), generator=random)
    noise = torch.randn(800, 16, generator=random)
    assert probe_accuracy(noise + 4 * torch.eye(5, 16)[y], y) > 0.95
    assert probe_accuracy(noise, y) < 0.3
