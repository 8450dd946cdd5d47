"""Worked examples of shared-attention-core."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.nn.text_embeddings import TextEmbeddings


def one_hot(i: Inputs) -> Inputs:
    torch.manual_seed(0)
    table = TextEmbeddings(i["vocab"], 1, 1, i["d"], eps=1e-12, dropout=0.0).token
    ids = torch.tensor(i["ids"])
    with torch.no_grad():
        product = torch.eye(i["vocab"])[ids] @ table.weight
        return {"equal": torch.equal(product, table(ids))}


EXAMPLES: dict[str, Compute] = {"MF-31.5.2-onehot": one_hot}

SET_ASIDE: dict[str, str] = {}
