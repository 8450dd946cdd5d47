"""Rankings against scikit-learn, with ties."""

from __future__ import annotations

import math

import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from descend.metrics.ranking import average_precision, find_auc
from tests.close import close


def test_agree_with_scikit_learn() -> None:
    random = torch.Generator().manual_seed(0)
    y = (torch.rand(300, generator=random) < 0.3).long()
    score = torch.rand(300, generator=random) + 0.3 * y
    for s in (score, (10 * score).round()):  # many equal ones
        close(find_auc(s, y), roc_auc_score(y.numpy(), s.numpy()))
        close(average_precision(s, y), average_precision_score(y.numpy(), s.numpy()))


def test_the_ends() -> None:
    y = torch.tensor([0, 1, 0, 1])
    assert find_auc(y.float(), y) == average_precision(y.float(), y) == 1
    assert find_auc(-y.float(), y) == 0
    assert find_auc(torch.ones(4), y) == average_precision(torch.ones(4), y) == 0.5
    for one in (torch.zeros(4), torch.ones(4)):
        assert math.isnan(find_auc(torch.rand(4), one))
        assert math.isnan(average_precision(torch.rand(4), one))
