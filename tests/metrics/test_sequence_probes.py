"""The four probes: a bag of words fails the order, a window the length, an embedding the context."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.metrics.sequence_probes import context_effect, distance_effect, order_effect, try_lengths
from descend.models.lstm_lm import RecurrentLM, RecurrentLMConfig
from descend.nn.fixed_window import WindowPredictor
from descend.nn.recurrent.layers import Recurrent

VOCAB = 9
WORDS = torch.tensor([[1, 2, 3]])
TURNED = torch.tensor([2, 1, 0])


@pytest.mark.system("sequence-property-probes")
@pytest.mark.system("sequence-property-probes", "length", "order")
def test_length_and_order() -> None:
    torch.manual_seed(0)
    rnn, embed = RecurrentLM(RecurrentLMConfig(VOCAB, width=8, cell="rnn")), nn.Embedding(VOCAB, 8)
    bag = lambda words: embed(words).sum(1)
    assert all(try_lengths(rnn, VOCAB, (1, 5, 50)).values())
    assert try_lengths(WindowPredictor(3, VOCAB, 8), VOCAB, (2, 3)) == {2: False, 3: True}
    assert order_effect(lambda w: rnn(w)[:, -1], WORDS, TURNED) > 1e-3
    assert order_effect(bag, WORDS, TURNED) < 1e-5


@pytest.mark.system("sequence-property-probes")
@pytest.mark.system("sequence-property-probes", "distance")
@pytest.mark.system("vanishing-exploding-in-time")
@pytest.mark.system("vanishing-exploding-in-time", "influence")
def test_distance() -> None:
    """The last state of a small-weight RNN hardly sees the first input; an LSTM with an open gate does."""
    torch.manual_seed(0)
    x = torch.randn(4, 30, 3)
    rnn, lstm = Recurrent("rnn", 3, 8), Recurrent("lstm", 3, 8)
    with torch.no_grad():
        lstm.layers.bias_ih_l0.view(4, -1)[1] += 4  # type: ignore[operator]
    faded, kept = (distance_effect(lambda x, n=n: n(x)[0][:, -1], x) for n in (rnn, lstm))  # type: ignore[misc]
    assert faded[0] / faded[-1] < 1e-5
    assert kept[0] / kept[-1] > 1e-2


@pytest.mark.system("sequence-property-probes")
@pytest.mark.system("sequence-property-probes", "context")
def test_context() -> None:
    torch.manual_seed(0)
    lm, embed = RecurrentLM(RecurrentLMConfig(VOCAB, width=8)), nn.Embedding(VOCAB, 8)
    river, money = torch.tensor([[4, 5]]), torch.tensor([[6, 5]])
    assert context_effect(lm.states, river, money, 1) > 1e-3
    assert context_effect(embed, river, money, 1) == 0
    with pytest.raises(ValueError, match="place 0 differ"):
        context_effect(embed, river, money, 0)
