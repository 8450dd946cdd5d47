"""A tokenizer in the words of GGUF: tokens by number, their kinds, the merges, and who begins and ends a text.

GGUF has no tokenizer.json: a program knows how to cut a text into words by a name, "gpt-2" or "llama-bpe". Byte-level
BPE is written; another kind of tokenizer, or another way to cut, has no name there and is refused, since the same text
would become other tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from descend.errors import Mistake
from descend.text.tokenizer import Tokenizer

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""gguf.TokenType."""
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {LLAMA_3: "llama-bpe"}
ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unk", "pad_token": "pad"}


@dataclass(frozen=True)
class Vocabulary:
    """What a GGUF file says of a tokenizer."""

    cut: str
    """The name of the way to cut a text into words."""
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    merges: tuple[str, ...]
    specials: dict[str, int]
    adds_first: bool
    """Whether a text begins with the token for that."""
    spaced: bool
    """Whether a space is put before a text."""
    chat_template: str


def read_vocabulary(tokenizer: Tokenizer, rows: int) -> Vocabulary:
    """Of a tokenizer and an embedding with so many rows; rows without a token are named as unused."""
    stored = json.loads(tokenizer.inner.to_str())
    model: dict[str, Any] = stored["model"]
    if model["type"] != "BPE" or model.get("byte_fallback"):
        kind = "BPE over characters" if model["type"] == "BPE" else model["type"]
        raise Mistake(
            f"the tokenizer is of the kind {kind}; GGUF is written with byte-level BPE: train with --data.tokenizer bpe"
        )
    cut, spaced = name_cut(stored)
    added = {int(token["id"]): token for token in stored["added_tokens"]}
    by_number = {number: token for token, number in model["vocab"].items()} | {
        n: t["content"] for n, t in added.items()
    }
    kinds = {n: CONTROL if token["special"] else USER_DEFINED for n, token in added.items()}
    first = tokenizer.special("bos_token")
    begun = tokenizer.inner.encode("a", add_special_tokens=True).ids[:1]
    return Vocabulary(
        cut,
        tuple(by_number.get(n, f"[PAD{n}]") for n in range(rows)),
        tuple(kinds.get(n, NORMAL if n in by_number else UNUSED) for n in range(rows)),
        tuple(pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]),
        {short: n for role, short in ROLES.items() if (n := tokenizer.special(role)) is not None},
        first is not None and begun == [first],
        spaced,
        tokenizer.chat_template,
    )


def name_cut(stored: dict[str, Any]) -> tuple[str, bool]:
    """The name of the way a text is cut into words, and whether a space is put before it."""
    if stored.get("normalizer"):
        raise Mistake(
            f"the tokenizer changes texts before it cuts them ({stored['normalizer']['type']}); GGUF has no word for it"
        )
    cut = stored.get("pre_tokenizer") or {}
    parts = cut.get("pretokenizers", [cut])
    *before, last = parts
    if last.get("type") == "ByteLevel" and not before and last.get("use_regex", True):
        return "gpt-2", bool(last.get("add_prefix_space"))
    if last.get("type") == "ByteLevel" and len(before) == 1 and before[0].get("type") == "Split":
        pattern = before[0].get("pattern", {}).get("Regex")
        if pattern in SPLITS and not last.get("use_regex", True):
            return SPLITS[pattern], bool(last.get("add_prefix_space"))
    kinds = ", ".join(str(part.get("type")) for part in parts)
    raise Mistake(
        f"the tokenizer cuts texts in a way that GGUF has no name for ({kinds}); byte-level BPE as of GPT-2 has one"
    )
