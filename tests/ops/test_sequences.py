"""Padding, lengths and the flat forms of sentences."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.ops.recurrent import RNN, rnn, unroll
from descend.ops.sequences import backwards, columns, fit_length, flat_one_hot, last, pad, real, windows
from tests.close import close


@pytest.mark.system("sequence-batching")
@pytest.mark.system("sequence-batching", "padding")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 100))
def test_a_batch_is_its_sequences(lengths: list[int], seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    sequences = [torch.randn(n, 3, generator=random).double() for n in lengths]
    w = RNN(*(torch.randn(*shape, generator=random).double() for shape in ((2, 2), (2, 3), (2,))))
    zero = torch.zeros(2).double()
    x, found = pad(sequences)
    assert found.tolist() == lengths
    assert torch.equal(real(found, x.shape[1]).sum(1), found)
    h = torch.stack(unroll(lambda x_t, h: rnn(x_t, h, w), x, zero.expand(len(x), 2)), dim=1)
    alone = torch.stack([unroll(lambda x_t, h: rnn(x_t, h, w), s, zero)[-1] for s in sequences])
    close(last(h, found), alone)
    polluted = x.masked_fill(~real(found, x.shape[1])[..., None], 77.0)  # whatever the padding is
    h = torch.stack(unroll(lambda x_t, h: rnn(x_t, h, w), polluted, zero.expand(len(x), 2)), dim=1)
    close(last(h, found), alone)
    for row, s in zip(backwards(x, found), sequences, strict=True):
        assert torch.equal(row[: len(s)], s.flip(0))


@pytest.mark.system("sequence-batching")
@pytest.mark.system("sequence-batching", "columns")
def test_columns_are_the_transpose_of_rows() -> None:
    """MF: W_xh X⁽ᵗ⁾ with X⁽ᵗ⁾ (d, m) is the transpose of the rows' product."""
    x, w = torch.randn(4, 5, 3).double(), torch.randn(2, 3).double()
    for t, step in enumerate(columns(x)):
        close(w @ step, (x[:, t] @ w.T).T)


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        pad([torch.ones(2, 3), torch.ones(0, 3)])


@pytest.mark.system("fixed-window-models")
@pytest.mark.system("fixed-window-models", "one-hot", "flat")
def test_flat_one_hot() -> None:
    words = torch.tensor([[2, 0, -1]])
    expected = torch.cat([F.one_hot(torch.tensor(2), 4), F.one_hot(torch.tensor(0), 4), torch.zeros(4).long()])
    assert torch.equal(flat_one_hot(words, 4)[0], expected)
    assert fit_length(words, 5, -1).tolist() == [[2, 0, -1, -1, -1]]
    assert fit_length(words, 2, -1).tolist() == [[2, 0]]


@pytest.mark.system("fixed-window-models")
def test_windows_and_the_words_after_them() -> None:
    x, y = windows(torch.arange(6), 2)
    assert x.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert y.tolist() == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="no window of 3"):
        windows(torch.arange(3), 3)
