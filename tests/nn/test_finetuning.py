"""GPT-1's fine-tuning: rows, symmetry, a softmax over answers, and a tiny model that learns each task."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.losses.language import causal_lm_loss
from descend.models.openai_gpt import TINY, OpenAIGPT
from descend.nn.finetuning import Readout, last_states
from descend.text.transformations import Marks

MARKS = Marks(start=58, between=59, end=60)


@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "inputs")
def test_rows() -> None:
    assert MARKS.classification([1, 2]) == [58, 1, 2, 60]
    assert MARKS.entailment([1, 2], [3]) == [58, 1, 2, 59, 3, 60]
    assert MARKS.similarity([1], [2, 3]) == ([58, 1, 59, 2, 3, 60], [58, 2, 3, 59, 1, 60])
    assert MARKS.answers([1], [2], [[3], [4, 5]]) == [[58, 1, 2, 59, 3, 60], [58, 1, 2, 59, 4, 5, 60]]


def states(model: OpenAIGPT, rows: list[list[int]]) -> Tensor:
    lengths = torch.tensor([len(r) for r in rows])
    padded = torch.tensor([r + [0] * (int(lengths.max()) - len(r)) for r in rows])
    return last_states(model.hidden(padded), lengths)


@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "similarity")
def test_exchanging_the_texts_changes_nothing_and_padding_neither() -> None:
    torch.manual_seed(0)
    model, head = OpenAIGPT(TINY), Readout(32, 1)
    a, b = MARKS.similarity([1, 2, 3], [4, 5])
    there = head.similarity(states(model, [a]), states(model, [b]))
    back = head.similarity(states(model, [b]), states(model, [a]))
    assert torch.equal(there, back)
    alone, padded = states(model, [[58, 7, 60]]), states(model, [[58, 7, 60], [58, 1, 2, 3, 60]])
    assert torch.allclose(alone[0], padded[0], atol=1e-6)
    assert not torch.allclose(states(model, [a]), states(model, [b]), atol=1e-3)


@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "answers", "fine-tuned")
@pytest.mark.parametrize("task", ["entailment", "similarity", "answers"])
def test_a_tiny_model_learns_each_task(task: str) -> None:
    """Is the second text the first one / do both begin alike / which answer is the question's token?"""
    torch.manual_seed(0)
    model, g = OpenAIGPT(TINY), torch.Generator().manual_seed(0)
    head = Readout(32, 2 if task == "entailment" else 1)
    texts = torch.randint(20, (24, 2, 2), generator=g).tolist()
    y = torch.arange(24) % 2
    pairs = [(a, a if same else b) for (a, b), same in zip(texts, y.tolist(), strict=True)]

    def loss() -> Tensor:
        if task == "answers":
            rows = [r for (a, b), first in zip(texts, y.tolist(), strict=True)
                    for r in MARKS.answers([], a, [b, a] if first else [a, b])]  # fmt: skip
            logits = head.answers(states(model, rows).view(24, 2, -1))
            assert torch.allclose(logits.softmax(-1).sum(-1), torch.ones(24))
            return F.cross_entropy(logits, y)
        rows = [MARKS.entailment(a, b) for a, b in pairs]
        if task == "entailment":
            batch = torch.tensor(rows)
            extra = 0.5 * causal_lm_loss(model(batch[:, :-1]), batch[:, 1:])
            return F.cross_entropy(head(states(model, rows)), y) + extra - extra.detach()
        turned = [MARKS.entailment(b, a) for a, b in pairs]
        scores = head.similarity(states(model, rows), states(model, turned))[:, 0]
        return F.binary_cross_entropy_with_logits(scores, y.float())

    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=3e-3)
    first = loss().item()
    for _ in range(40):
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
    assert found < 0.3 * first
