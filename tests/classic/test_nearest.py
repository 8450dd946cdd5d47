"""Exact search against a full sort and against FAISS; approximate search against the exact one."""

from __future__ import annotations

import sys

import pytest
import torch
from torch.nn.functional import normalize

from descend.classic import nearest
from descend.classic.approximate import HnswSearch, IvfSearch, share_found
from descend.classic.nearest import CosineSearch, InnerProductSearch
from descend.errors import Mistake
from tests.close import close


def draw(n: int, d: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def clusters(n: int, d: int = 24, seed: int = 0) -> torch.Tensor:
    """Vectors around 40 centres, as texts lie around topics."""
    chance = torch.Generator().manual_seed(seed)
    centres = torch.randn(40, d, generator=chance)
    return centres[torch.randint(40, (n,), generator=chance)] + 0.6 * torch.randn(n, d, generator=chance)


@pytest.mark.system("cross-and-bi-encoder", "exact-index")
@pytest.mark.parametrize("queries", [1, 5, 100])
@pytest.mark.parametrize("n", [7, 3000])
def test_blocks_and_pieces_find_what_a_full_sort_finds(queries: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "SCORES", 2**12)  # several blocks
    x, q = draw(n), draw(queries, seed=1)
    values, numbers = InnerProductSearch(x).search(q, 5)
    expected = (q @ x.T).topk(5, dim=1)
    close(values, expected.values)
    assert torch.equal(numbers, expected.indices)


@pytest.mark.system("cross-and-bi-encoder")
@pytest.mark.system("cross-and-bi-encoder", "exact-index")
@pytest.mark.parametrize("queries", [1, 40])
def test_it_finds_what_faiss_finds_also_among_vectors_that_were_added(queries: int) -> None:
    faiss = pytest.importorskip("faiss")
    x, more, q = draw(2000), draw(500, seed=2), draw(queries, seed=1)
    theirs = faiss.IndexFlatIP(16)
    ours, cosines = InnerProductSearch(x), CosineSearch(x)
    for part in (x, more):
        theirs.add(part.numpy())
    ours.add(more)
    cosines.add(more)
    values, numbers = theirs.search(q.numpy(), 10)
    found = ours.search(q, 10)
    close(found[0], torch.from_numpy(values))
    assert torch.equal(found[1], torch.from_numpy(numbers))
    both = faiss.IndexFlatIP(16)
    both.add(normalize(torch.cat([x, more]), dim=1).numpy())
    values, numbers = both.search(normalize(q, dim=1).numpy(), 10)
    close(cosines.search(q, 10)[0], torch.from_numpy(values))
    assert torch.equal(cosines.search(q, 10)[1], torch.from_numpy(numbers))
    assert len(ours) == len(cosines) == 2500


@pytest.mark.system("rag", "approximate")
def test_hnsw_and_ivf_find_most_and_more_the_more_they_look_through() -> None:
    pytest.importorskip("faiss")
    x, q = clusters(4000), clusters(200, seed=3)
    exact = CosineSearch(x).search(q, 10)[1]
    for few, many in (
        (HnswSearch(x, explore=10, links=8), HnswSearch(x, explore=200, links=8)),
        (IvfSearch(x, cells=64, probes=1), IvfSearch(x, cells=64, probes=16)),
    ):
        shares = [share_found(search.search(q, 10)[1], exact) for search in (few, many)]
        assert shares[0] < shares[1]
        assert shares[1] > 0.95
    with pytest.raises(Mistake, match="8 probes of 2 cells of 4000 vectors"):
        IvfSearch(x, cells=2)
    whole = IvfSearch(x, cells=64, probes=64)
    values, numbers = whole.search(q, 10)
    assert share_found(numbers, exact) > 0.999  # all cells: exact, but for equal cosines
    close(values, CosineSearch(x).search(q, 10)[0])
    whole.add(q[:1])
    assert int(whole.search(q[:1], 1)[1]) == 4000


def test_share_found_counts_each_of_the_k() -> None:
    assert share_found(torch.tensor([[1, 2], [5, -1]]), torch.tensor([[2, 3], [5, 6]])) == 0.5


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(4)
    for wrong, said in ((x[0], "are \\(number, width\\)"), (x * float("nan"), "NaN or infinity")):
        with pytest.raises(Mistake, match=said):
            InnerProductSearch(wrong)
    with pytest.raises(Mistake, match="queries have 3 numbers, the vectors 16: use the same encoder"):
        InnerProductSearch(x).search(x[:, :3], 1)
    with pytest.raises(Mistake, match="the 5 nearest of 4 vectors"):
        InnerProductSearch(x).search(x, 5)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(Mistake, match=r"needs FAISS: pip install .descend\[rag\]"):
        HnswSearch(x)
