"""Finding documents: encoded apart, and read together with the query; how often the encoder runs for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from descend.contracts import JointMove
from descend.engine.distributed import World
from descend.metrics.retrieval import pairs
from descend.tasks.retrieve import WRONG, MatchTexts, RankCandidates, score_ranking
from descend.theory.retrieval import count_runs
from tests.close import close
from tests.tasks import retrieval_cases
from tests.tasks.split import train


def case(name: str) -> tuple[Any, dict[str, Tensor]]:
    torch.manual_seed(0)
    return retrieval_cases.CASES[name]()


@pytest.mark.system("cross-and-bi-encoder")
@pytest.mark.system("cross-and-bi-encoder", "bi-encoder")
def test_the_other_documents_of_a_step_are_the_wrong_answers() -> None:
    """ℓ written out: of each query over the documents, and of each document over the queries; both documents of
    a query that comes twice are right for it, each by half."""
    task, batch = case("MatchTexts")
    [move] = list(task.moves(batch))
    assert isinstance(move, JointMove)
    vectors = {}
    for what in ("query", "document"):
        rows = []
        for tokens, mask in zip(batch[what], batch[f"{what}_mask"], strict=True):  # one text at a time, no padding
            hidden = task.model(tokens[None, : int(mask.sum())]).hidden
            rows.append(normalize(hidden.mean(1), dim=1)[0])
        vectors[what] = torch.stack(rows)
    scores, key = vectors["query"] @ vectors["document"].T / task.tau, batch["key"]
    total = torch.zeros((), dtype=torch.float64)
    for s in (scores, scores.T):
        for i in range(len(s)):
            right = [j for j in range(len(s)) if key[j] == key[i]]
            total -= log_softmax(s[i], dim=0)[right].mean() / 2
    close(move.value().total(), total / len(scores))


@pytest.mark.system("cross-and-bi-encoder")
def test_the_candidates_of_a_query_compete_beside_what_the_retriever_says() -> None:
    task, batch = case("RankCandidates")
    [move] = list(task.moves(batch))
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(batch["y"])):
        z = torch.stack(
            [task.model(batch["x"][i, j, : (t := int(batch["mask"][i, j].sum()))][None],
                        segments=batch["segments"][i, j, :t][None])[0, 0] for j in range(3)]
        )  # fmt: skip
        total -= log_softmax(z + batch["r"][i], dim=0)[batch["y"][i]]
    close(move.value().total(), total / len(batch["y"]))
    alone = RankCandidates(task.model, trust=0.0)
    close(alone.rank(batch) + batch["r"], task.rank(batch))


@pytest.mark.system("cross-and-bi-encoder", "re-ranked")
@pytest.mark.system("rag", "recall")
def test_recall_and_rank_before_and_after() -> None:
    """Scores by hand: what was not retrieved cannot be right, whatever the ranker says."""
    task, batch = case("RankCandidates")
    z = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 5.0]], dtype=torch.float64)
    batch = {name: tensor[:3] for name, tensor in batch.items()}
    batch |= {"r": torch.tensor([[2.0, 1.0, 0.0]] * 3, dtype=torch.float64), "y": torch.tensor([1, 2, WRONG])}
    task.rank = lambda batch: z + batch["r"]
    found = task.score(batch)
    assert found["before"].tolist() == [0, 0, 0]
    assert found["recall@1"].tolist() == [1, 0, 0]
    assert found["retrieved"].tolist() == [1, 1, 0]
    close(found["mrr"], torch.tensor([1.0, 1 / 3, 0.0]))
    scores = torch.tensor([[0.9, 0.1, 0.0], [0.3, 0.2, 0.1], [0.0, 0.5, 0.1]])
    told = score_ranking(scores, pairs(3))
    close(
        torch.tensor([told["recall@1"], told["recall@10"], told["mrr"]]), torch.tensor([1 / 3, 1, (1 + 0.5 + 0.5) / 3])
    )


@pytest.mark.system("cross-and-bi-encoder", "encoder-runs")
def test_the_runs_of_the_encoder_are_those_of_the_formula() -> None:
    """Rows that go through the model: every query and document once, or every pair."""
    q, d = 4, 6
    counted: list[int] = []
    count = lambda module, given, output: counted.append(len(given[0]))
    task, batch = case("MatchTexts")
    task.model.encoder.register_forward_hook(count)
    task.encode({k: v[:q] for k, v in batch.items()}, "query")
    task.encode({k: v[:d] for k, v in batch.items()}, "document")
    together, joined = case("RankCandidates")
    assert isinstance(task, MatchTexts)
    runs = count_runs(q, d)
    assert sum(counted) == runs.apart == 10
    counted.clear()
    together.model.encoder.register_forward_hook(count)
    every_pair = {name: joined[name][:1, :1].expand(q, d, -1) for name in ("x", "mask", "segments")}
    together.rank({**every_pair, "r": torch.zeros(q, d)})
    assert sum(counted) == runs.together == 24


@pytest.mark.system("cross-and-bi-encoder", "bi-encoder")
def test_a_step_in_micro_batches_has_all_documents_as_wrong_answers() -> None:
    (whole, _), (parts, _) = (train("MatchTexts", accumulate, World()) for accumulate in (1, 4))
    for name, tensor in whole.items():
        close(parts[name], tensor)
