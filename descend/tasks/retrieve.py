"""Queries and the documents that answer them: encoded apart (bi-encoder), or read together (cross-encoder).

    bi-encoder      s_ij = cos(f(q_i), f(d_j)),  f(x) the mean of the last vectors over the real tokens
                    ℓ_i = ½ (−log softmax_j(s_ij/τ)_i − log softmax_j(s_ji/τ)_i)    the step's other documents are wrong
    cross-encoder   z_ij = U pool([CLS] q_i [SEP] d_j [SEP]) + c
                    ℓ_i = −log softmax_j(z_ij + a r_ij)_y,  j over the candidates of query i, d_y the right one

r_ij is the score that the retriever gave a candidate, made comparable within the query: z corrects it, so that training
starts at the retriever's ranking. Q queries and D documents cost Q + D runs of a bi-encoder, whose documents are
encoded once, and Q · D of a cross-encoder: so one retrieves and the other ranks the few that were found (DLD 6.14).

recall@k: the right document is among the k best.  MRR: the mean of 1 / (its rank). Pairs with the same query (`key`)
are both right for it.

Systems: cross-and-bi-encoder, sentence-similarity
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.contracts import Batch, EncodesTokens, JointMove, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.contrastive import grouped_n_pair
from descend.metrics.retrieval import mean_reciprocal_rank, pairs, recall
from descend.nn.pooling import sentence_vector
from descend.tasks.fine_tune import run_encoder

WRONG = -1  # y where the right document is not among the candidates


class MatchTexts(Task):
    """query, query_mask (b, t), document, document_mask (b, s) and key (b), a number for each different query."""

    evidence = ("queries", "documents")

    def __init__(self, model: nn.Module, tau: float = 0.05):
        super().__init__()
        self.model, self.tau = model, tau

    def encode(self, batch: Batch, what: str) -> Tensor:
        """f of the queries or of the documents (b, d), of length 1."""
        model, mask = self.model, batch[f"{what}_mask"]
        assert isinstance(model, EncodesTokens)
        return sentence_vector(model.hidden(batch[what], mask), mask)

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        def codes() -> dict[str, Tensor]:
            return {**{what: self.encode(batch, what) for what in ("query", "document")}, "key": batch["key"]}

        yield JointMove("model", codes, self.compare)

    def compare(self, codes: dict[str, Tensor]) -> Tensor:
        """The mean of ℓ_i over all pairs of a step."""
        scores = codes["query"] @ codes["document"].T / self.tau
        return grouped_n_pair(scores, codes["key"]).mean()

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"queries": self.encode(batch, "query"), "documents": self.encode(batch, "document")}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """Every query against all documents of the set."""
        scores = normalize(evidence["queries"], dim=1) @ normalize(evidence["documents"], dim=1).T
        return {**means, **score_ranking(scores, pairs(len(scores)))}


class RankCandidates(Task):
    """x, mask, segments (b, m, t): a query with each of its m candidates; r (b, m); y (b), the right one, or none."""

    def __init__(self, model: nn.Module, trust: float = 1.0):
        super().__init__()
        self.model, self.trust = model, trust

    def rank(self, batch: Batch) -> Tensor:
        """z + a r (b, m)"""
        flat = {name: batch[name].flatten(0, 1) for name in ("x", "mask", "segments")}
        return run_encoder(self.model, flat)[:, 0].view_as(batch["r"]) + self.trust * batch["r"]

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: cross_entropy(self.rank(batch), batch["y"]).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """1 where the right candidate comes first, before and after; what was not retrieved cannot be right."""
        y, after = batch["y"], self.rank(batch)
        told = {
            "recall@1": (after.argmax(1) == y).float(),
            "before": (batch["r"].argmax(1) == y).float(),
            "retrieved": (y != WRONG).float(),
        }
        place = (after > after.gather(1, y.clamp(min=0)[:, None])).sum(1) + 1
        return {**told, "mrr": torch.where(y == WRONG, 0.0, 1 / place.float())}


def score_ranking(scores: Tensor, belongs: Tensor) -> dict[str, float]:
    """recall@1, recall@10 and MRR of scores (queries, documents)."""
    most = scores.shape[1]
    found = {f"recall@{k}": recall(scores, belongs, min(k, most)) for k in (1, 10)}
    return {**found, "mrr": mean_reciprocal_rank(scores, belongs)}
