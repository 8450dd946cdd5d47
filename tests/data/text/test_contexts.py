"""Windows, pairs and counts against plain loops, and the random choices against their probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.data.streams.arrays import Shuffled, generator
from descend.data.text.contexts import (
    Counts,
    WithNoise,
    by_distance,
    cooccurrence,
    noise,
    one_each,
    pairs,
    subsample,
    triples,
    windows,
)
from descend.data.toys.toy_language import NOUNS, WORDS, nouns_and_features, quadruples, two_senses
from descend.errors import Mistake
from tests.close import close

TEXTS = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def by_hand(words: list[int], sentence: list[int], c: int) -> list[tuple[int, int, int]]:
    """(centre, neighbour, distance), one by one."""
    found = []
    for t, word in enumerate(words):
        for u in range(max(0, t - c), min(len(words), t + c + 1)):
            if u != t and sentence[u] == sentence[t]:
                found.append((word, words[u], abs(u - t)))
    return found


@pytest.mark.system("glove", "counts")
@pytest.mark.system("skip-gram")
@pytest.mark.system("skip-gram", "pairs")
@pytest.mark.system("cbow")
@given(words=TEXTS, c=st.integers(1, 4), cut=st.integers(0, 12))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_pairs_windows_and_counts_are_those_of_a_loop(words: list[int], c: int, cut: int) -> None:
    x = torch.tensor(words)
    sentence = (torch.arange(len(words)) >= cut).long()
    expected = by_hand(words, sentence.tolist(), c)
    centres, near = pairs(x, c, sentence)
    assert list(zip(centres.tolist(), near.tolist(), strict=True)) == [(a, b) for a, b, _ in expected]
    assert int((windows(x, c, sentence) >= 0).sum()) == len(expected)
    for weight_of in (one_each, by_distance):
        table = np.zeros((5, 5))
        for a, b, d in expected:
            table[a, b] += 1 if weight_of is one_each else 1 / d
        ours = cooccurrence(x, c, 5, sentence, weight_of).table()
        assert np.allclose(ours.numpy(), table)
        assert np.allclose(table, table.T)


@pytest.mark.system("skip-gram")
@pytest.mark.system("skip-gram", "pairs")
def test_the_books_sentence() -> None:
    x = torch.tensor([0, 1, 2, 3, 0, 4])  # the cat sat on the mat
    assert [len(pairs(x, c)[0]) for c in (1, 2)] == [10, 18]
    assert windows(x, 2)[2].tolist() == [0, 1, 3, 0]
    with pytest.raises(Mistake, match=r"--data\.window 0"):
        windows(x, 0)


@pytest.mark.system("glove")
@pytest.mark.system("glove", "triples")
def test_triples_share_their_context_and_skip_what_never_occurs() -> None:
    x = cooccurrence(torch.randint(6, (80,), generator=generator(0)), 1, 6, weight_of=one_each)
    p = torch.zeros(6, 6).index_put((x.i, x.g), x.conditional())
    close(p.sum(0), torch.ones(6))
    found = triples(x, generator(1), 500)
    i, s, g = found["i"], found["s"], found["g"]
    assert (i != s).all()
    assert (p[i, g] > 0).all()
    assert (p[s, g] > 0).all()
    close(found["r"], (p[i, g] / p[s, g]).log())
    assert len({*zip(i.tolist(), s.tolist(), g.tolist(), strict=True)}) > 50
    alone = Counts(torch.tensor([2]), torch.tensor([3]), torch.tensor([1.0]), 6)
    assert not triples(alone, generator(0), 4)["r"].any()


@pytest.mark.system("skip-gram-negative-sampling")
@pytest.mark.system("skip-gram-negative-sampling", "noise")
def test_noise_has_its_distribution_and_never_draws_what_does_not_occur() -> None:
    counts = torch.tensor([0, 1, 16, 0])
    u = 2 * torch.rand(20_000, generator=generator(0)) - 1
    for power, share in ((0.0, 0.5), (0.75, 8 / 9), (1.0, 16 / 17)):
        words = noise(counts, power)(u)
        assert set(words.tolist()) == {1, 2}
        assert abs(float((words == 2).double().mean()) - share) < 0.01
    assert noise(counts)(torch.tensor([-1.0, 1.0])).tolist() == [1, 2]


@pytest.mark.system("skip-gram-negative-sampling", "outside")
def test_noise_outside_the_window_has_the_distribution_of_the_rest() -> None:
    counts = torch.tensor([3, 1, 16, 0, 5])
    u = 2 * torch.rand(20_000, 1, generator=generator(0)) - 1
    near = torch.tensor([2, 0, -1]).expand(20_000, -1)
    found = torch.bincount(noise(counts, 1.0)(u, near).flatten(), minlength=5) / 20_000
    assert found[[0, 2, 3]].tolist() == [0, 0, 0]
    assert abs(float(found[4]) - 5 / 6) < 0.01
    ends = torch.tensor([[-1.0], [1.0]])
    assert noise(counts)(ends, near[:2]).flatten().tolist() == [1, 4]
    assert torch.equal(noise(counts)(u, torch.full((20_000, 2), -1)), noise(counts)(u))  # nothing is near
    with pytest.raises(Mistake, match=r"--noise\.words any"):
        noise(counts)(ends[:1], torch.tensor([[0, 1, 2, 4]]))


def test_a_stream_with_noise_resumes() -> None:
    def stream() -> WithNoise:
        arrays = {"x": torch.arange(10), "y": torch.arange(10) % 3}
        return WithNoise(Shuffled(arrays, 4, 0, chance=5), noise(torch.tensor([3, 4, 3])))

    a, b = stream(), stream()
    first = next(a)
    assert first["words"].shape == (4, 6)
    assert torch.equal(first["words"][:, 0], first["y"])
    b.load_state_dict(a.state_dict())
    assert torch.equal(next(a)["words"], next(b)["words"])


def test_subsampling_thins_frequent_words_only() -> None:
    words = torch.cat([torch.zeros(9000), torch.ones(100)]).long()
    kept = torch.bincount(subsample(words, 2, 0.02, generator(0)), minlength=2)
    assert kept[1] == 100
    assert abs(int(kept[0]) / 9000 - (0.02 * 9100 / 9000) ** 0.5) < 0.02
    assert torch.equal(subsample(words, 2, 0.0, generator(0)), words)


@pytest.mark.system("embedding-analogies")
def test_planted_corpora_have_what_was_planted() -> None:
    names, answers = list(NOUNS), quadruples()
    assert len(answers) == 72
    asked = {tuple(names[k] for k in row) for row in answers.tolist()}
    assert ("man", "king", "woman", "queen") in asked
    assert ("man", "king", "girl", "queen") not in asked
    corpus = nouns_and_features(50, generator(0))
    assert len(corpus.words) == 300 == len(corpus.sentence)
    assert int(corpus.words.max()) < len(WORDS)
    assert ((corpus.words.reshape(50, 6) < len(NOUNS)).sum(1) == 1).all()
    x, sense = two_senses(40, generator(0))
    assert (x[:, 2] == 0).all()
    assert ((x[:, 3:] - 1) // 4 == sense[:, None]).all()
