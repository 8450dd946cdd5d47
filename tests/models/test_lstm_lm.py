"""The recurrent language model: decoding = forward, a melody learned by heart, a text better than word counts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.models.lstm_lm import TINY, RecurrentLM, RecurrentLMConfig
from descend.nn.recurrent.layers import Cell
from descend.sampling.beam import beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from tests.close import close

CELLS: list[Cell] = ["rnn", "lstm", "gru"]


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("rnn-task-heads", "vanilla-rnn", "lstm", "gru")
@pytest.mark.parametrize("cell", CELLS)
def test_decoding_is_the_forward_pass(cell: Cell) -> None:
    torch.manual_seed(0)
    model, x = RecurrentLM(RecurrentLMConfig(61, 24, 20, 2, cell=cell)).eval(), tokens()
    decoder = model.decoder()
    found = [decoder.start(x[:, :4], torch.zeros(3, dtype=torch.long), 17)]
    found += [decoder.step(x[:, t]) for t in range(4, 17)]
    with torch.no_grad():
        close(torch.stack(found, 1), model(x)[:, 3:])
    prompts = [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]
    plain = Recompute(lambda tokens: model(tokens).detach(), 100)
    assert generate(decoder, prompts, 12) == generate(plain, prompts, 12)
    ours, theirs = (beam_search(d, prompts, beams=3, tokens=6, stop=[5]) for d in (model.decoder(), plain))
    assert [[h.tokens for h in row] for row in ours] == [[h.tokens for h in row] for row in theirs]


@pytest.mark.system("truncated-bptt")
def test_a_text_in_pieces_is_the_text() -> None:
    torch.manual_seed(0)
    model, x = RecurrentLM(TINY), tokens()
    first, state = model.carry(x[:, :9])
    second, _ = model.carry(x[:, 9:], state)
    close(torch.cat([first, second], dim=1), model(x))
    close(model.carry(x, model.start(3))[0], model(x))


@pytest.mark.system("rnn-task-heads")
@pytest.mark.parametrize("cell", CELLS)
def test_a_melody_by_heart(cell: Cell) -> None:
    """Notes as words: overfitted, the first note alone brings the whole melody back; the loss is far below counting."""
    torch.manual_seed(0)
    melody = torch.tensor([[8, 0, 2, 4, 5, 7, 5, 4, 2, 0, 4, 7, 0, 2, 2, 0]])
    model = RecurrentLM(RecurrentLMConfig(9, 16, 32, cell=cell))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(70):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(melody[:, :-1]).flatten(0, 1), melody[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    share = torch.bincount(melody[0, 1:]) / 15
    unigram = float(torch.special.entr(share).sum())
    assert loss.item() < 0.1 * unigram
    assert generate(model.decoder(), [[8]], 15) == [melody[0, 1:].tolist()]
