"""Tokenizers lose nothing, whatever the text, and are saved as transformers reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.errors import Mistake
from descend.text.tokenizer import Tokenizer

TEXT = "The cat sat on the mat. Ünïcode, naïve café; 42 dogs!\n\tdef f(x): return x\n" * 5
BPE, CHARACTERS = Tokenizer.bpe(TEXT, 300), Tokenizer.characters(TEXT)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.system("word-char-ngram-tokenizers", "characters")
@pytest.mark.system("byte-level-bpe")
@pytest.mark.system("byte-level-bpe", "lossless")
@pytest.mark.parametrize("tokenizer", [BPE, CHARACTERS], ids=["bpe", "characters"])
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_any_unicode_survives(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.system("byte-level-bpe", "lossless")
@pytest.mark.parametrize("tokenizer", [BPE, CHARACTERS], ids=["bpe", "characters"])
@pytest.mark.parametrize("text", ["", " ", "\r\n", "👩‍👩‍👧 é é", "<|endoftext|>", "<0x41>", "a" * 3000, "\x00\x7f"])
def test_hard_cases_survive(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.system("byte-level-bpe")
@pytest.mark.system("byte-level-bpe", "bytes")
def test_the_base_is_the_256_bytes_and_merges_shorten() -> None:
    bare = Tokenizer.bpe("x", 257)
    assert bare.vocab == 257  # the bytes and the end
    assert len(bare.encode("é€😀")) == 2 + 3 + 4  # UTF-8 lengths
    assert BPE.vocab == 300
    assert len(BPE.encode(TEXT)) < len(TEXT.encode())
    assert Tokenizer.bpe(TEXT, 300).encode(TEXT) == BPE.encode(TEXT)


def test_characters_are_one_token_each() -> None:
    assert len(CHARACTERS.encode("The cat")) == 7
    assert len(CHARACTERS.encode("猫")) == 3  # never seen: its bytes


@pytest.mark.parametrize("tokenizer", [BPE, CHARACTERS], ids=["bpe", "characters"])
def test_transformers_reads_the_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    text = "The café sat on 猫."
    assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert Tokenizer.load(tmp_path).encode(text) == tokenizer.encode(text)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"--data\.vocab 200"):
        Tokenizer.bpe(TEXT, 200)
    with pytest.raises(Mistake, match="does not exist"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(Mistake, match="not a tokenizer file"):
        Tokenizer.load(tmp_path)


def test_numbers_beyond_the_count_are_known_where_the_vocabulary_has_gaps() -> None:
    gaps = Tokenizer(tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "z": 9}, unk_token="a")))
    assert gaps.vocab == 3
    assert gaps.decode([0, 9]) == "a z"
    for number in (3, 10):
        with pytest.raises(Mistake, match=f"token {number} is unknown"):
            gaps.decode([9, number])
    assert gaps.decode([]) == ""


def test_the_first_number_beyond_the_vocabulary_is_refused() -> None:
    assert BPE.decode([BPE.vocab - 1])
    with pytest.raises(Mistake, match=f"token {BPE.vocab} is unknown"):
        BPE.decode([0, BPE.vocab])


@pytest.mark.system("byte-level-bpe", "categories")
def test_no_token_joins_letters_with_digits_or_punctuation() -> None:
    """However often "dog1!" occurs; a space may begin a token."""
    tokenizer = Tokenizer.bpe("dog1! dog2? cat1! " * 50, 330)
    kinds = set()
    for token in range(tokenizer.vocab):
        text = tokenizer.decode([token])
        kind = {"letter" if c.isalpha() else "digit" if c.isdigit() else "mark" for c in text.removeprefix(" ")}
        assert len(kind - {"mark"}) + ("mark" in kind) <= 1 or text == "<|endoftext|>", text
        kinds |= kind if len(text) > 1 else set()
    assert "letter" in kinds
    assert tokenizer.encode("dog1!") == [t for part in ("dog", "1", "!") for t in tokenizer.encode(part)]
