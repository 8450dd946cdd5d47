"""The alignment of encoder-decoders in the report."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from descend.models.seq2seq import Seq2Seq, Seq2SeqConfig
from descend.models.t5 import T5, T5Config
from descend.ops.teacher_forcing import shift_right
from descend.text.tokenizer import Tokenizer
from descend.views.pairs import PairsView
from tests.close import close

TOKENIZER = Tokenizer.characters("abcdef")
PAD, END, START = TOKENIZER.vocab - 1, TOKENIZER.vocab - 2, TOKENIZER.vocab - 3


def view(model: Any) -> PairsView:
    x, y = ([*TOKENIZER.encode(text), END, PAD] for text in ("abcd", "dcba"))
    return PairsView(model.eval(), TOKENIZER, {"x": torch.tensor([x]), "y": torch.tensor([y])}, [("abcd", "dcba")], 6)


def recurrent(context: Any) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(Seq2SeqConfig(TOKENIZER.vocab, 8, 1, 0.0, "gru", context, "additive", PAD, START, END))


@pytest.mark.system("rnn-attention-decoder", "plot")
@pytest.mark.parametrize("context", ["current", "previous"])
def test_the_alignment_of_a_recurrent_net_is_shown(context: str) -> None:
    shown = view(recurrent(context))
    (exhibit,) = shown.show_alignment()
    assert (exhibit.kind, exhibit.title) == ("heatmap", "Alignment")
    assert exhibit.content["columns"][:4] == list("abcd")
    assert exhibit.content["rows"][:4] == list("dcba")
    x, y = shown.arrays["x"][:, :-1], shown.arrays["y"][:, :-1]
    close(torch.tensor(exhibit.content["values"]), shown.model.alignment(x, shift_right(y, START))[0])


@pytest.mark.system("t5", "cross-attention")
def test_and_that_of_t5_but_none_of_a_fixed_context() -> None:
    torch.manual_seed(0)
    t5 = T5(T5Config(TOKENIZER.vocab, 8, 1, 1, 2, 4, 16, dropout=0.0, pad=PAD, start=START, end=END))
    (exhibit,) = view(t5).show_alignment()
    close(torch.tensor(exhibit.content["values"]).sum(1), torch.ones(5))
    assert view(recurrent("start")).show_alignment() == []
