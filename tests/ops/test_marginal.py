"""Answers weighed by several documents: both forms against a loop, and as distributions over all answers."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from descend.errors import Mistake
from descend.ops.marginal import marginal_sequence, marginal_steps, marginal_token
from tests.close import close


def language(k: int = 3, v: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores of k documents (1, k), the first token's log p (k, v) and the second's, given the first (k, v, v)."""
    torch.manual_seed(0)
    shapes = ((k, v), (k, v, v))
    first, second = (torch.randn(shape, dtype=torch.float64).log_softmax(-1) for shape in shapes)
    return torch.randn(1, k, dtype=torch.float64), first, second


@pytest.mark.system("rag")
@pytest.mark.system("rag", "marginal")
def test_both_sums_are_the_printed_ones_and_both_are_distributions_over_all_answers() -> None:
    scores, first, second = language()
    weight = [math.exp(s) / sum(math.exp(t) for t in scores[0].tolist()) for s in scores[0].tolist()]
    total = {"sequence": 0.0, "token": 0.0}
    for a, b in product(range(4), repeat=2):
        log_p = torch.stack([first[:, a], second[:, a, b]], dim=1)[None]
        p = log_p[0].exp().tolist()
        by_hand = {
            "sequence": sum(w * p1 * p2 for w, (p1, p2) in zip(weight, p, strict=True)),
            "token": math.prod(sum(w * row[i] for w, row in zip(weight, p, strict=True)) for i in range(2)),
        }
        found = {"sequence": marginal_sequence(scores, log_p).exp(), "token": marginal_token(scores, log_p).exp()}
        for name in total:
            close(found[name], torch.tensor([by_hand[name]], dtype=torch.float64))
            total[name] += float(found[name])
    close(torch.tensor([total["sequence"], total["token"]]), torch.ones(2))


@pytest.mark.system("rag", "marginal")
def test_of_one_token_or_one_document_both_forms_are_the_same_else_not() -> None:
    scores, first, second = language()
    one = first[None, :, :1]
    close(marginal_sequence(scores, one), marginal_token(scores, one))
    close(marginal_steps(scores, first[None]).exp().sum(1), torch.ones(1, dtype=torch.float64))
    log_p = torch.stack([first[:, 0], second[:, 0, 1]], dim=1)[None]
    close(marginal_sequence(scores[:, :1], log_p[:, :1]), marginal_token(scores[:, :1], log_p[:, :1]))
    assert abs(float(marginal_sequence(scores, log_p) - marginal_token(scores, log_p))) > 1e-3


@pytest.mark.system("rag", "marginal")
def test_the_loss_trains_retriever_and_generator() -> None:
    """∂ log p / ∂ s_z = p(z | x, y) − p(z | x): a document that makes the answer likely is retrieved more."""
    scores, first, second = language()
    scores.requires_grad_()
    log_p = torch.stack([first[:, 0], second[:, 0, 1]], dim=1)[None].requires_grad_()
    marginal_sequence(scores, log_p).sum().backward()
    assert scores.grad is not None
    prior = scores.detach().softmax(1)
    posterior = (scores.detach().log_softmax(1) + log_p.detach().sum(2)).softmax(1)
    close(scores.grad, posterior - prior)
    assert log_p.grad is not None
    close(log_p.grad, posterior[:, :, None].expand_as(log_p))


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Mistake, match="give \\(b, documents\\)"):
        marginal_token(torch.zeros(1, 3), torch.zeros(1, 2, 5))
