from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from descend.classic.head import fit_head
from tests.close import close


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "probe")
def test_the_probe_is_scikit_learns_logistic_regression() -> None:
    random = torch.Generator().manual_seed(0)
    φ = torch.randn(60, 5, generator=random).double() * torch.tensor([1.0, 3.0, 0.3, 1.0, 2.0]) + 1.5
    y = (φ @ torch.randn(5, 3, generator=random).double()).argmax(dim=1)
    decay = 0.02
    head = fit_head(φ, y, 3, decay)
    theirs = LogisticRegression(C=1 / (60 * decay), tol=1e-10, max_iter=5000).fit(φ.numpy(), y.numpy())
    close(head.weight, torch.from_numpy(theirs.coef_), loosen=1e5)  # two solvers, each to its own tolerance
    p = head(φ).softmax(dim=1)
    close(p, torch.from_numpy(theirs.predict_proba(φ.numpy())), loosen=1e5)
    with pytest.raises(ValueError, match="60 features for 59"):
        fit_head(φ, y[1:], 3)
