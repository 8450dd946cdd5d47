"""The evidence of words is scikit-learn's multinomial naive Bayes on which words a text has."""

from __future__ import annotations

import torch
from sklearn.naive_bayes import MultinomialNB
from torch import nn

from descend.text.word_evidence import begin_with, word_evidence

X = torch.tensor([[1, 2, 2, 0], [2, 3, 0, 0], [4, 4, 1, 3], [4, 0, 0, 0], [3, 1, 0, 0]])
Y = torch.tensor([0, 0, 1, 2, 1])


def test_log_odds() -> None:
    counts = torch.zeros(5, 5).scatter_(1, X, 1.0)
    counts[:, 0] = 0  # scikit-learn knows no padding
    log_p = torch.from_numpy(MultinomialNB(alpha=1.0).fit(counts.numpy(), Y.numpy()).feature_log_prob_).T.float()
    e = word_evidence(X, Y, 5, 3)
    apart = lambda z: z[1:, :1] - z[1:, 1:]  # e and log p differ by a number for each word, and by the padding's share
    assert (apart(e) - apart(log_p)).std(dim=0).max() < 1e-6
    assert e.sum(dim=1).abs().max() < 1e-6
    assert e[0].abs().sum() == 0


def test_vectors_begin_with_it() -> None:
    torch.manual_seed(0)
    embed = nn.Embedding(5, 64, padding_idx=0)
    before, e = embed.weight.detach().clone(), word_evidence(X, Y, 5, 3)
    begin_with(embed.weight, e, 2.0)
    moved = embed.weight.detach() - before
    assert torch.linalg.matrix_rank(moved) == 2, "a plane: the evidence of three classes sums to 0"
    assert moved[0].abs().sum() == 0
    assert embed.weight.requires_grad
