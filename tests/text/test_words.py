"""Words as numbers: dictionaries, one-hot vectors, n-grams, levels, standardization, the pipeline, bags, batches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor

from descend.errors import Mistake
from descend.models.mlp import MLP, MLPConfig
from descend.ops.ngrams import ngrams, possible, unseen
from descend.text import bags
from descend.text.bpe import BPE, words_with_space
from descend.text.levels import compare
from descend.text.special import batch, decode_rows, frame_tokens, pad_rows, text_matrix
from descend.text.standardize import (
    lemmatize_tokens,
    lower_case,
    stem_tokens,
    without_accents,
    without_punctuation,
    without_stop_words,
)
from descend.text.stemming import measure, stem
from descend.text.tokenizer import Tokenizer
from descend.text.vectorize import Vectorizer
from descend.text.vocabulary import Vocabulary, words
from tests.close import close

GOOD, BAD = "The food was good, not bad at all.", "The food was bad, not good at all."
CORPUS = ["the cat sat", "the dog sat sat", "a cat and a dog", "good food"]


@pytest.mark.system("one-hot-words")
@pytest.mark.system("one-hot-words", "dictionary", "equidistant")
def test_one_hot_words_are_orthogonal_equidistant_and_come_back() -> None:
    vocabulary = Vocabulary.learn(["the", "king", "and", "the", "queen"])
    assert vocabulary.words == ("and", "king", "queen", "the")
    x = vocabulary.one_hot(["king", "queen", "the", "pawn"])
    close(x @ x.T, torch.eye(4))
    close(torch.cdist(x, x), math.sqrt(2) * (1 - torch.eye(4)))
    assert vocabulary.from_one_hot(x) == ["king", "queen", "the", "<unk>"]
    assert x.shape[1] == vocabulary.size == 5
    with pytest.raises(Mistake, match="number 7 is not a word"):
        vocabulary.decode([7])
    with pytest.raises(Mistake, match="vocabulary would be empty"):
        Vocabulary.learn(["a"], least=2)


@pytest.mark.system("word-char-ngram-tokenizers")
@pytest.mark.system("word-char-ngram-tokenizers", "n-grams")
@given(tokens=st.lists(st.sampled_from("abc"), max_size=12), n=st.integers(1, 5))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_ngrams_are_those_of_scikit_learn(tokens: list[str], n: int) -> None:
    found = ngrams(tokens, n)
    assert len(found) == max(len(tokens) - n + 1, 0)
    theirs = CountVectorizer(analyzer="word", token_pattern=r"\S+", ngram_range=(n, n)).build_analyzer()
    assert [" ".join(gram) for gram in found] == theirs(" ".join(tokens))


@pytest.mark.system("word-char-ngram-tokenizers")
@pytest.mark.system("word-char-ngram-tokenizers", "unseen")
def test_pairs_tell_the_food_sentences_apart_and_most_are_unseen() -> None:
    good, bad = (words(text.lower()) for text in (GOOD, BAD))
    assert sorted(ngrams(good, 1)) == sorted(ngrams(bad, 1))
    assert set(ngrams(good, 2)) != set(ngrams(bad, 2))
    assert unseen(good, bad, 1) == 0 < unseen(good, bad, 2)
    assert possible(10_000, 3) == 10**12
    with pytest.raises(Mistake, match="n = 0"):
        ngrams(good, 0)


@pytest.mark.system("word-char-ngram-tokenizers")
@pytest.mark.system("word-char-ngram-tokenizers", "levels", "shared")
def test_levels_on_misspelt_text() -> None:
    train = "cook cooks cooked cooking cooker the cat sat on the mat " * 4
    of_words, between, letters = compare(train, "the cookk cat satt", vocab=300)
    assert of_words.unknown == pytest.approx(2 / 4)
    assert between.unknown == letters.unknown == 0
    assert of_words.length < between.length < letters.length == len("the cookk cat satt")
    shared = Tokenizer.learn(train, "bpe", 300)
    first = [shared.decode(shared.encode(f" {word}")[:1]) for word in ["cooks", "cooked", "cooker"]]
    assert all(token.strip() and "cooks".startswith(token.strip()[:4]) for token in first)


STEPS: list[Callable[[str], str]] = [lower_case, without_accents, without_punctuation]


@pytest.mark.system("text-vectorization-pipeline")
@pytest.mark.system("text-vectorization-pipeline", "idempotent")
@pytest.mark.parametrize("step", STEPS)
@given(text=st.text(max_size=30))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_steps_are_idempotent(step: Callable[[str], str], text: str) -> None:
    assert step(step(text)) == step(text)


@pytest.mark.system("text-vectorization-pipeline")
@pytest.mark.system("text-vectorization-pipeline", "switchable", "stems")
def test_steps_on_samples() -> None:
    assert without_accents("Café naïve Ångström") == "Cafe naive Angstrom"
    assert without_punctuation("don't, stop! (now)") == "dont stop now"
    few = without_stop_words(["the", "cat", "sat", "on", "it"])
    assert few == ["cat", "sat"] == without_stop_words(few)
    assert set(lemmatize_tokens(["eat", "eats", "eating", "eaten", "ate"])) == {"eat"}
    assert set(stem_tokens(["connect", "connected", "connecting", "connection", "connections"])) == {"connect"}
    assert stem("ate") != stem("eat")  # a stemmer cuts endings only


@pytest.mark.system("text-vectorization-pipeline")
@pytest.mark.system("text-vectorization-pipeline", "stems")
@pytest.mark.parametrize(
    "pairs",
    [
        "caresses caress ponies poni ties ti cats cat feed feed agreed agre plastered plaster bled bled sing sing",
        "troubled troubl sized size hopping hop falling fall hissing hiss fizzed fizz filing file happy happi sky sky",
        "relational relat rational ration digitizer digit vietnamization vietnam operator oper hopefulness hope",
        "triplicate triplic formalize formal goodness good electrical electr revival reviv allowance allow",
        "gyroscopic gyroscop replacement replac adjustment adjust adoption adopt communism commun effective effect",
        "probate probat rate rate cease ceas controll control roll roll as as",
    ],
)
def test_the_stemmer_gives_the_published_stems(pairs: str) -> None:
    given_words, stems = pairs.split()[::2], pairs.split()[1::2]
    assert [stem(word) for word in given_words] == stems
    assert [measure(word) for word in ("tree", "trouble", "oats", "troubles", "private")] == [0, 1, 1, 2, 2]


@pytest.mark.system("text-vectorization-pipeline")
@pytest.mark.system("text-vectorization-pipeline", "learned-once", "switchable")
def test_the_pipeline_learns_once_and_knows_what_it_does_not_know() -> None:
    plain = Vectorizer().learn(["The cat sat", "the Dog"])
    assert plain.vocabulary.words == ("cat", "dog", "sat", "the")
    assert plain("THE zebra sat").tolist() == [3, 4, 2] == plain("THE zebra sat").tolist()
    more = Vectorizer((lower_case, without_punctuation), str.split, (without_stop_words, stem_tokens)).learn(
        ["Cats, sat!"]
    )
    assert more.vocabulary.words == ("cat", "sat")
    assert more.vocabulary.decode(more("the cat ... sits")) == ["cat", "<unk>"]
    assert Vectorizer().learn(["a b c", "b"], most=1).vocabulary.words == ("b",)


@pytest.mark.system("bag-of-words")
@pytest.mark.system("bag-of-words", "encodings", "unknown")
def test_bags_are_those_of_scikit_learn() -> None:
    vectorizer = Vectorizer().learn(CORPUS)
    ids, size = [vectorizer(text) for text in CORPUS], vectorizer.vocabulary.size
    theirs = CountVectorizer(token_pattern=r"\S+")
    expected = torch.from_numpy(theirs.fit_transform(CORPUS).toarray().astype(np.float32))
    assert tuple(theirs.get_feature_names_out()) == vectorizer.vocabulary.words
    close(bags.counts(ids, size)[:, :-1], expected)
    close(bags.multi_hot(ids, size)[:, :-1], expected.clamp_max(1))
    close(bags.mean(ids, size).sum(1), torch.ones(len(ids)))
    close(bags.counts(ids, size), torch.stack([bags.rows(d, size).sum(0) for d in ids]))
    close(bags.counts([vectorizer("a zebra a")], size)[0, [0, -1]], torch.tensor([2.0, 1.0]))  # <unk> is last
    assert not bags.mean([torch.empty(0, dtype=torch.long)], size).any()
    with pytest.raises(ValueError, match="token 99 has no row"):
        bags.counts([torch.tensor([99])], size)


@pytest.mark.system("bag-of-words")
@pytest.mark.system("bag-of-words", "order")
def test_a_classifier_of_bags_learns_but_cannot_see_order() -> None:
    texts = ["good food", "bad food", "good cat", "bad dog", "the good", "the bad"]
    vectorizer = Vectorizer((lower_case, without_punctuation)).learn([*texts, GOOD])
    size = vectorizer.vocabulary.size
    x, y = bags.counts([vectorizer(text) for text in texts], size), torch.tensor([1, 0, 1, 0, 1, 0])
    torch.manual_seed(0)
    model = MLP(MLPConfig(inputs=size, hidden=(), outputs=2))
    for _ in range(60):
        slopes = torch.autograd.grad(torch.nn.functional.cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for p, slope in zip(model.parameters(), slopes, strict=True):
                p.sub_(slope)
    assert model(x).argmax(1).tolist() == y.tolist()
    answers = model(bags.counts([vectorizer(GOOD), vectorizer(BAD)], size))
    assert torch.equal(answers[0], answers[1])
    assert vectorizer(GOOD).tolist() != vectorizer(BAD).tolist()


@pytest.mark.system("text-vectorization-pipeline", "pieces")
def test_a_pipeline_of_pieces_knows_new_words() -> None:
    """DLD 6.5: byte pair encoding to generate; the same steps, another cut, and nothing is <unk>."""
    corpus = ["Low lower lowest", "new newer newest"]
    learned = BPE.learn(words_with_space(" ".join(corpus).lower()), 12)

    def cut(text: str) -> list[str]:
        return [piece for word in words_with_space(text) for piece in learned.cut(word)]

    by_words = Vectorizer().learn(corpus)
    by_pieces = Vectorizer((lower_case,), cut, (), Vocabulary(learned.vocabulary))
    new = "Newest LOW slower"
    assert by_words.vocabulary.unknown in by_words(new).tolist()
    ids = by_pieces(new)
    assert by_pieces.vocabulary.unknown not in ids.tolist()
    assert "".join(by_pieces.vocabulary.decode(ids)) == "newest low slower"
    assert torch.equal(ids, by_pieces(new))


@pytest.mark.system("bag-of-words", "semantics")
def test_like_words_are_no_nearer_in_bags() -> None:
    """ "cat" is as far from "kitten" as from "democracy"."""
    vectorizer = Vectorizer().learn(["cat kitten democracy sat"])
    ids = [vectorizer(text) for text in ("cat sat", "kitten sat", "democracy sat")]
    x = bags.counts(ids, vectorizer.vocabulary.size)
    distance = torch.cdist(x, x)
    close(distance, math.sqrt(2) * (1 - torch.eye(3)))


SPECIALS = Tokenizer.learn("the cat sat on the mat", "plain-bpe", 290).with_specials(
    {"pad_token": "<pad>", "cls_token": "<cls>", "sep_token": "<sep>", "mask_token": "<mask>"}
)


@pytest.mark.system("special-tokens-to-matrix")
@pytest.mark.system("special-tokens-to-matrix", "batch", "back")
def test_a_batch_has_special_tokens_padding_and_a_mask_and_comes_back() -> None:
    texts = ["the cat", "the mat sat on the cat", ""]
    ids, mask = batch(SPECIALS, texts)
    lengths = [len(SPECIALS.encode(text)) + 2 for text in texts]
    assert ids.shape == mask.shape == (3, max(lengths))
    assert mask.sum(1).tolist() == lengths
    assert ids[:, 0].tolist() == [SPECIALS.special("cls_token")] * 3
    assert [int(row[n - 1]) for row, n in zip(ids, lengths, strict=True)] == [SPECIALS.special("sep_token")] * 3
    assert set(ids[~mask].tolist()) == {SPECIALS.special("pad_token")}
    assert decode_rows(SPECIALS, ids) == texts
    assert frame_tokens([5], None, 1) == [5, 1]


@pytest.mark.system("special-tokens-to-matrix")
@pytest.mark.system("special-tokens-to-matrix", "matrix")
@pytest.mark.parametrize("kind", ["bpe", "characters", "words", "unigram", "wordpiece", "plain-bpe"])
def test_text_becomes_rows_of_the_table_with_any_tokenizer(kind: str) -> None:
    tokenizer = Tokenizer.learn("the cat sat on the mat", kind, 300)
    e = torch.randn(tokenizer.vocab, 7)
    x = text_matrix(tokenizer, "the cat sat", e)
    ids = tokenizer.encode("the cat sat")
    assert x.shape == (len(ids), 7)
    assert torch.equal(x, e[ids])
    with pytest.raises(Mistake, match="do not belong together"):
        text_matrix(tokenizer, "cat", e[:-1])


@pytest.mark.system("special-tokens-to-matrix")
def test_padding_mistakes() -> None:
    with pytest.raises(Mistake, match="no padding token; add one with with_specials"):
        batch(Tokenizer.bpe("cat", 260), ["cat"])
    with pytest.raises(Mistake, match="no text in the batch"):
        pad_rows([], 0)
    empty: Tensor = pad_rows([[], [1]], 0)[1]
    assert empty.tolist() == [[False], [True]]
