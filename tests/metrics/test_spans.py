"""F1 of spans and of named things, against counting by hand and against sets of tokens."""

from __future__ import annotations

import pytest
import torch

from descend.metrics.spans import exact, overlap_f1, thing_f1, things
from tests.close import close


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "span")
def test_overlap_against_sets() -> None:
    random = torch.Generator().manual_seed(0)
    found, true = (torch.randint(8, (40, 2), generator=random).sort(dim=1).values for _ in range(2))
    expected = []
    for (a, b), (c, d) in zip(found.tolist(), true.tolist(), strict=True):
        one, two = set(range(a, b + 1)), set(range(c, d + 1))
        expected.append(2 * len(one & two) / (len(one) + len(two)))
    close(overlap_f1(found, true), torch.tensor(expected))
    assert (exact(found, true) == (overlap_f1(found, true) == 1)).all()


@pytest.mark.system("encoder-fine-tuning-heads")
def test_things() -> None:
    tags = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-PER", "I-PER", "O", "I-LOC"]
    assert things(tags) == {(0, 1, "PER"), (3, 3, "LOC"), (4, 4, "LOC"), (5, 6, "PER"), (8, 8, "LOC")}
    assert things(["O", "O"]) == set()


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("bert-feature-extraction")
@pytest.mark.system("bert-feature-extraction", "tagger")
def test_f1_of_things() -> None:
    true = [["B-A", "I-A", "O", "B-B"], ["O", "B-A"]]
    found = [["B-A", "I-A", "O", "B-A"], ["O", "B-A"]]
    assert thing_f1(found, true) == pytest.approx(2 / 3)  # two of three, both ways
    assert thing_f1(true, true) == 1
    assert thing_f1([["O"]], [["O"]]) == 0
