"""A corpus larger than memory: tokenized once into a file of numbers, which is then opened as a memory map.

    train.bin, valid.bin     document, end, document, end, …      two bytes a token, four when the vocabulary needs them
    tokenizer.json           learned from the training share alone (of a large one, from every n-th piece)
    corpus.json              what the tokens were made of: sources and files with their checksums, all counts

Validation takes whole documents, evenly spread, when there are enough of them, else the end of the text. Bytes are
those of the text itself, so bits per byte can be compared between tokenizers. The folder is written aside and renamed;
a change of a source (its name, size or date), of the tokenizer or of the share makes another one, and what is damaged,
or was made of other content, is said and made again (`kept`). Batches come from `data.text.Windows`, whose state is two
numbers: a run resumes in the middle of an epoch with exactly the next window.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from descend.data.reading import cache_folder, check_file, digest, say, show
from descend.data.text.documents import Piece, pieces, sources
from descend.data.text.kept import HEADER, find_damage, locked, source_entry, stamp, write_header
from descend.errors import Mistake
from descend.files import explain_error, read_json
from descend.text.tokenizer import Tokenizer

SAMPLE = 2**25  # bytes from which a tokenizer is learned
BATCH = 2**20  # characters tokenized at once
VERSION = 2
PARTS = ("train", "valid")


@dataclass(frozen=True)
class Corpus:
    """Tokens for training and validation, and what they were made of."""

    tokenizer: Tokenizer
    train: Tensor
    valid: Tensor
    characters: int
    valid_bytes: int
    documents: int = 1

    def check(self, context: int, path: str) -> Corpus:
        """Itself, if a window of the context fits into both parts."""
        for name, tokens in {"training": self.train, "validation": self.valid}.items():
            if len(tokens) <= context:
                raise Mistake(
                    f"{path or 'the text'}: {len(tokens)} tokens for {name}, but a context of {context} needs more; "
                    f"give more text or a smaller --model.context"
                )
        return self


@dataclass(frozen=True)
class Survey:
    """A first walk over the sources: everything can be read, and this much there is."""

    documents: int
    bytes: int
    characters: int
    checksums: tuple[str, ...]


@dataclass(frozen=True)
class Cut:
    """Which pieces validate: whole documents, or what follows a byte of the text."""

    share: float
    documents: int
    bytes: int

    @property
    def whole(self) -> bool:
        """Whether there are documents enough to validate with whole ones."""
        return self.documents * self.share >= 2

    def divide(self, found: Iterator[Piece]) -> Iterator[tuple[str, Piece]]:
        """("train" or "valid", piece) for each piece; the piece at the cut becomes two."""
        document, here, end = 0, 0, round(self.bytes * (1 - self.share))
        for piece in found:
            size = len(piece.text.encode())
            if self.whole:
                valid = int((document + 1) * self.share) > int(document * self.share)
                yield PARTS[valid], piece
            elif here < end < here + size:
                first, second = halves(piece.text, end - here)
                yield "train", Piece(first, False)
                yield "valid", Piece(second, piece.last)
            else:
                yield PARTS[here >= end], piece
            here, document = here + size, document + piece.last


def halves(text: str, at: int) -> tuple[str, str]:
    """A text cut after `at` bytes, or after the character that reaches over them."""
    data = text.encode()
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[:at].decode(), data[at:].decode()


def open_corpus(path: str, kind: str, vocab: int, share: float, cache: str = "") -> Corpus:
    """The tokens of a file or folder, from the cache if they are there and whole, else made now."""
    files = sources(path)
    stat = [(str(f), s.st_size, s.st_mtime_ns) for f, s in zip(files, map(check_file, files), strict=True)]
    key = hashlib.sha256(json.dumps([VERSION, kind, vocab, share, stat]).encode()).hexdigest()[:20]
    root = Path(cache) if cache else corpora()
    folder = root / f"corpus-{key}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / f".{key}.lock"):
            wrong = find_damage(folder, files, VERSION)
            if wrong and folder.exists():
                say(f"{wrong}; the text is tokenized again")
            if wrong:
                aside = root / f"making-{key}"
                shutil.rmtree(aside, ignore_errors=True)  # of one that was killed
                try:
                    make(files, aside, kind, vocab, share)
                    shutil.rmtree(folder, ignore_errors=True)
                    aside.rename(folder)
                finally:
                    shutil.rmtree(aside, ignore_errors=True)
            return open_tokens(folder)
    except OSError as error:
        raise Mistake(f"{root}: {explain_error(error)}; give another folder with --data.cache") from None


def corpora() -> Path:
    """Where corpora are kept unless --data.cache says otherwise."""
    folder = cache_folder()
    if folder is None:
        raise Mistake("there is no home folder to keep the tokenized text in; give one with --data.cache")
    return folder / "corpora"


def open_tokens(folder: Path) -> Corpus:
    """The tokens as memory maps: read from disk when a window is asked for."""
    header = read_json(folder / HEADER)
    train, valid = (map_tokens(folder / f"{part}.bin", header["dtype"], header[f"{part} tokens"]) for part in PARTS)
    counts = header["characters"], header["valid bytes"], header["documents"]
    return Corpus(Tokenizer.load(folder), train, valid, *counts)


def map_tokens(path: Path, dtype: str, count: int) -> Tensor:
    """The file as a tensor that lives on disk; what is written to it stays in memory."""
    if not count:
        return torch.empty(0, dtype=torch.int32)
    return torch.from_numpy(np.memmap(path, dtype=dtype, mode="c"))


def make(files: list[Path], folder: Path, kind: str, vocab: int, share: float) -> None:
    """Survey the sources, learn the tokenizer, write the tokens and the header."""
    folder.mkdir()
    before = [stamp(file) for file in files]
    found = survey(files)
    if not found.characters:
        raise Mistake(f"{files[0].parent if len(files) > 1 else files[0]} is empty; a language model needs text")
    cut = Cut(share, found.documents, found.bytes)
    tokenizer = Tokenizer.learn(sample(files, cut, found.bytes), kind, vocab)
    if tokenizer.end is None:
        raise Mistake(f"--data.tokenizer {kind} has no end-of-text token to put between documents; choose bpe")
    tokenizer.save(folder)
    dtype = "uint16" if tokenizer.vocab <= 2**16 else "uint32"
    counts = dict.fromkeys(PARTS, 0)
    valid_bytes = 0
    with (folder / "train.bin").open("wb") as train, (folder / "valid.bin").open("wb") as valid:
        out = {"train": train, "valid": valid}
        for part, tokens, size in tokenize_pieces(cut.divide(walk(files)), tokenizer):
            out[part].write(np.asarray(tokens, dtype).tobytes())
            counts[part] += len(tokens)
            valid_bytes += size if part == "valid" else 0
    for file, then in zip(files, before, strict=True):
        if stamp(file) != then:
            raise Mistake(f"{show(file)} was changed while it was read; start again when it is complete")
    header = {
        "sources": [source_entry(*one) for one in zip(files, found.checksums, before, strict=True)],
        "dtype": dtype,
        "documents": found.documents,
        "bytes": found.bytes,
        "characters": found.characters,
        "valid bytes": valid_bytes,
        **{f"{part} tokens": counts[part] for part in PARTS},
    }
    write_header(folder, header, VERSION)


def walk(files: list[Path]) -> Iterator[Piece]:
    """All pieces of all files."""
    for file in files:
        yield from pieces(file)


def survey(files: list[Path]) -> Survey:
    """Read everything once: faults are found before an hour of work, not after it."""
    documents = size = characters = 0
    checksums = []
    for file in files:
        checksums.append(digest(file))
        for piece in pieces(file):
            documents += piece.last
            size += len(piece.text.encode())
            characters += len(piece.text)
    return Survey(documents, size, characters, tuple(checksums))


def sample(files: list[Path], cut: Cut, size: int) -> Iterator[str]:
    """Training text for the tokenizer: all of it, or evenly many bytes from the parts of a large corpus."""
    every = max(1, -(-size // SAMPLE))  # of a corpus n times too large, every n-th piece
    training = (piece.text for part, piece in cut.divide(walk(files)) if part == "train" and piece.text)
    return (text for i, text in enumerate(training) if i % every == 0)


def tokenize_pieces(found: Iterator[tuple[str, Piece]], tokenizer: Tokenizer) -> Iterator[tuple[str, list[int], int]]:
    """(part, tokens, bytes) of each piece, an end after each document; many small ones are encoded together."""
    waiting: list[tuple[str, Piece]] = []
    characters = 0
    for item in found:
        waiting.append(item)
        characters += len(item[1].text)
        if characters >= BATCH:
            yield from encode_pieces(waiting, tokenizer)
            waiting, characters = [], 0
    yield from encode_pieces(waiting, tokenizer)


def encode_pieces(items: list[tuple[str, Piece]], tokenizer: Tokenizer) -> Iterator[tuple[str, list[int], int]]:
    """The same of the pieces that were waiting."""
    assert tokenizer.end is not None
    texts = [piece.text for _, piece in items]
    for (part, piece), tokens in zip(items, tokenizer.encode_many(texts) if texts else [], strict=True):
        yield part, [*tokens, tokenizer.end] if piece.last else tokens, len(piece.text.encode())


def document_numbers(tokens: Tensor, end: int) -> Tensor:
    """Which document of its window each token belongs to: 0, 0, 0, 1, 1, …; an end belongs to what it ends.

    Tokens (b, t) -> (b, t). Where two numbers differ, attention must not look if documents are to stay apart.
    """
    return (tokens == end).long().cumsum(-1) - (tokens == end).long()
