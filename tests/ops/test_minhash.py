"""MinHash against exact sets: the estimate is unbiased, and pairs meet as often as the banding formula says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from descend.errors import Mistake
from descend.ops.minhash import MinHash, estimate_jaccard, jaccard, meeting_probability, shingles
from tests.close import close

SLUG, SEEDS = "corpus-preparation", 150
WORDS = [f"w{i}" for i in range(5000)]


def pair(shared: int, own: int, seed: int) -> tuple[list[str], list[str]]:
    """Two texts of different words with `shared` words in common."""
    words = random.Random(seed).sample(WORDS, shared + 2 * own)
    return words[: shared + own], words[:shared] + words[shared + own :]


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "near-duplicates")
def test_jaccard_is_that_of_sets_of_word_runs() -> None:
    a, b = ("the cat sat on the mat " * 2).split(), ["a", "cat", "sat", "on", "the", "mat", "today"]
    for n in (1, 2, 3, 20):
        runs = [{tuple(t[k : k + n]) for k in range(len(t) - n + 1)} or {tuple(t)} for t in (a, b)]
        expected = len(runs[0] & runs[1]) / len(runs[0] | runs[1])
        assert jaccard(shingles(a, n), shingles(b, n)) == expected
    assert jaccard(shingles([], 5), shingles([], 5)) == 1
    assert len(shingles([], 5)) == 0


@pytest.mark.system(SLUG, "near-duplicates")
@pytest.mark.parametrize(("shared", "own"), [(160, 20), (100, 50), (40, 100)])
def test_the_estimate_is_unbiased_and_pairs_meet_by_the_formula(shared: int, own: int) -> None:
    estimates, met = [], 0
    bands, rows = 8, 4
    for seed in range(SEEDS):
        a, b = (shingles(words, 1) for words in pair(shared, own, seed))
        true = jaccard(a, b)
        assert true == shared / (shared + 2 * own)
        hashes = MinHash(bands, rows, seed)
        signs = hashes.sign(a), hashes.sign(b)
        estimates.append(estimate_jaccard(*signs))
        met += bool(set(hashes.band_keys(signs[0])) & set(hashes.band_keys(signs[1])))
    k = bands * rows
    error = np.sqrt(true * (1 - true) / k / SEEDS)
    assert abs(np.mean(estimates) - true) < 4 * error
    assert np.std(estimates) == pytest.approx(np.sqrt(true * (1 - true) / k), rel=0.25)
    p = meeting_probability(true, bands, rows)
    assert abs(met / SEEDS - p) < 4 * np.sqrt(p * (1 - p) / SEEDS) + 1e-3


def test_a_long_text_is_hashed_in_parts() -> None:
    found, hashes = np.sort(np.random.default_rng(0).choice(2**31 - 1, 10_000, replace=False)), MinHash(4, 4)
    whole = ((hashes.slope * found + hashes.shift) % (2**31 - 1)).min(axis=1)
    assert (hashes.sign(found) == whole).all()


def test_the_formula() -> None:
    close(meeting_probability(0.5, 32, 4), 1 - (1 - 1 / 16) ** 32)
    assert (meeting_probability(1.0, 3, 2), meeting_probability(0.0, 3, 2)) == (1.0, 0.0)
    with pytest.raises(Mistake, match="must be 1 or more"):
        MinHash(0, 4)
