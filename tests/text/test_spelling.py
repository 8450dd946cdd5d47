"""Tokens told one by one are the whole text, however long it is, in every kind of tokenizer."""

from __future__ import annotations

import random

import pytest
import tokenizers
from tokenizers import decoders, models

from descend.text.spelling import WINDOW, Spelling
from descend.text.tokenizer import Tokenizer
from descend.text.training import LEARNERS

TEXT = "Grüße aus Köln, 東京, and naïve 🙂🙃 cafés: it's here. " * 5


def tell(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    spelling = Spelling(tokenizer)
    return [spelling.add(token) for token in ids]


@pytest.mark.parametrize("kind", sorted(LEARNERS))
def test_pieces_make_the_whole_text(kind: str) -> None:
    tokenizer = Tokenizer.learn(TEXT, kind, 300)
    ids = tokenizer.encode(TEXT * 3)
    assert len(ids) > 2 * WINDOW
    assert "".join(tell(tokenizer, ids)) == tokenizer.decode(ids)


def test_pieces_of_a_tokenizer_with_spaces_in_its_words() -> None:
    """As LLaMA has it: the first space of a text goes, and what no word spells is spelt by bytes."""
    words = {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}, "▁it": 257, "s": 258, "▁": 259}
    inner = tokenizers.Tokenizer(models.BPE(words, [], unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    steps = (decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0))
    inner.decoder = decoders.Sequence(list(steps))
    tokenizer = Tokenizer(inner)
    ids = [257, 258, *(byte + 1 for byte in "東京".encode()), 259] * 40
    assert "".join(tell(tokenizer, ids)) == tokenizer.decode(ids) == (" its東京 " * 40)[1:]


def test_bytes_in_any_order() -> None:
    """What a model writes is not always UTF-8: the same text comes out, except for bytes that no character follows."""
    tokenizer = Tokenizer.learn(TEXT, "bpe", 270)
    chance = random.Random(0)
    for _ in range(20):
        ids = [chance.randrange(tokenizer.vocab) for _ in range(5 * WINDOW)] + tokenizer.encode("end")
        assert "".join(tell(tokenizer, ids)) == tokenizer.decode(ids)


def test_a_character_is_told_when_it_is_whole() -> None:
    tokenizer = Tokenizer.learn("abc", "bpe", 257)
    assert tell(tokenizer, tokenizer.encode("é🙂")) == ["", "é", "", "", "", "🙂"]


def test_a_long_text_costs_no_more_for_each_token() -> None:
    """No more than `WINDOW` tokens are decoded at once."""
    tokenizer = Tokenizer.learn(TEXT, "bpe", 270)
    counts: list[int] = []

    class Counting:
        def decode(self, ids: list[int]) -> str:
            counts.append(len(ids))
            return tokenizer.decode(ids)

    spelling = Spelling(Counting())  # type: ignore[arg-type]
    for token in tokenizer.encode(TEXT * 9):
        spelling.add(token)
    assert max(counts) <= WINDOW + 4
