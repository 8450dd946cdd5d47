"""The tokenizer of CLIP from its two older files, vocab.json and merges.txt, as Stable Diffusion's folders have them.

    lower case, one space for many  ->  pieces: contractions, runs of letters, single digits, runs of other signs
    each piece as bytes, its last one with </w>  ->  byte-pair merges  ->  <|startoftext|> .. <|endoftext|>

Folders written by a recent transformers have tokenizer.json, which says all this itself.
"""

from __future__ import annotations

from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from descend.errors import Mistake
from descend.files import read_json, read_text
from descend.text.tokenizer import Tokenizer, read_settings

START, END = "<|startoftext|>", "<|endoftext|>"
PIECES = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder in the newer layout or the older one."""
    if (folder / "tokenizer.json").exists() or not (folder / "vocab.json").exists():
        return Tokenizer.load(folder)
    return Tokenizer(make_clip(folder), {"bos_token": START, **read_settings(folder / "tokenizer_config.json")})


def make_clip(folder: Path) -> tokenizers.Tokenizer:
    """CLIP's rules with the folder's words and merges."""
    path = folder / "merges.txt"
    lines = [line for line in read_text(path).splitlines() if line and not line.startswith("#version")]
    merges = [tuple(line.split()) for line in lines]
    if wrong := next((line for line, pair in zip(lines, merges, strict=True) if len(pair) != 2), ""):
        raise Mistake(f"{path}: {wrong!r} is not a pair of pieces; copy the file again")
    vocab = read_json(folder / "vocab.json")
    if START not in vocab or END not in vocab:
        raise Mistake(f"{folder / 'vocab.json'} has no {START} or {END}; it is not CLIP's")
    found = tokenizers.Tokenizer(
        models.BPE(vocab=vocab, merges=merges, end_of_word_suffix="</w>", unk_token=END)  # type: ignore[arg-type]
    )
    found.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    split = pre_tokenizers.Split(Regex(PIECES), behavior="removed", invert=True)
    found.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    found.decoder = decoders.ByteLevel()
    found.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, vocab[START]), (END, vocab[END])]
    )
    found.add_special_tokens([START, END])
    return found
