"""Six ways to cut text into tokens, learned from a text by the `tokenizers` package.

    bpe          byte-level BPE: the 256 bytes, then the most frequent pair of neighbours merged, again and again
    plain-bpe    the same over characters; a white space only ever begins a token, so words are never joined (DLN), and
                 the space is a symbol like any other (SentencePiece: raw text in, raw text out)
    unigram      SentencePiece's other model: of all ways to cut a text, the one of highest Π P(piece)
    characters   one token a character
    wordpiece    a word is cut by the longest known piece, then the longest continuation, written ##piece
    words        one token per word or mark

The first four lose nothing, whatever the text: a character that training never saw falls back to its bytes. Words and
pieces make `<unk>` of what they do not know, and forget how much white space there was.
SentencePiece writes a space as U+2581, which a text with that character does not survive; here a space stays a space.
The package's WordPiece trainer merges by count, as BPE does; `text/wordpiece.py` has the published score.

Systems: wordpiece-sentencepiece, word-char-ngram-tokenizers, byte-level-bpe
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from descend.errors import Mistake

END, UNKNOWN = "<|endoftext|>", "<unk>"
BYTES = 256
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(BYTES)]
LONGEST = 1024  # characters of a run without white space that are learned from together
MOST_TOKENS = 10_000_000  # of a vocabulary: ten times the largest that is in use
LEAST_LIKELY = -1000.0  # log-probability of a byte: taken only where nothing else fits
Texts = Iterable[str]
Learner = Callable[[Texts, int], tokenizers.Tokenizer]


def byte_level(texts: Texts, vocab: int) -> tokenizers.Tokenizer:
    """Byte-level BPE with at most `vocab` tokens."""
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
    inner.train_from_iterator(texts, trainer)
    return inner


def plain_bpe(texts: Texts, vocab: int) -> tokenizers.Tokenizer:
    """BPE over characters; `vocab` counts the end, the bytes that stand in for unseen characters, and all tokens."""
    room = space_for(vocab, "plain BPE")
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = white_space_begins()
    inner.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=room, show_progress=False))
    learned = json.loads(inner.to_str())["model"]
    tokens = something_learned(learned["vocab"])
    if len(tokens) > room:
        raise Mistake(f"--data.vocab {vocab}: the text has {len(tokens)} characters; use {vocab + len(tokens) - room}")
    numbers = {token: n for n, token in enumerate([END, *BYTE_TOKENS, *tokens])}
    inner.model = models.BPE(numbers, [tuple(pair) for pair in learned["merges"]], byte_fallback=True)
    return with_byte_fallback(inner)


def unigram(texts: Texts, vocab: int) -> tokenizers.Tokenizer:
    """Pieces with probabilities, the rarest dropped again and again until `vocab` tokens are left."""
    room = space_for(vocab, "the unigram model")
    inner = tokenizers.Tokenizer(models.Unigram())
    inner.pre_tokenizer = white_space_begins()
    trainer = trainers.UnigramTrainer(vocab_size=room, show_progress=False)
    inner.train_from_iterator(texts, trainer)
    # The package's scores change from run to run in the third decimal, and with them their order: sorted and rounded.
    learned = json.loads(inner.to_str())["model"]["vocab"]
    pieces = sorted((str(piece), round(float(score), 2)) for piece, score in learned)
    something_learned([piece for piece, _ in pieces])
    spare = [(token, LEAST_LIKELY) for token in BYTE_TOKENS]
    inner.model = models.Unigram([(END, LEAST_LIKELY), *spare, *pieces], 1, byte_fallback=True)
    return with_byte_fallback(inner)


def characters(texts: Texts, vocab: int = 0) -> tokenizers.Tokenizer:
    """One token for each character of the texts, however many, and the 256 bytes for all others."""
    tokens = [END, *BYTE_TOKENS, *sorted(set().union(*map(set, texts)))]
    inner = tokenizers.Tokenizer(models.BPE({t: n for n, t in enumerate(tokens)}, [], byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]{1,256}"), "isolated")  # keeps words short
    return with_byte_fallback(inner)


def wordpiece(texts: Texts, vocab: int) -> tokenizers.Tokenizer:
    """Pieces of words; a word with an unseen character is `<unk>` as a whole."""
    texts = list(texts)
    inner = tokenizers.Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # Symbols named beforehand keep their numbers; otherwise the package numbers them by chance, and ties with them.
    first = [UNKNOWN, END, *something_learned(sorted({c for text in texts for c in set(text) if not c.isspace()}))]
    first += [f"##{c}" for c in going_on(texts, inner.pre_tokenizer)]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab, special_tokens=first, show_progress=False)
    inner.train_from_iterator(texts, trainer)
    found = tokenizers.Tokenizer(models.WordPiece(inner.get_vocab(), unk_token=UNKNOWN))
    found.pre_tokenizer, found.decoder = inner.pre_tokenizer, decoders.WordPiece(cleanup=False)
    found.add_special_tokens([UNKNOWN, END])
    return found


def going_on(texts: Sequence[str], cut: pre_tokenizers.PreTokenizer) -> list[str]:
    """The characters that follow another one within a word."""
    neighbours = {pair for text in texts for pair in pairwise(text)}
    return sorted(
        {b for a, b in neighbours if len(parts := cut.pre_tokenize_str(a + b)) == 1 and len(parts[0][0]) == 2}
    )


def words(texts: Texts, vocab: int) -> tokenizers.Tokenizer:
    """The most frequent words and marks, `vocab` tokens in all."""
    inner = tokenizers.Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=vocab, special_tokens=[UNKNOWN, END], show_progress=False)
    inner.train_from_iterator(texts, trainer)
    something_learned([token for token in inner.get_vocab() if token not in (UNKNOWN, END)])
    return inner


LEARNERS: dict[str, Learner] = {
    "bpe": byte_level,
    "characters": characters,
    "plain-bpe": plain_bpe,
    "unigram": unigram,
    "wordpiece": wordpiece,
    "words": words,
}


def lower_case_words(known: Sequence[str]) -> tokenizers.Tokenizer:
    """A given vocabulary of lower-case words, in its order, and `<unk>` after them."""
    numbers = {word: n for n, word in enumerate([*known, UNKNOWN])}
    inner = tokenizers.Tokenizer(models.WordLevel(numbers, unk_token=UNKNOWN))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return inner


def space_for(vocab: int, what: str) -> int:
    """Tokens left to learn when the end and the bytes have their places."""
    if vocab <= BYTES + 2:
        raise Mistake(f"--data.vocab {vocab}: {what} reserves {BYTES + 1} tokens for the bytes and the end; use more")
    return vocab - BYTES - 1


def cut_runs(texts: Texts, longest: int = LONGEST) -> Iterator[str]:
    """The texts; one in which a run without white space (or of white space alone) is too long comes in several parts.

    Learning takes time by the square of a run's length: DNA, base64. Texts without such runs are learned from as ever.
    """
    too_long = re.compile(rf"(?<!\S)\S{{{longest + 1},}}|(?<!\s)\s{{{longest + 1},}}")
    for text in texts:
        done = 0
        for run in too_long.finditer(text):
            for at in range(run.start(), run.end(), longest):
                yield text[done:at]
                done = at
        yield text[done:]


def something_learned(tokens: Iterable[str]) -> list[str]:
    """The tokens; none means that there was no text."""
    found = list(tokens)
    if not found:
        raise Mistake("the text is empty, so there is nothing to learn tokens from; check --data.path")
    return found


def white_space_begins() -> pre_tokenizers.PreTokenizer:
    """Every white space begins a new part; a text that looks like the name of a byte, <0x41>, is never one part."""
    looks_like_a_byte = pre_tokenizers.Split(Regex(r"<(?=0x[0-9A-F]{2}>)"), "isolated")
    return pre_tokenizers.Sequence([looks_like_a_byte, pre_tokenizers.Split(Regex(r"\s?\S+|\s"), "isolated")])


def with_byte_fallback(inner: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Marks the end as special, and puts characters together from their bytes."""
    inner.add_special_tokens([END])
    inner.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return inner
