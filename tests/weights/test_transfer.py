"""A new head on trained parts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.weights.transfer import take_over


def model(classes: int, width: int = 4) -> nn.ModuleDict:
    return nn.ModuleDict({"encoder": nn.Linear(3, width), "head": nn.Linear(width, classes)})


def test_what_fits_is_taken_and_the_rest_is_named() -> None:
    torch.manual_seed(0)
    source, new = model(2), model(5)
    before = new["head"].weight.clone()
    assert take_over(new, source, ("encoder",)) == ["head.weight", "head.bias"]
    assert torch.equal(new["encoder"].weight, source["encoder"].weight)
    assert torch.equal(new["head"].weight, before)
    assert take_over(model(2), source, ("encoder",)) == []


def test_a_part_that_must_fit() -> None:
    with pytest.raises(ValueError, match=r"encoder\.weight of ModuleDict does not fit"):
        take_over(model(2, width=6), model(2), ("encoder",))
