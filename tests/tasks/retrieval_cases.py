"""Small cases of the tasks that find documents, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Task
from descend.models.bert import Bert, BertConfig, BertForSequenceClassification
from descend.tasks.retrieve import MatchTexts, RankCandidates
from descend.weights.labels import Labels

B, CANDIDATES, LONGEST = 8, 3, 7
TINY = BertConfig(vocab=13, context=8, width=8, depth=1, heads=2, hidden=12, dropout=0.0)


def texts(*shape: int) -> tuple[Tensor, Tensor]:
    """Tokens and mask of texts of different lengths."""
    tokens = torch.randint(1, TINY.vocab, (*shape, LONGEST))
    mask = torch.arange(LONGEST) < torch.randint(2, LONGEST + 1, (*shape, 1))
    return tokens.masked_fill(~mask, 0), mask


def encoder() -> nn.Module:
    """Its pooler has no part in the mean over the tokens."""
    found = Bert(TINY).double()
    for name, parameter in found.named_parameters():
        parameter.requires_grad_(not name.startswith("pooler"))
    return found


def match() -> tuple[Task, Batch]:
    """Two of the pairs have the same query."""
    (query, query_mask), (document, document_mask) = texts(B), texts(B)
    query[5], query_mask[5] = query[2], query_mask[2]
    key = torch.tensor([0, 1, 2, 3, 4, 2, 5, 6])
    batch = {"query": query, "query_mask": query_mask, "document": document, "document_mask": document_mask}
    return MatchTexts(encoder(), 0.3), {**batch, "key": key}


def rank() -> tuple[Task, Batch]:
    x, mask = texts(B, CANDIDATES)
    segments = (torch.arange(LONGEST) > 2).long().expand_as(x).contiguous()
    model = BertForSequenceClassification(BertConfig(**{**vars(TINY), "labels": Labels(("relevant",))})).double()
    r, y = torch.randn(B, CANDIDATES, dtype=torch.float64), torch.randint(CANDIDATES, (B,))
    return RankCandidates(model), {"x": x, "mask": mask, "segments": segments, "r": r, "y": y}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {"MatchTexts": match, "RankCandidates": rank}
