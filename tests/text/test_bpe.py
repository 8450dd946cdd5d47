"""The readable trainers against the books' merges, the package's models, and their own promises."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from descend.errors import Mistake
from descend.text import wordpiece
from descend.text.bpe import BPE, alphabetical, first_occurrence, pair_counts, words_with_space

PETER = "Peter Piper picked a peck of pickled peppers"
LOW = ["low", "lower", "lowest"]
SLUG = "bpe"
WORDS = st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=8)


@pytest.mark.system("bpe", "first-occurrence", "alphabetical")
@pytest.mark.system(SLUG)
def test_the_two_rules_for_ties_differ_on_the_books_sentence() -> None:
    words = words_with_space(PETER)
    assert BPE.learn(words, 2, first_occurrence).merges == (("p", "e"), ("c", "k"))
    assert BPE.learn(words, 1, alphabetical).merges == ((" ", "p"),)


@pytest.mark.system("bpe", "alphabetical")
@pytest.mark.system(SLUG)
def test_the_third_merge_of_low_lower_lowest_is_low_and_e() -> None:
    for tie in (alphabetical, first_occurrence):
        learned = BPE.learn(LOW, 100, tie)
        assert learned.merges[2] == ("low", "e")
        assert not {"er", "es", "est"} & set(learned.vocabulary)
    assert [learned.cut(word) for word in LOW] == [[word] for word in LOW]


@pytest.mark.system("bpe", "white-space", "round-trip")
@pytest.mark.system(SLUG)
@given(words=WORDS, merges=st.integers(0, 12))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_every_merge_was_the_most_frequent_pair_and_nothing_is_lost(words: list[str], merges: int) -> None:
    learned = BPE.learn(words, merges)
    for n in range(len(learned.merges)):
        so_far = BPE(learned.characters, learned.merges[:n])
        counts = pair_counts([(so_far.cut(word), 1) for word in words])
        assert counts[learned.merges[n]] == max(counts.values()) == learned.counts[n]
    text = " ".join(words)
    spaced = BPE.learn(words_with_space(text), merges)
    assert spaced.decode(spaced.encode(text)) == text
    assert set(spaced.vocabulary) == {*text, *map("".join, spaced.merges)}
    assert not any(" " in token[1:] for token in spaced.vocabulary)


@pytest.mark.system("bpe", "package")
@pytest.mark.system(SLUG)
@given(words=WORDS, new=st.text("abc", min_size=1, max_size=9))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_encoding_is_that_of_the_package_with_the_same_merges(words: list[str], new: str) -> None:
    learned = BPE.learn([*words, "abc"], 8)
    vocabulary = {token: n for n, token in enumerate(learned.vocabulary)}
    theirs = tokenizers.Tokenizer(models.BPE(vocabulary, list(dict.fromkeys(learned.merges))))
    assert theirs.encode(new).tokens == learned.cut(new)


@pytest.mark.system("bpe", "package")
@pytest.mark.system(SLUG)
def test_learning_is_that_of_the_package_where_no_counts_are_equal() -> None:
    words = ["abab"] * 9 + ["abc"] * 5 + ["cd"] * 30
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.train_from_iterator([" ".join(words)], trainers.BpeTrainer(vocab_size=8, show_progress=False))
    learned = BPE.learn(words, 4)
    assert set(learned.vocabulary) == set(theirs.get_vocab())
    assert [theirs.encode(word).tokens for word in words] == [learned.cut(word) for word in words]


def test_words_count_as_often_as_they_occur() -> None:
    assert BPE.learn(["ab", "cd", "cd"], 1).merges == (("c", "d"),)


@pytest.mark.system("bpe", "unknown")
@pytest.mark.system(SLUG)
def test_unknown_words_split_into_known_pieces_and_unknown_characters_are_named() -> None:
    learned = BPE.learn([*LOW, "newer"], 3)
    assert "".join(learned.cut("slower")) == "slower"
    assert "lowe" in learned.cut("slower")
    with pytest.raises(Mistake, match=r"character 0, 'x', was not in the training text.*byte-level"):
        learned.cut("x")
    with pytest.raises(Mistake, match="token 99 is unknown"):
        learned.decode([99])
    with pytest.raises(Mistake, match="text is empty"):
        BPE.learn([], 3)


@pytest.mark.system("wordpiece-sentencepiece")
@pytest.mark.system("wordpiece-sentencepiece", "score")
def test_wordpiece_merges_what_occurs_only_together() -> None:
    vocabulary, merges = wordpiece.learn(LOW, 1)
    assert merges == [("##s", "##t")]
    assert BPE.learn(LOW, 1).merges == (("l", "o"),)
    found = wordpiece.scores([(wordpiece.symbols(word), 1) for word in LOW])
    assert found["##s", "##t"] == 1
    assert found["l", "##o"] == pytest.approx(3 / 9)
    assert found["##e", "##r"] == pytest.approx(1 / 2)
    assert vocabulary[-1] == "##st"
    with pytest.raises(Mistake, match="text is empty"):
        wordpiece.learn([""], 1)


@pytest.mark.system("wordpiece-sentencepiece")
@pytest.mark.system("wordpiece-sentencepiece", "longest-match")
@given(words=WORDS, new=st.text("abcd", min_size=1, max_size=9))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_longest_match_is_that_of_the_package(words: list[str], new: str) -> None:
    vocabulary, _ = wordpiece.learn(words, 6)
    numbers = {token: n for n, token in enumerate([*vocabulary, "<unk>"])}
    theirs = tokenizers.Tokenizer(models.WordPiece(numbers, unk_token="<unk>"))
    assert theirs.encode(new).tokens == wordpiece.split_word(new, set(vocabulary))
