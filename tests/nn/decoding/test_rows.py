"""Rows that come and go: each writes what it would write alone, bit for bit, whoever is beside it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.models import model_class
from descend.models.llama import TINY, Llama
from descend.models.mistral import TINY as MISTRAL
from descend.models.mistral import Mistral
from descend.nn.attention.rotary import Rope
from descend.nn.decoding.rows import RowDecoder

LENGTH = 20


def shown(model: Any) -> Any:
    """With weights large enough that every part shows."""
    torch.manual_seed(0)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.2)
    return model.eval()


def tiny(name: str) -> Any:
    return shown(model_class(name)(import_module(f"descend.models.{name}").TINY))


def alone(decoder: Any, text: list[int], prompt: int) -> list[Tensor]:
    """The logits after the prompt and after every further token, of a decoder that has only this text."""
    x = torch.tensor([text])
    found = [decoder.start(x[:, :prompt], torch.zeros(1, dtype=torch.long), len(text))[0]]
    return found + [decoder.step(x[:, i])[0] for i in range(prompt, len(text))]


def come_and_go(decoder: Any, texts: list[tuple[list[int], int]], rows: int, seed: int) -> list[list[Tensor]]:
    """The same through rows: who joins where and when, and who takes part in a step, is drawn."""
    served, chance = RowDecoder(decoder, rows, LENGTH), random.Random(seed)
    found: list[list[Tensor]] = [[] for _ in texts]
    waiting, running = list(range(len(texts))), dict[int, int]()
    while waiting or running:
        free = [row for row in range(rows) if row not in running]
        if waiting and free and (not running or chance.random() < 0.5):
            row, text = chance.choice(free), waiting.pop(0)
            running[row] = text
            found[text].append(served.join(row, texts[text][0][: texts[text][1]]).clone())
        for row, text in list(running.items()):
            if texts[text][1] + len(found[text]) - 1 == len(texts[text][0]):
                served.leave(row)
                del running[row]
        chosen = [row for row in running if chance.random() < 0.8]
        chance.shuffle(chosen)
        if chosen:
            at = [texts[running[row]] for row in chosen]
            next_ = [
                text[prompt + len(found[running[row]]) - 1] for row, (text, prompt) in zip(chosen, at, strict=True)
            ]
            for row, logits in zip(chosen, served.step(chosen, torch.tensor(next_)), strict=True):
                found[running[row]].append(logits.clone())
    return found


def draw_texts(count: int, length: int = LENGTH, vocab: int = 20) -> list[tuple[list[int], int]]:
    chance = random.Random(1)
    sizes = [(chance.randint(4, length), chance.randint(1, 3)) for _ in range(count)]
    return [([chance.randrange(3, vocab) for _ in range(n)], prompt) for n, prompt in sizes]


CASES: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: tiny("gpt2"),
    "odd sizes": lambda: shown(Llama(replace(TINY, hidden=27, depth=2))),
    "sliding window": lambda: shown(Mistral(replace(MISTRAL, window=4))),
    "dynamic rope": lambda: shown(Llama(replace(TINY, context=12, rope=Rope(kind="dynamic", factor=2.0)))),
    "recurrent": lambda: tiny("lstm_lm"),
    "mamba": lambda: tiny("mamba"),
    "one vector for keys and values": lambda: tiny("deepseek_v2"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_is_a_decoder_of_its_own_to_the_bit(case: str) -> None:
    model = CASES[case]()
    texts = draw_texts(9)
    expected = [alone(model.decoder(), text, prompt) for text, prompt in texts]
    for rows, seed in ((3, 0), (7, 1)):
        found = come_and_go(model.decoder(), texts, rows, seed)
        assert all(len(a) == len(b) for a, b in zip(found, expected, strict=True))
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(torch.stack(a), torch.stack(b))


def test_more_rows_than_one_call_takes() -> None:
    model = tiny("llama")
    served = RowDecoder(model.decoder(), 70, 4)
    for row in range(70):
        served.join(row, [3 + row % 5])
    together = served.step(range(70), torch.arange(70) % 7 + 3)
    for row in (0, 1, 63, 64, 69):
        assert torch.equal(together[row], alone(model.decoder(), [3 + row % 5, row % 7 + 3], 1)[1])


def test_a_prompt_in_pieces_lets_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.nn.decoding.cached.PIECE", 3)
    decoder = tiny("llama").decoder()
    expected, other = alone(decoder, list(range(3, 13)), 8), alone(decoder, [5, 6, 7, 8], 1)
    served = RowDecoder(decoder, 2, LENGTH)
    assert torch.equal(served.join(0, [5]), other[0])
    served.begin_join(1, list(range(3, 11)))
    with pytest.raises(ValueError, match="row 1 has not read its prompt"):
        served.step([1], torch.tensor([11]))
    for logits, token in zip(other[1:], (6, 7, 8), strict=True):
        last = served.continue_join(1)
        assert (last is not None) == (token == 8)
        assert torch.equal(served.step([0], torch.tensor([token]))[0], logits)
    assert last is not None
    assert torch.equal(last, expected[0])
    assert torch.equal(served.step([1], torch.tensor([11]))[0], expected[1])


def test_a_row_that_leaves_in_the_middle_of_its_prompt_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.nn.decoding.cached.PIECE", 2)
    decoder = tiny("gpt2").decoder()
    served = RowDecoder(decoder, 1, LENGTH)
    served.begin_join(0, [3, 4, 5, 6])
    served.continue_join(0)
    served.leave(0)
    assert torch.equal(served.join(0, [7, 8]), alone(decoder, [7, 8], 2)[0])


def test_what_cannot_be_is_refused() -> None:
    served = RowDecoder(tiny("gpt2").decoder(), 1, 3)
    served.join(0, [1, 2])
    with pytest.raises(ValueError, match="row 0 is taken"):
        served.begin_join(0, [1])
    with pytest.raises(ValueError, match="row 1 of 1"):
        served.begin_join(1, [1])
    served.step([0], torch.tensor([3]))
    with pytest.raises(ValueError, match="row 0 is full: it has 3 tokens"):
        served.step([0], torch.tensor([3]))
    served.leave(0)
    with pytest.raises(ValueError, match="room for 1 to 3"):
        served.join(0, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="the context"):
        RowDecoder(tiny("gpt2").decoder(), 1, 10**6)
