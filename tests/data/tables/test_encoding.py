"""Labels and categories, there and back."""

from __future__ import annotations

import pytest
import torch
from sklearn.preprocessing import OneHotEncoder
from torch.nn.functional import one_hot

from descend.data.tables.encoding import OneHot, from_one_hot_columns, from_signs, one_hot_columns, to_signs
from descend.errors import Mistake
from tests.close import close

pytestmark = pytest.mark.system("label-and-categorical-encoding")


@pytest.mark.system("label-and-categorical-encoding", "bits-and-signs")
def test_bits_and_signs() -> None:
    y = torch.tensor([0, 1, 1, 0])
    assert to_signs(y).tolist() == [-1, 1, 1, -1]
    assert torch.equal(from_signs(to_signs(y)), y)
    assert torch.equal(to_signs(from_signs(2 * y - 1)), 2 * y - 1)
    close(from_signs(torch.tensor([-1.0, 1.0])), torch.tensor([0.0, 1.0]))
    with pytest.raises(Mistake, match="only 0 and 1"):
        to_signs(torch.tensor([0, 2]))
    with pytest.raises(Mistake, match="only −1 and"):
        from_signs(torch.tensor([0, 1]))


@pytest.mark.system("label-and-categorical-encoding", "one-hot-columns")
def test_one_hot_columns_are_the_transpose_of_torch() -> None:
    y = torch.tensor([2, 0, 1, 2])
    columns = one_hot_columns(y, 4)
    assert columns.shape == (4, 4)
    close(columns, one_hot(y, 4).T.float())
    close(columns.sum(0), torch.ones(4))
    assert torch.equal(from_one_hot_columns(columns), y)
    with pytest.raises(Mistake, match="does not fit"):
        one_hot_columns(y, 2)


@pytest.mark.system("label-and-categorical-encoding", "categories", "unknown")
def test_categories_are_scikit_learns() -> None:
    train, new = ["b", "a", "c", "a"], ["c", "x", "b"]
    ours = OneHot.fit(train, "train")
    theirs = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit([[v] for v in train])
    close(ours(new), torch.tensor(theirs.transform([[v] for v in new])).float())
    assert ours(new).sum(1).tolist() == [1, 0, 1]
    assert ours.inverse(ours(new)) == ["c", None, "b"]
    assert ours.inverse(ours(train)) == train


@pytest.mark.system("label-and-categorical-encoding", "unknown")
def test_unknown_rare_and_leaked_categories() -> None:
    with pytest.raises(Mistake, match=r"row 1: 'ab' is not among the 2 known values\. Did you mean 'abc'"):
        OneHot.fit(["abc", "xyz"], "train", unknown="refuse")(["xyz", "ab"])
    assert OneHot.fit(["a", "b", "b", "c", "c", "d"], "train", most=2).values == ("b", "c")
    with pytest.raises(Mistake, match="leaks"):
        OneHot.fit(["a"], "test")
    assert OneHot((), "zeros")(["a", "b"]).shape == (2, 0)
