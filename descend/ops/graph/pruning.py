"""Edges that are found by pruning: from the complete graph, each pair of nodes is scored, and kept above a threshold.

    pairs     all {u, v} of n nodes, n (n − 1) / 2
    score     s_uv = σ(z_uv) in (0, 1), z the log-odds that there is an edge
    kept      s_uv > t, which is z_uv > log(t / (1 − t)): t = 0 keeps all pairs, t = 1 none
    relation  of a kept pair: the most likely one. With z_r for relation r, z_0 for none: z_uv = log Σ_r e^{z_r} − z_0

Systems: graph-task-labs
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.graph.structure import Links


def complete_pairs(links: Links) -> Tensor:
    """Each pair of two nodes of a graph, once (m, 2)."""
    complete = links.complete
    once = complete.source < complete.target
    return torch.stack([complete.source[once], complete.target[once]], dim=1)


def find_log_odds(logits: Tensor) -> Tensor:
    """z (m) from the logits of no relation and of each relation (m, 1 + r)."""
    return logits[:, 1:].logsumexp(dim=1) - logits[:, 0]


def prune(log_odds: Tensor, threshold: float) -> Tensor:
    """Which pairs are kept (m)."""
    return log_odds > torch.tensor(threshold, dtype=torch.float64).logit()


def name_relations(logits: Tensor, kept: Tensor) -> Tensor:
    """The relation 1..r of each kept pair, 0 for the others (m)."""
    return torch.where(kept, logits[:, 1:].argmax(dim=1) + 1, 0)
