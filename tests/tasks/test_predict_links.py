"""Links: pairs are numbered through, ranked by scikit-learn's AUC, and held-out links carry no message."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from descend.data.graphs.source import LinkSource
from descend.data.streams.batches import slice_examples, take_examples
from descend.engine.evaluation import score_set
from descend.models import gcn
from descend.tasks.predict_links import PredictLinks
from tests.close import close
from tests.tasks.graph_cases import with_pairs


def task() -> PredictLinks:
    torch.manual_seed(0)
    return PredictLinks(gcn.GCNForEdges(replace(gcn.TINY, outputs=1)).eval())


def test_pairs_of_several_graphs_are_those_of_each_alone() -> None:
    found, batch = task(), with_pairs()
    counts = torch.bincount(batch["pairs_owner"], minlength=8)
    together = found.logits(batch).split(counts.tolist())
    for g, z in enumerate(together):
        if len(z):
            close(found.logits(take_examples(batch, torch.tensor([g]))), z)


def test_scores_are_those_of_scikit_learn() -> None:
    found, batch = task(), with_pairs()
    z, y = found.logits(batch).detach().numpy(), batch["y"].numpy()
    scores = score_set(found, [slice_examples(batch, 0, 4), slice_examples(batch, 4, 8)])
    close(scores["auc"], roc_auc_score(y, z))
    close(scores["average_precision"], average_precision_score(y, z))
    close(scores["accuracy"], ((z > 0) == y).mean())
    assert math.isnan(score_set(found, [take_examples(batch, torch.tensor([0]))])["auc"])


def test_no_message_runs_along_a_held_out_link() -> None:
    splits = LinkSource(embedded="karate", valid=0.1, test=0.2).read()
    edges = set(map(tuple, splits.graph.edges.tolist()))
    for part in (splits.valid, splits.test):
        assert not edges & set(map(tuple, part.positive.tolist()))
        assert not edges & set(map(tuple, part.positive.flip(1).tolist()))
    assert splits.batch("valid")["edges"] is splits.batch("test")["edges"]


@pytest.mark.parametrize("swap", [False, True])
def test_multiplied_ends_do_not_know_a_direction(swap: bool) -> None:
    found, batch = task(), with_pairs()
    pairs = batch["pairs"].flip(1) if swap else batch["pairs"]
    close(found.logits({**batch, "pairs": pairs}), found.logits(batch))
