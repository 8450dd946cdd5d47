"""Rare classes: weights equal repetition, balanced batches, and probabilities after the last phase."""

from __future__ import annotations

import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

from descend.data.streams.arrays import Shuffled
from descend.data.streams.balance import Balanced, TwoPhases, class_counts, class_weights
from descend.errors import Mistake
from descend.losses.classification import class_weighted_mean, cross_entropy
from descend.models.mlp import MLP, MLPConfig
from tests.close import close

pytestmark = pytest.mark.system("class-imbalance")

Y = torch.tensor([0] * 24 + [1] * 8 + [2] * 4)
ARRAYS = {"x": torch.randn(36, 2, generator=torch.Generator().manual_seed(0)) + Y[:, None], "y": Y}


@pytest.mark.system("class-imbalance", "weights")
def test_weights_are_scikit_learns_and_average_to_one() -> None:
    w = class_weights(Y, 3)
    close(w, torch.tensor(compute_class_weight("balanced", classes=Y.unique().numpy(), y=Y.numpy())).float())
    close(w[Y].mean(), torch.tensor(1.0))
    with pytest.raises(Mistake, match="class 3 has no training example"):
        class_counts(Y, 4)


@pytest.mark.system("class-imbalance", "weights")
def test_weighted_loss_is_the_loss_of_repeated_examples() -> None:
    logits = torch.randn(36, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    losses, times = cross_entropy(logits, Y), torch.tensor([1, 3, 6])  # so that each class counts 24
    repeated = torch.cat([losses[i].repeat(int(times[Y[i]])) for i in range(36)])
    close(class_weighted_mean(losses, Y, times.double()), repeated.mean())
    close(class_weighted_mean(losses, Y, class_weights(Y, 3).double()), repeated.mean(), loosen=1e3)  # float32 weights
    close(F.cross_entropy(logits, Y, times.double()), repeated.mean())


@pytest.mark.system("class-imbalance", "sampler")
def test_every_batch_has_equal_shares_and_every_frequent_example_comes_once() -> None:
    stream = Balanced(ARRAYS, batch=12, seed=3)
    batches = [next(stream) for _ in range(6)]  # 6 batches of 4 = the 24 of class 0
    for batch in batches:
        assert torch.bincount(batch["y"]).tolist() == [4, 4, 4]
    ids = torch.cat([b["ids"] for b in batches])
    seen = [ids[Y[ids] == c].tolist() for c in range(3)]
    assert sorted(seen[0]) == list(range(24))
    assert seen[1] == seen[1][:8] * 3  # begins again at its beginning, in the same order
    assert seen[2] == seen[2][:4] * 6
    assert len(set(seen[2])) == 4
    assert next(stream)["ids"].tolist() != batches[0]["ids"].tolist()  # another epoch, another order


def test_state_and_processes() -> None:
    whole, again = Balanced(ARRAYS, 12, seed=1), Balanced(ARRAYS, 12, seed=1)
    for _ in range(8):
        next(whole)
    again.load_state_dict(whole.state_dict())
    batch = next(whole)
    assert torch.equal(next(again)["ids"], batch["ids"])
    parts = [Balanced(ARRAYS, 12, 1, rank, 2) for rank in (0, 1)]
    for part in parts:
        part.load_state_dict({"epoch": 1, "position": 8})
    halves = torch.cat([next(part)["ids"] for part in parts])
    assert sorted(halves.tolist()) == sorted(batch["ids"].tolist())
    with pytest.raises(Mistake, match="use a multiple of 3"):
        Balanced(ARRAYS, 10)


@pytest.mark.system("class-imbalance", "true-frequencies")
def test_the_last_phase_brings_the_frequencies_back() -> None:
    """After balanced training the mean probability of the rare class is too high; after phase two it is its share."""
    random = torch.Generator().manual_seed(0)
    y = (torch.rand(600, generator=random) < 0.1).long()
    arrays = {"x": torch.randn(600, 2, generator=random) + y[:, None], "y": y}
    stream = TwoPhases(Balanced(arrays, 60, 0), Shuffled(arrays, 60, 0), batches=200)
    torch.manual_seed(0)
    model = MLP(MLPConfig(2, (8,), 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    means = []
    for step in range(1, 401):
        batch = next(stream)
        optimizer.zero_grad()
        cross_entropy(model(batch["x"]), batch["y"]).mean().backward()
        optimizer.step()
        if step in (200, 400):
            means.append(model(arrays["x"]).softmax(-1)[:, 1].mean().item())
    share = float(y.float().mean())
    assert means[0] > 2 * share
    assert abs(means[1] - share) < 0.03


def test_two_phases_resume_on_either_side() -> None:
    def made() -> TwoPhases:
        return TwoPhases(Balanced(ARRAYS, 6, 0), Shuffled(ARRAYS, 6, 0), batches=3)

    for before in (2, 3, 5):
        stream, again = made(), made()
        for _ in range(before):
            next(stream)
        again.load_state_dict(stream.state_dict())
        for _ in range(3):
            assert torch.equal(next(stream)["ids"], next(again)["ids"])
