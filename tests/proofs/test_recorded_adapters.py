"""What was recorded of adapters and of retrieval: labs on three seeds, and the figures of search."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from descend.kinds.adapters import Lora
from descend.models import make_model
from descend.models.llama import TINY
from descend.sampling.generate import generate
from tests.proofs.test_recorded_labs import require_support
from tests.proofs.test_recorded_results import read

LABS = [
    pytest.param("lora-rank", marks=pytest.mark.system("lora", "saturates", "full-tuning-share", "low-rank-updates")),
    pytest.param(
        "tuning-methods",
        marks=[
            pytest.mark.system("bottleneck-adapters", "overhead"),
            pytest.mark.system("fine-tuning-recommender", "benchmark"),
            pytest.mark.system("prefix-tuning", "beside-lora"),
        ],
    ),
    pytest.param("retrieved-facts", marks=pytest.mark.system("rag", "answers")),
]


@pytest.mark.parametrize("lab", LABS)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    require_support(lab)


@pytest.mark.system("lora", "decoding")
def test_decoding_with_an_adapter_is_that_of_the_merged_model_at_the_speed_of_the_base() -> None:
    """The numbers here; the time of a token, at most a tenth above that of the base, in the lab."""
    torch.manual_seed(0)
    model: Any = Lora(2).apply(make_model(TINY)).eval()
    prompts = [[1, 2, 3, 4], [5, 6]]
    plain = generate(model.decoder(), prompts, 8)
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter.add_(torch.randn_like(parameter))
    written = generate(model.decoder(), prompts, 8)
    assert written != plain
    assert written == generate(model.merged().decoder(), prompts, 8)
    assert type(model.decoder()) is type(model.base.decoder())
    require_support("tuning-methods")


@pytest.mark.system("cross-and-bi-encoder", "figure", "cross-encoder")
def test_vectors_find_more_than_keywords_and_re_ranking_more_than_both() -> None:
    """Summaries of the standard library's docstrings and their bodies, on every seed: the right one comes first."""
    keywords, vectors, ranked = (
        read(f"docstring search, recall@1 {by}") for by in ("by BM25", "by the bi-encoder", "re-ranked")
    )
    for one, two, three in zip(keywords, vectors, ranked, strict=True):
        assert two >= one + 0.10
        assert three > two
