"""Worked examples of the family embeddings-tokenizers."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.text.tokenizer import BYTES, Tokenizer


def byte_vocabulary(i: Inputs) -> Inputs:
    """A tokenizer without any merge has the bytes and its special tokens; the rest of a vocabulary are merges."""
    special = Tokenizer.bpe("", vocab=BYTES + 1).vocab - BYTES
    return {
        "base": BYTES,
        "merges_plus_special": i["vocab"] - BYTES,
        "merges_if_one_special_token": i["vocab"] - BYTES - special,
    }


EXAMPLES: dict[str, Compute] = {"DLN-GPT2-byte-vocab": byte_vocabulary}

SET_ASIDE: dict[str, str] = {}
