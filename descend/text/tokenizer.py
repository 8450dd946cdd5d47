"""Text to numbers and back without loss: byte-level BPE and characters, on the `tokenizers` package.

    byte-level BPE   the 256 bytes, then the most frequent pair of neighbours merged, again and again, until the
                     vocabulary is full; any Unicode text has an encoding
    characters       one token a character of the training text; a character never seen falls back to its bytes

Both are saved as `tokenizer.json`, which transformers reads (PreTrainedTokenizerFast).

Systems: byte-level-bpe
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from descend.errors import Mistake

END = "<|endoftext|>"
BYTES = 256


class Tokenizer:
    """encode(text) -> numbers, decode(numbers) -> the same text; `end` marks the end of a document."""

    def __init__(self, inner: tokenizers.Tokenizer):
        self.inner = inner
        self.end: int | None = inner.token_to_id(END)

    @classmethod
    def bpe(cls, text: str, vocab: int) -> Self:
        """Byte-level BPE learned from a text, with at most `vocab` tokens."""
        if vocab <= BYTES:
            raise Mistake(f"--data.vocab {vocab}: byte-level BPE needs more than {BYTES} (the bytes, and the end)")
        inner = tokenizers.Tokenizer(models.BPE())
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab,
            special_tokens=[END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        inner.train_from_iterator([text], trainer)
        return cls(inner)

    @classmethod
    def characters(cls, text: str) -> Self:
        """One token for each character of a text, and the 256 bytes for all others."""
        tokens = [END, *(f"<0x{byte:02X}>" for byte in range(BYTES)), *sorted(set(text))]
        numbers = {token: number for number, token in enumerate(tokens)}
        inner = tokenizers.Tokenizer(models.BPE(numbers, [], byte_fallback=True))
        inner.add_special_tokens([END])
        inner.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]{1,256}"), "isolated")  # keeps words short
        inner.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return cls(inner)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The tokenizer.json of a model folder."""
        path = Path(folder) / "tokenizer.json"
        if not path.exists():
            raise Mistake(f"{path} does not exist; text needs the tokenizer that the model was trained with")
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # the package raises plain Exception
            raise Mistake(f"{path} is not a tokenizer file: {error}") from None

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json into a model folder."""
        self.inner.save(str(Path(folder) / "tokenizer.json"))

    @property
    def vocab(self) -> int:
        return int(self.inner.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Special tokens in the text are taken as plain characters, so that any text survives the round trip."""
        return list(self.inner.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.inner.decode(list(ids), skip_special_tokens=False))
