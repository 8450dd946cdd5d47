"""The recurrent language model: decoding = forward, a melody learned by heart, a text better than word counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.models.lstm_lm import TINY, RecurrentLM, RecurrentLMConfig
from descend.nn.recurrent.layers import Cell
from descend.sampling.beam import beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from tests.close import close

CELLS: list[Cell] = ["rnn", "lstm", "gru", "gru-keep", "gru-update"]


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("vanilla-rnn")
@pytest.mark.system("vanilla-rnn", "trained")
@pytest.mark.system("lstm")
@pytest.mark.system("gru")
@pytest.mark.system("gru", "drop-in")
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


@pytest.mark.system("gru")
@pytest.mark.system("gru", "drop-in")
@pytest.mark.parametrize("cell", ["gru-keep", "gru-update"])
def test_a_books_gru_is_saved_and_loaded(cell: Cell, tmp_path: Path) -> None:
    model, x = RecurrentLM(RecurrentLMConfig(61, 24, 20, 2, cell=cell)).eval(), tokens()
    model.save_pretrained(tmp_path)
    assert torch.equal(RecurrentLM.from_pretrained(tmp_path)(x), model(x))


@pytest.mark.system("sequence-batching", "start")
@pytest.mark.system("truncated-bptt")
def test_a_text_in_pieces_is_the_text() -> None:
    torch.manual_seed(0)
    model, x = RecurrentLM(TINY), tokens()
    first, state = model.carry(x[:, :9])
    second, _ = model.carry(x[:, 9:], state)
    close(torch.cat([first, second], dim=1), model(x))
    close(model.carry(x, model.start(3))[0], model(x))


@pytest.mark.system("gru", "drop-in")
@pytest.mark.system("vanilla-rnn", "trained")
@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "music")
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


@pytest.mark.system("rnn-task-heads", "next-word")
@pytest.mark.parametrize("cell", CELLS)
def test_a_sentence_is_completed(cell: Cell) -> None:
    """Learned by heart, "This morning I took my cat for a" goes on with "walk"."""
    torch.manual_seed(0)
    words = ["This", "morning", "I", "took", "my", "cat", "for", "a", "walk"]
    names = sorted(words)
    sentence = torch.tensor([[names.index(word) for word in words]])
    model = RecurrentLM(RecurrentLMConfig(9, 16, 24, cell=cell))
    assert learn(model, lambda: sentence, 60) < 0.1
    written = generate(model.decoder(), [sentence[0, :-1].tolist()], 1)
    assert names[written[0][0]] == "walk"


def walks(n: int, random: torch.Generator) -> Tensor:
    """Melodies (n, 16): a scale of eight notes up or down by one or two, turned back at its ends."""
    notes = [torch.randint(8, (n,), generator=random)]
    for _ in range(15):
        step = torch.tensor([-2, -1, 1, 2])[torch.randint(4, (n,), generator=random)]
        later = notes[-1] + step
        notes.append(torch.where((later < 0) | (later > 7), notes[-1] - step, later))
    return torch.stack(notes, 1)


@pytest.mark.system("rnn-task-heads", "music", "next-word")
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_held_out_melodies_cost_less_than_their_notes_counted(cell: Cell) -> None:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model = RecurrentLM(RecurrentLMConfig(8, 16, 24, cell=cell))
    learn(model, lambda: walks(32, random), 60)
    new = walks(200, random)
    with torch.no_grad():
        loss = float(nn.functional.cross_entropy(model(new[:, :-1]).flatten(0, 1), new[:, 1:].flatten()))
    unigram = float(torch.special.entr(torch.bincount(new[:, 1:].flatten()) / (200 * 15)).sum())
    assert 1.0 < loss < unigram - 0.3  # perplexities: at best about 4, of the counted notes about 8
    (melody,) = generate(model.decoder(), [new[0, :4].tolist()], 12)
    played = torch.tensor([*new[0, 3:4].tolist(), *melody])
    assert (played.diff().abs() <= 2).all()  # what it goes on with are steps of the scale


def learn(model: RecurrentLM, draw: Callable[[], Tensor], steps: int) -> float:
    """The last loss of next-note prediction."""
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(steps):
        x = draw()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    return loss.item()
