"""Prompts of different lengths become rows that end at the same place."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.sampling.decoder import pad_left


def test_the_shorter_prompts_begin_with_zeros() -> None:
    rows, pad = pad_left([[5, 6, 7], [8], [9, 4]])
    assert rows.tolist() == [[5, 6, 7], [0, 0, 8], [0, 9, 4]]
    assert pad.tolist() == [0, 2, 1]


def test_a_tensor_has_no_padding() -> None:
    rows, pad = pad_left(torch.tensor([[5, 6], [7, 8]]))
    assert rows.tolist() == [[5, 6], [7, 8]]
    assert pad.tolist() == [0, 0]


def test_no_prompt_and_an_empty_prompt_are_named() -> None:
    with pytest.raises(Mistake, match=r"not of shape \(0, 0\)"):
        pad_left([])
    with pytest.raises(Mistake, match="prompt 1 is empty"):
        pad_left([[3], []])
