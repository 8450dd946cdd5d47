"""The three tables of BERT's input: their sum, one-hot products, and what a segment changes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.text_embeddings import TextEmbeddings
from tests.close import close


def embeddings() -> TextEmbeddings:
    torch.manual_seed(0)
    return TextEmbeddings(13, 8, 2, 6, 1e-12, 0.0).eval()


@pytest.mark.system("bert-input")
@pytest.mark.system("bert-input", "sum", "segment")
@pytest.mark.system("shared-attention-core")
def test_the_sum_of_three_one_hot_products() -> None:
    e = embeddings()
    e.norm = nn.Identity()  # the books' form
    tokens, segments = torch.tensor([[3, 0, 12], [5, 5, 1]]), torch.tensor([[0, 0, 1], [0, 1, 1]])
    places = torch.arange(3)
    with torch.no_grad():
        parts = (torch.eye(13)[tokens] @ e.token.weight, torch.eye(8)[places] @ e.position.weight,
                 torch.eye(2)[segments] @ e.segment.weight)  # fmt: skip
        close(e(tokens, places, segments), parts[0] + parts[1] + parts[2])
        other = e(tokens, places, 1 - segments) - e(tokens, places, segments)
        moved = (e.segment.weight[1] - e.segment.weight[0]) * (1 - 2 * segments)[..., None]
        close(other, moved)


@pytest.mark.system("bert-input")
@pytest.mark.system("bert-input", "released")
def test_released_form_is_normalised_and_one_text_is_segment_0() -> None:
    e, tokens, places = embeddings(), torch.tensor([[3, 0, 12]]), torch.arange(3)
    with torch.no_grad():
        found = e(tokens, places)
        close(found, e(tokens, places, torch.zeros_like(tokens)))
        close(found.mean(-1) + 1, torch.ones(1, 3))
        close(found.var(-1, unbiased=False), torch.ones(1, 3))
