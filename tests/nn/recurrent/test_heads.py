"""One answer, one for each step, or a sequence from one vector."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.recurrent.heads import AttentionPool, EachStep, FromVector, LastState
from descend.nn.recurrent.layers import Cell, Recurrent
from tests.close import close


@pytest.mark.system("lstm", "heads")
@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "many-to-one", "one-to-many")
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_shapes_on_every_cell(cell: Cell) -> None:
    net, x, lengths = Recurrent(cell, 3, 8), torch.randn(2, 5, 3), torch.tensor([5, 3])
    h, state = net(x, None, lengths)
    last = state[0, -1]
    assert LastState(8, 4)(h, last, lengths).shape == (2, 4)
    assert EachStep(8, 4)(h, last, lengths).shape == (2, 5, 4)
    assert AttentionPool(8, 4)(h, last, lengths).shape == (2, 4)
    assert FromVector(cell, 6, 8, 4)(torch.randn(2, 6), torch.randint(4, (2, 7))).shape == (2, 7, 4)


@pytest.mark.system("att-blstm")
@pytest.mark.system("att-blstm", "weights")
def test_attention_weights_are_a_distribution_over_the_real_words() -> None:
    torch.manual_seed(0)
    head, h, lengths = AttentionPool(6, 2), torch.randn(3, 5, 6), torch.tensor([5, 1, 3])
    a = head.weights(h, lengths)
    close(a.sum(1), torch.ones(3))
    assert (a >= 0).all()
    assert (a[2, 3:] == 0).all()
    assert a[1, 0] == 1
    pooled = (torch.softmax(h[2, :3].tanh() @ head.w, 0) @ h[2, :3]).tanh()
    close(head(h, h[:, -1], lengths)[2], head.out(pooled))


@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "one-to-many")
def test_one_vector_becomes_a_sequence() -> None:
    """Count from the number that the vector names, as a caption from an image."""
    torch.manual_seed(0)
    net = FromVector("gru", 5, 32, 8)
    first = torch.arange(5)
    x, y = torch.eye(5), first[:, None] + torch.arange(3)
    before = torch.cat([torch.full((5, 1), 7), y[:, :-1]], dim=1)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(80):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x, before).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
    assert torch.equal(net(x, before).argmax(-1), y)


@pytest.mark.system("att-blstm", "layers")
def test_more_layers_after_the_sentence_vector() -> None:
    torch.manual_seed(0)
    head, h, lengths = AttentionPool(6, 2, (5, 4)), torch.randn(3, 5, 6), torch.tensor([5, 1, 3])
    pooled = (head.weights(h, lengths)[..., None] * h).sum(1).tanh()
    first, second = head.between
    close(head(h, h[:, -1], lengths), head.out(second(first(pooled).tanh()).tanh()))
    assert head.out.in_features == 4
    assert "between.0.weight" not in AttentionPool(6, 2).state_dict()
