from __future__ import annotations

import numpy as np
import torch

from descend.data.text.repeats import WIDTH, describe_repeats, hash_passages


def test_equal_passages_have_equal_sums_wherever_they_are() -> None:
    tokens = np.random.default_rng(0).integers(0, 50, 400)
    tokens[300 : 300 + WIDTH] = tokens[17 : 17 + WIDTH]
    found = hash_passages(tokens)
    assert len(found) == 400 - WIDTH + 1
    same = [(i, j) for i in range(len(found)) for j in range(i) if found[i] == found[j]]
    assert same == [(300, 17)]


def test_copied_passages_are_counted() -> None:
    random = torch.Generator().manual_seed(0)
    train = torch.randint(0, 60, (5000,), generator=random, dtype=torch.int32)
    valid = torch.randint(0, 60, (10 * WIDTH + 5,), generator=random, dtype=torch.int32)
    assert describe_repeats(train, valid) == {}
    valid[2 * WIDTH : 4 * WIDTH] = train[1001 : 1001 + 2 * WIDTH]
    assert describe_repeats(train, valid) == {"in training too": "2 of 10 validation passages of 32 tokens"}
    assert describe_repeats(train[:5], valid) == {}
