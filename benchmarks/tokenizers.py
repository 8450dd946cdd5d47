"""Tokenizers against the `tokenizers` package used bare: learning from a text, and encoding one, taking turns.

The bar allows 1.05 times the time, and 1.2 times for decoding: ours also looks for numbers that are no tokens, which
the package leaves out in silence. Both sides learn and encode the same; that they agree is asserted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from descend.data.text.plain import python_documentation
from descend.text.tokenizer import Tokenizer

BAR = 1 / 1.05
VOCAB = 1024
ROUNDS = 5


def bare(text: str) -> tokenizers.Tokenizer:
    """Byte-level BPE in the fewest lines."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        [text],
        trainers.BpeTrainer(
            vocab_size=VOCAB, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    return inner


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], size: int, note: str) -> dict[str, Any]:
    """Both sides in turns: characters a second of CPU time, the best turn of each."""
    times = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    mine, other = (size / min(column) for column in zip(*times, strict=True))
    return {
        "name": name,
        "ours": mine,
        "theirs": other,
        "unit": "characters/s",
        "ratio": mine / other,
        "bar": BAR,
        "note": note,
    }


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def measure() -> list[dict[str, Any]]:
    text = python_documentation()
    ours, theirs = Tokenizer.bpe(text, VOCAB), bare(text)
    lines = text.split("\n")
    ids = ours.encode(text)
    assert ids == theirs.encode(text).ids
    assert ours.encode_many(lines) == [found.ids for found in theirs.encode_batch(lines)]
    note = "byte-level BPE of 1,024 tokens, the Python documentation"
    size = len(text)
    return [
        compare("learn a tokenizer", lambda: Tokenizer.bpe(text, VOCAB), lambda: bare(text), size, note),
        compare("encode a text", lambda: ours.encode(text), lambda: theirs.encode(text).ids, size, note),
        compare(
            "encode many texts",
            lambda: ours.encode_many(lines),
            lambda: [found.ids for found in theirs.encode_batch(lines)],
            size,
            f"{note}, {len(lines):,} lines",
        ),
        compare("decode", lambda: ours.decode(ids), lambda: theirs.decode(ids, skip_special_tokens=False), size, note)
        | {"bar": 1 / 1.2},
    ]


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:20} {row['ours']:14,.0f} {row['theirs']:14,.0f} {1 / row['ratio']:6.3f}x")
