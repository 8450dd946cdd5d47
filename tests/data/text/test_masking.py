"""Masks: the rates, the special tokens, static against dynamic, and independence of batches and processes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.data.streams.arrays import Shuffled
from descend.data.text.masking import Corruption, Dynamic, Masking, Static, mask_arrays, uniform
from descend.errors import Mistake
from tests.close import close

VOCAB, MASK = 1000, 4
CORRUPT = Corruption(Masking(), VOCAB, MASK, (0, 1, 2, 3, MASK))


def texts(n: int = 40, t: int = 25) -> Tensor:
    x = torch.randint(5, VOCAB, (n, t), generator=torch.Generator().manual_seed(0))
    x[:, 0], x[:, -1] = 1, 2
    return x


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "rates")
def test_rates_on_200_000_tokens() -> None:
    x = torch.randint(5, VOCAB, (2000, 100), generator=torch.Generator().manual_seed(0))
    b = mask_arrays({"x": x}, CORRUPT, seed=7)
    at, n = b["at"], x.numel()
    assert torch.equal(b["y"], x)
    assert (b["x"][~at] == x[~at]).all()
    to_mask, kept = (b["x"] == MASK) & at, (b["x"] == x) & at
    shares = [to_mask.sum() / n, (at & ~to_mask & ~kept).sum() / n, kept.sum() / n, at.sum() / n]
    for found, expected in zip(shares, (0.12, 0.015, 0.015, 0.15), strict=True):
        assert abs(float(found) - expected) < 4 * (expected / n) ** 0.5
    drawn = b["x"][at & ~to_mask & ~kept]
    assert drawn.min() < 20
    assert drawn.max() > VOCAB - 20  # uniform over the whole vocabulary
    assert abs(float(drawn.double().mean()) - VOCAB / 2) < 4 * VOCAB / (12 * len(drawn)) ** 0.5


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "special")
def test_special_tokens_are_never_chosen() -> None:
    every = Corruption(Masking(1.0, 1.0, 0.0), VOCAB, MASK, (1, 2))
    b = mask_arrays({"x": texts()}, every, seed=0)
    assert (b["at"].sum(1) == 23).all()
    assert (b["x"][:, 1:-1] == MASK).all()
    assert (b["x"][:, 0] == 1).all()


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "nothing-chosen")
def test_a_text_in_which_nothing_is_chosen_is_left_alone() -> None:
    b = mask_arrays({"x": texts(400, 5)}, CORRUPT, seed=0)
    none = ~b["at"].any(1)
    assert abs(float(none.float().mean()) - 0.85**3) < 0.1  # three of the five can be chosen
    assert torch.equal(b["x"][none], b["y"][none])
    close(Masking().nothing_chosen(5), 0.4437053125)


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "dynamic-masks")
@pytest.mark.system("mlm")
def test_static_masks_repeat_and_dynamic_ones_do_not() -> None:
    seen: dict[type, list[Tensor]] = {}
    for kind in (Static, Dynamic):
        stream = kind(Shuffled({"x": texts()}, 40, seed=1), CORRUPT, seed=5)
        batches = [next(stream) for _ in range(30)]  # one epoch each
        seen[kind] = [b["at"][b["ids"].argsort()] for b in batches]
    assert all(torch.equal(at, seen[Static][0]) for at in seen[Static])
    assert not torch.equal(seen[Dynamic][0], seen[Dynamic][1])
    covered = [float(torch.stack(seen[Dynamic][:e]).any(0)[:, 1:-1].float().mean()) for e in (1, 5, 30)]
    for found, epochs in zip(covered, (1, 5, 30), strict=True):
        assert abs(found - (1 - 0.85**epochs)) < 0.05
    often = torch.stack(seen[Dynamic]).float().mean(0)[:, 1:-1]
    assert (often.mean() - 0.15).abs() < 0.01


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "expectation")
def test_dynamic_loss_tends_to_its_expectation() -> None:
    """At fixed weights, a loss for each position: the dynamic mean approaches E_M, the static one stays as drawn."""
    x = texts(8, 12)
    loss = torch.rand(8, 12, generator=torch.Generator().manual_seed(2))
    exact = loss[:, 1:-1].mean()
    error = {}
    for kind in (Static, Dynamic):
        off = []
        for seed in range(12):
            stream = kind(Shuffled({"x": x}, 8, seed=0), CORRUPT, seed)
            drawn = [(loss[b["ids"]][b["at"]].sum(), b["at"].sum()) for b in (next(stream) for _ in range(60))]
            off.append(float(sum(a for a, _ in drawn) / sum(n for _, n in drawn) - exact))
        error[kind] = torch.tensor(off).square().mean().sqrt()
    assert error[Dynamic] < 0.02
    assert error[Static] > 3 * error[Dynamic]  # 60 epochs of the same draw say no more than one


@pytest.mark.parametrize("kind", [Static, Dynamic])
def test_batches_and_processes_change_no_mask(kind: type[Static]) -> None:
    whole = kind(Shuffled({"x": texts()}, 12, seed=1), CORRUPT, seed=5)
    small = kind(Shuffled({"x": texts()}, 4, seed=1), CORRUPT, seed=5)
    parts = [kind(Shuffled({"x": texts()}, 12, 1, rank, 2), CORRUPT, seed=5) for rank in range(2)]
    for _ in range(7):  # past the end of an epoch
        b, three, two = next(whole), [next(small) for _ in range(3)], [next(p) for p in parts]
        for name in ("x", "y", "at", "ids"):
            assert torch.equal(b[name], torch.cat([s[name] for s in three]))
            assert torch.equal(b[name], torch.cat([s[name] for s in two]))
    again = kind(Shuffled({"x": texts()}, 12, seed=1), CORRUPT, seed=5)
    again.load_state_dict(whole.state_dict())
    assert torch.equal(next(again)["x"], next(whole)["x"])


def test_the_hash_is_uniform_and_without_echo() -> None:
    u = uniform(0, torch.arange(500), 200).double()
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(float(u.mean()) - 0.5) < 0.005
    assert abs(float(u.var()) - 1 / 12) < 0.002
    rows = torch.corrcoef(u[:50])
    assert (rows - torch.eye(50)).abs().max() < 0.4
    assert not torch.equal(uniform(1, torch.arange(5), 9), uniform(0, torch.arange(5), 9))


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(Mistake, match=r"masking 0\.15, 0\.8, 0\.3"):
        Masking(random=0.3)
