"""Mined negatives: of another label, the largest similarity, and those that pytorch-metric-learning's miners find."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake
from descend.ops.mining import differ, hardest, mine_all, mine_hardest, mine_semi_hard, mine_top, semi_hard, top_k

miners = pytest.importorskip("pytorch_metric_learning.miners")


def data(n: int = 12) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(n, 4, generator=random), torch.randint(3, (n,), generator=random)


@pytest.mark.system("hard-negative-mining")
@pytest.mark.system("hard-negative-mining", "hardest", "other-label")
def test_the_hardest_is_the_most_similar_of_another_label() -> None:
    x, y = data()
    unit = normalize(x, dim=1)
    similarity = unit @ unit.T
    found = hardest(similarity, differ(y, y))
    assert (y[found] != y).all()
    for i in range(len(x)):
        assert similarity[i, found[i]] == similarity[i, y != y[i]].max()
    from pytorch_metric_learning.distances import CosineSimilarity

    anchors, _, negatives = miners.BatchHardMiner(distance=CosineSimilarity())(x, y)
    assert torch.equal(found[anchors], negatives)


@pytest.mark.system("hard-negative-mining")
@pytest.mark.system("hard-negative-mining", "semi-hard")
def test_semi_hard_ones_are_those_of_pytorch_metric_learning() -> None:
    """Their miner lists every triplet with d_ap < d_an < d_ap + m; ours takes the nearest negative of each pair."""
    x, y = data()
    d = torch.cdist(x, x)
    from pytorch_metric_learning.distances import LpDistance

    distance = LpDistance(normalize_embeddings=False)
    a, p, n = miners.TripletMarginMiner(margin=0.7, type_of_triplets="semihard", distance=distance)(x, y)
    assert len(a)
    for i in range(len(x)):
        for j in (y == y[i]).nonzero().flatten().tolist():
            if i == j:
                continue
            theirs = n[(a == i) & (p == j)]
            found = int(semi_hard(d[i : i + 1], differ(y[i : i + 1], y), d[i, j : j + 1], 0.7))
            assert found == (-1 if not len(theirs) else int(theirs[d[i, theirs].argmin()]))


@pytest.mark.system("hard-negative-mining")
@pytest.mark.system("hard-negative-mining", "top-k", "memory")
def test_top_k_of_a_memory() -> None:
    """Candidates need not be those of the batch: a memory of other size, with labels of its own."""
    x, y = data()
    memory, labels = data(30)
    similarity = x @ memory.T
    found = top_k(similarity, differ(y, labels), 4)
    assert found.shape == (12, 4)
    for i in range(len(x)):
        allowed = (labels != y[i]).nonzero().flatten()
        best = allowed[similarity[i, allowed].argsort(descending=True)[:4]]
        assert torch.equal(found[i], best)


@pytest.mark.system("hard-negative-mining", "none-left")
def test_where_there_is_no_negative_there_is_none() -> None:
    similarity, same = torch.rand(3, 3), torch.zeros(3, 3, dtype=torch.bool)
    assert (hardest(similarity, same) == -1).all()
    assert (top_k(similarity, same, 2) == -1).all()
    assert (semi_hard(similarity, same, torch.zeros(3), 1.0) == -1).all()
    few = torch.tensor([[False, True, False]]).expand(3, 3)
    assert top_k(similarity, few, 2).tolist() == [[1, -1]] * 3
    with pytest.raises(Mistake, match="4 negatives of 3 candidates"):
        top_k(similarity, few, 4)


@pytest.mark.system("hard-negative-mining")
def test_miners_agree_with_what_they_are_made_of() -> None:
    x, y = data()
    unit = normalize(x, dim=1)
    s, allowed, positive = unit @ unit.T, differ(y, y), torch.full((12,), 0.2)
    assert torch.equal(mine_hardest(s, allowed, positive)[:, 0], hardest(s, allowed))
    assert torch.equal(mine_top(3)(s, allowed, positive), top_k(s, allowed, 3))
    assert mine_top(99)(s, allowed, positive).shape == (12, 12)
    assert torch.equal(mine_all(s, allowed, positive) >= 0, allowed)
    semi = mine_semi_hard(0.5)(s, allowed, positive)[:, 0]
    taken = s[torch.arange(12), semi.clamp(min=0)][semi >= 0]
    assert ((taken < 0.2) & (taken > -0.3)).all()
