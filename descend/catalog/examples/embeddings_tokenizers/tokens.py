"""Worked examples of tokenizers: byte pair encoding, one-hot words, n-grams and bags of words."""

from __future__ import annotations

import math

import torch

from descend.catalog.examples import Compute, Inputs
from descend.models.gpt2 import SIZES
from descend.ops.embedding import one_hot
from descend.ops.math.vectors import distance
from descend.ops.ngrams import possible
from descend.text.bags import counts, multi_hot
from descend.text.bpe import BPE, Pair, alphabetical, first_occurrence, pair_counts, top_pairs, words_with_space
from descend.text.standardize import lower_case, without_punctuation
from descend.text.tokenizer import BYTES, Tokenizer
from descend.text.vectorize import Vectorizer
from descend.text.vocabulary import Vocabulary


def byte_vocabulary(i: Inputs) -> Inputs:
    """A tokenizer without any merge has the bytes and its special tokens; the rest of a vocabulary are merges."""
    special = Tokenizer.bpe("", vocab=BYTES + 1).vocab - BYTES
    return {
        "base": BYTES,
        "merges_plus_special": i["vocab"] - BYTES,
        "merges_if_one_special_token": i["vocab"] - BYTES - special,
    }


def third_word(i: Inputs) -> Inputs:
    """DLN counts from 1."""
    vector = one_hot(torch.tensor(i["k_1based"] - 1), i["dictionary_size_for_demo"]).long()
    return {"vector_prefix": vector[:4], "sum": vector.sum()}


def two_words(i: Inputs) -> Inputs:
    e_i, e_j = one_hot(torch.tensor([i["i"], i["j"]]), i["V"]).double()
    return {"dot": e_i @ e_j, "distance": distance(e_i, e_j), "nonzeros": int(e_i.count_nonzero())}


def feature_counts(i: Inputs) -> Inputs:
    many = {n: possible(i["V"], n) for n in (2, 3)}
    return {
        "bigram_exponent": math.log(many[2], i["V"]),
        "trigram_exponent": math.log(many[3], i["V"]),
        "bigrams": many[2],
        "trigrams": many[3],
    }


def context_bag(i: Inputs) -> Inputs:
    """A dictionary with the context words and the target; the book's order of words is not given."""
    vocabulary = Vocabulary.learn([*i["context"], "walk"])
    bag = counts([vocabulary.encode(i["context"])], vocabulary.size)[0]
    return {
        "context_words": len(i["context"]),
        "distinct_context_words": int((bag > 0).sum()),
        "vector_sum": int(bag.sum()),
    }


def same_bag(i: Inputs) -> Inputs:
    vocabulary = Vocabulary.learn(i["s1"] + i["s2"])
    a, b = (vocabulary.encode(i[name]) for name in ("s1", "s2"))
    bags = counts([a, b], vocabulary.size)
    return {"bags_identical": bool((bags[0] == bags[1]).all()), "sequences_identical": bool((a == b).all())}


def three_encodings(i: Inputs) -> Inputs:
    vectorizer = Vectorizer().learn(i["documents"])
    vocabulary, ids = vectorizer.vocabulary, [vectorizer(text) for text in i["documents"]]
    turned = counts([ids[0].flip(0)], vocabulary.size)
    return {
        "vocabulary": list(vocabulary.words),
        "one_hot_dimension": vocabulary.size,
        "count": counts(ids, vocabulary.size)[:, :-1].long(),
        "multi_hot": multi_hot(ids, vocabulary.size)[:, :-1].long(),
        "order_lost": bool((turned == counts(ids[:1], vocabulary.size)).all()),
    }


def food(i: Inputs) -> Inputs:
    vectorizer = Vectorizer((lower_case, without_punctuation)).learn([i["a"], i["b"]])
    bags = counts([vectorizer(i["a"]), vectorizer(i["b"])], vectorizer.vocabulary.size).long()
    return {
        "identical": bool((bags[0] == bags[1]).all()),
        "counts": dict(zip(vectorizer.vocabulary.words, bags[0].tolist(), strict=False)),
    }


def peter(i: Inputs) -> Inputs:
    words = words_with_space(i["text"])
    learned = BPE.learn(words, merges=2, tie=first_occurrence)
    before = pair_counts([(list(word), 1) for word in words])
    after = pair_counts([(learned.cut(word), 1) for word in words])
    top = top_pairs(after)
    return {
        "first_merge": "".join(learned.merges[0]),
        "count_pe": learned.counts[0],
        "second_merge": "".join(learned.merges[1]),
        "count_ck": learned.counts[1],
        "count_pi": after["p", "i"],
        "count_ed": after["e", "d"],
        "count_per": after["pe", "r"],
        "count_Pe_uppercase": before["P", "e"],
        "initial_distinct_characters": len(learned.characters),
        "initial_length": sum(map(len, words)),
        "count_space_p_before_first_merge": before[" ", "p"],
        "pairs_with_top_count_after_two_merges": ["".join(pair) for pair in top],
        "top_count_after_two_merges": after[top[0]],
    }


def lost_apostrophe(i: Inputs) -> Inputs:
    """The book's tokens put together again by a vocabulary that has them."""
    vocabulary = Vocabulary(tuple(i["tokens"]))
    joined = "".join(vocabulary.decode(vocabulary.encode(i["tokens"])))
    return {"joined": joined, "equals_input": joined == i["text"]}


def cut_after(corpus: list[str], merges: int) -> list[list[str]]:
    learned = BPE.learn(corpus, merges, alphabetical)
    return [learned.cut(word) for word in corpus]


def first_merges(i: Inputs) -> Inputs:
    corpus = i["corpus"]
    start = pair_counts([(list(word), 1) for word in corpus])
    steps = [BPE.learn(corpus, n, alphabetical) for n in range(3)]
    return {
        "initial_vocab_size": len(steps[0].vocabulary),
        "count_lo": start["l", "o"],
        "count_ow": start["o", "w"],
        "merge1": steps[1].merges[0],
        "vocab_size_after_1": len(steps[1].vocabulary),
        "corpus_after_1": cut_after(corpus, 1),
        "merge2": steps[2].merges[1],
        "count_merge2": steps[2].counts[1],
        "corpus_after_2": cut_after(corpus, 2),
    }


def later_merges(i: Inputs) -> Inputs:
    learned = BPE.learn(i["corpus"], merges=100, tie=alphabetical)
    merges: list[Pair] = list(learned.merges)
    return {
        "merge3": merges[2],
        "all_merges": merges,
        "merge_counts": learned.counts,
        "final_vocab": learned.vocabulary,
        "final_corpus": [learned.cut(word) for word in i["corpus"]],
    }


def public_ids(i: Inputs) -> Inputs:
    return {"vocab_size": SIZES["gpt2"].vocab}


EXAMPLES: dict[str, Compute] = {
    "DLN-GPT2-byte-vocab": byte_vocabulary,
    "DLN-TextData-onehot-king": third_word,
    "VOM-7.1-onehot-orthogonal": two_words,
    "VOM-6.2-ngram-count": feature_counts,
    "DLN-Sequential-bow-vector": context_bag,
    "DLN-Sequential-bow-order": same_bag,
    "DLD-6.6-bag-of-words": three_encodings,
    "VOM-6.2-bag-of-words": food,
    "DLN-Tokenization-bpe-peter": peter,
    "DLD-11.5-subword-example": lost_apostrophe,
    "VOM-7.4.1-bpe-first-merges": first_merges,
    "VOM-7.4.1-bpe-later-merges": later_merges,
    "VOM-7.6-token-ids": public_ids,
}

SET_ASIDE: dict[str, str] = {
    "DLN-Sequential-bow-vector:dictionary_size": "the book shows a vector of 17 places, but not the dictionary",
    "VOM-7.6-token-ids:ids": "the numbers are those of the public GPT-2 vocabulary, a file that descend does not carry",
}
