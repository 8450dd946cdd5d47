"""Chunks come back, projections that keep everything keep everything, and token-wise functions do not see places."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import unfold

from descend.ops.tokens import (
    combine,
    frames,
    image_chunks,
    image_of_chunks,
    runs,
    stack,
    token_wise,
    tokenize,
    unstack,
)
from tests.close import close

SLUG = "tokens-and-token-matrix"


@pytest.mark.system("tokens-and-token-matrix", "images")
@pytest.mark.system(SLUG)
@given(c=st.integers(1, 3), down=st.integers(1, 3), across=st.integers(1, 3), size=st.integers(1, 4))
@settings(deadline=None, max_examples=30, derandomize=True)
def test_image_chunks_are_those_of_unfold_and_come_back(c: int, down: int, across: int, size: int) -> None:
    x = torch.randn(c, down * size, across * size)
    chunks = image_chunks(x, size)
    close(chunks, unfold(x[None], size, stride=size)[0].T)
    assert torch.equal(image_of_chunks(chunks, (c, down * size, across * size), size), x)


@pytest.mark.system("tokens-and-token-matrix", "matrix", "text-and-sound")
@pytest.mark.system(SLUG)
def test_texts_and_sounds_become_rows() -> None:
    words, sound = torch.randn(12, 5), torch.randn(20)
    assert runs(words, 3).shape == (4, 15)
    assert torch.equal(runs(words, 3).reshape(12, 5), words)
    assert torch.equal(runs(sound, 5), frames(sound, 5, 5))
    found = frames(sound, 6, 2)
    assert found.shape == ((20 - 6) // 2 + 1, 6)
    assert torch.equal(found[3], sound[6:12])
    t = stack(list(words))
    assert torch.equal(stack(unstack(t)), words)


@pytest.mark.system("tokens-and-token-matrix", "projection")
@pytest.mark.system(SLUG)
def test_a_square_orthonormal_projection_loses_nothing() -> None:
    chunks = image_chunks(torch.randn(1, 8, 8, dtype=torch.float64), 4)
    w = torch.linalg.qr(torch.randn(16, 16, dtype=torch.float64)).Q
    close(tokenize(tokenize(chunks, w), w.T), chunks)
    assert tokenize(chunks, w[:5]).shape == (4, 5)


def two_layers(x: Tensor) -> Tensor:
    return torch.relu(x @ torch.ones(4, 3)).cumsum(-1)


@pytest.mark.system("tokens-and-token-matrix", "operations")
@pytest.mark.system(SLUG)
def test_token_wise_commutes_with_permutations_and_combining_is_linear() -> None:
    t, order = torch.randn(6, 4), torch.randperm(6, generator=torch.Generator().manual_seed(0))
    close(token_wise(two_layers, t[order]), token_wise(two_layers, t)[order])
    close(token_wise(two_layers, t), torch.stack([two_layers(row) for row in t]))
    a, b = torch.randn(5, 6), torch.randn(6, 4)
    close(combine(a, 2 * t + b), 2 * combine(a, t) + combine(a, b))
    layer = token_wise(torch.relu, combine(a, t))  # tokens in the place of neurons
    close(layer, torch.relu(torch.einsum("mn,nd->md", a, t)))
    permutation = torch.eye(6)[order]
    close(combine(permutation, t), t[order])


@pytest.mark.system(SLUG)
def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="5 × 4 does not divide into squares of 2"):
        image_chunks(torch.zeros(1, 5, 4), 2)
    with pytest.raises(ValueError, match="7 do not divide into runs of 2"):
        runs(torch.zeros(7), 2)
