"""What an answer's probability is when any of several documents may have been the right one: sum over them.

    p(z | x) = softmax_z(s(x, z))                                            over the k retrieved documents
    sequence      p(y | x) = Σ_z p(z | x) Π_i p(y_i | x, z, y_<i)            one document for the whole answer
    token         p(y | x) = Π_i Σ_z p(z | x) p(y_i | x, z, y_<i)            another one may serve for every token

S940-DLD.163 names only the sum over z; the two forms are RAG-Sequence and RAG-Token of Lewis et al. (2020). For an
answer of one token, and for one document, they are the same. Both are distributions: over all y they sum to 1. The loss
−log p trains generator and retriever (through s) together.

Systems: rag
"""

from __future__ import annotations

from torch import Tensor

from descend.errors import Mistake


def marginal_sequence(scores: Tensor, log_p: Tensor) -> Tensor:
    """log p(y | x) (b): scores s (b, k), log p(y_i | x, z, y_<i) (b, k, t)"""
    check(scores, log_p)
    return (scores.log_softmax(1) + log_p.sum(2)).logsumexp(1)


def marginal_token(scores: Tensor, log_p: Tensor) -> Tensor:
    """The same, every token summed over the documents by itself."""
    check(scores, log_p)
    return marginal_steps(scores, log_p).sum(1)


def marginal_steps(scores: Tensor, log_p: Tensor) -> Tensor:
    """log Σ_z p(z | x) p(y_i | x, z, y_<i) of each token (b, t); with log p (b, k, v), of every next token (b, v)."""
    return (scores.log_softmax(1)[:, :, None] + log_p).logsumexp(1)


def check(scores: Tensor, log_p: Tensor) -> None:
    if scores.dim() != 2 or log_p.shape[:2] != scores.shape:
        raise Mistake(
            f"scores {tuple(scores.shape)} and log p {tuple(log_p.shape)}: give (b, documents) and (b, documents, t)"
        )
