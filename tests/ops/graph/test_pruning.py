"""Pruning from the complete graph."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from descend.ops.graph.pruning import complete_pairs, find_log_odds, name_relations, prune
from tests.close import close
from tests.ops.graph.graphs import join

pytestmark = pytest.mark.system("graph-task-labs")


@pytest.mark.system("graph-task-labs", "pruning")
def test_the_threshold_0_keeps_all_pairs_and_1_none() -> None:
    """n (n − 1) / 2 pairs of each graph; in between, what has a score above it."""
    links = join([nx.empty_graph(4), nx.path_graph(1), nx.path_graph(6)])
    pairs = complete_pairs(links)
    assert len(pairs) == 6 + 0 + 15
    assert (links.owner[pairs[:, 0]] == links.owner[pairs[:, 1]]).all()
    assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 21
    z = 40 * torch.randn(21, generator=torch.Generator().manual_seed(0))  # scores that round to 0 and 1, too
    assert prune(z, 0.0).all()
    assert not prune(z, 1.0).any()
    for threshold in (0.1, 0.5, 0.9):
        assert torch.equal(prune(z, threshold), z.double().sigmoid() > threshold)


def test_scores_and_relations() -> None:
    """σ(z) is the probability of any relation; the most likely one is named where a pair is kept."""
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z, p = find_log_odds(logits), logits.softmax(1)
    close(z.sigmoid(), 1 - p[:, 0])
    kept = prune(z, 0.5)
    named = name_relations(logits, kept)
    assert torch.equal(named[kept], p[kept][:, 1:].argmax(1) + 1)
    assert not named[~kept].any()
