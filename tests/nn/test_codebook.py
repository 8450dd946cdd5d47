"""k-means on patches, against scikit-learn."""

from __future__ import annotations

import pytest
import torch

from descend.nn import codebook
from descend.nn.codebook import Codebook, distances
from tests.close import close


def blobs() -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    centres = 10 * torch.randn(4, 3, generator=random)
    return (centres[:, None] + torch.randn(4, 50, 3, generator=random)).flatten(0, 1)


@pytest.mark.system("beit")
@pytest.mark.system("beit", "visual-tokens")
def test_centres_are_means_of_what_is_nearest() -> None:
    x = blobs()
    book = Codebook.learn(x, 4, torch.Generator().manual_seed(1), steps=50)
    tokens = book(x)
    close(tokens, torch.cdist(x, book.centres).argmin(dim=1))
    close(book.centres, torch.stack([x[tokens == k].mean(dim=0) for k in range(4)]), loosen=10)
    assert torch.equal(book(book.decode(tokens)), tokens)
    assert "centres" in book.state_dict()
    assert not list(book.parameters())


@pytest.mark.system("beit")
@pytest.mark.system("beit", "visual-tokens")
def test_as_good_as_scikit_learn() -> None:
    from sklearn.cluster import KMeans

    x = blobs()
    ours = Codebook.learn(x, 8, torch.Generator().manual_seed(0), steps=50)
    theirs = KMeans(8, n_init=1, random_state=0).fit(x.numpy())
    assert float(distances(x, ours.centres).amin(dim=1).sum()) < 1.3 * float(theirs.inertia_)


def test_too_few_patches() -> None:
    with pytest.raises(ValueError, match="2 different patches are too few for 3 visual tokens"):
        Codebook.learn(torch.tensor([[0.0], [1.0], [1.0]]), 3, torch.Generator())


@pytest.mark.system("beit")
def test_a_centre_without_patches_moves_to_the_patch_that_is_farthest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codebook, "spread", lambda *_: torch.tensor([[0.0], [100.0], [200.0], [50.0]]))
    patches = torch.tensor([[0.0], [1.0], [2.0], [7.0], [10.0], [51.0]])
    book = Codebook.learn(patches, 4, torch.Generator(), steps=1)
    assert book.centres[:, 0].tolist() == [4.0, 10.0, 7.0, 51.0]  # a mean, the two that are farthest, one alone
