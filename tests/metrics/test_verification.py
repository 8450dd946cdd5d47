"""Verification: AUC of scikit-learn, the best threshold by trying all, the equal error rate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.metrics.verification import best_threshold, equal_error_rate, ranking_auc, verification_accuracy
from tests.close import close


def pairs() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    same = torch.rand(200, generator=random) < 0.4
    return torch.rand(200, generator=random) + 0.5 * ~same, same


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "threshold")
def test_the_threshold_is_the_best_of_all() -> None:
    d, same = pairs()
    found = verification_accuracy(d, same, best_threshold(d, same))
    assert found == max(verification_accuracy(d, same, float(t)) for t in d)
    for kinds in (torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)):
        with pytest.raises(Mistake, match="both kinds"):
            best_threshold(torch.rand(4), kinds)
    hopeless = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([False, False, False, True])
    assert verification_accuracy(*hopeless, best_threshold(*hopeless)) == 0.75


@pytest.mark.system("deepface-verification")
def test_auc_and_equal_error_rate_against_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score, roc_curve

    d, same = pairs()
    close(torch.tensor(ranking_auc(d, same)), torch.tensor(roc_auc_score(same.numpy(), -d.numpy())))
    accepted, kept, _ = roc_curve(same.numpy(), -d.numpy())
    at = abs(1 - kept - accepted).argmin()
    assert equal_error_rate(d, same) == pytest.approx((1 - kept[at] + accepted[at]) / 2, abs=0.01)
