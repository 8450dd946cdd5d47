"""A cross-encoder behind a search: it reads the question together with each passage found, and ranks them anew.

    s_j = z_j + a r_j        z_j of the pair, r_j the search's scores made comparable among the candidates, a as trained

Systems: cross-and-bi-encoder, rag
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import field, read_json
from descend.inference.passage_index import Found
from descend.inference.trained import BATCH, Trained, load_trained
from descend.kinds.retrieve import RANKER, compare_within, encode_all, join_pair
from descend.tasks.fine_tune import run_encoder
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reranker:
    """A trained cross-encoder, how far it trusts the search, and how many candidates it was trained on."""

    trained: Trained
    inputs: Inputs
    trust: float
    candidates: int

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Reranker:
        """From the run of a cross-encoder."""
        trained = load_trained(run, checkpoint)
        where = trained.folder / RANKER
        if not where.exists():
            raise Mistake(
                f"{run} holds a {trained.kind} and no {RANKER}: it was not trained to rank; "
                f"give a run of descend train cross-encoder-pydoc"
            )
        said, inputs = read_json(where), Inputs.of(Tokenizer.load(trained.folder), trained.model.longest)
        return cls(trained, inputs, field(said, "trust", float, where), field(said, "candidates", int, where))

    def rank(self, question: str, found: Sequence[Found]) -> list[Found]:
        """The same passages, best first, with the scores s; of equals the one that was before the other."""
        if not found:
            return []
        r = compare_within(torch.tensor([[one.score for one in found]]))[0]
        s = self.read_pairs(question, [one.passage.text for one in found]) + self.trust * r
        order = s.sort(descending=True, stable=True).indices.tolist()
        return [replace(found[j], score=float(s[j])) for j in order]

    @torch.no_grad()
    def read_pairs(self, question: str, texts: Sequence[str]) -> Tensor:
        """z of the question with each text (n)"""
        query, *documents = encode_all(self.inputs, [question, *texts])
        joined = [join_pair(self.inputs, query, document, self.inputs.longest) for document in documents]
        rows = []
        for start in range(0, len(joined), BATCH):
            batch = self.inputs.batch(joined[start : start + BATCH])
            moved = {name: x.to(self.trained.device) for name, x in batch.items()}
            rows.append(run_encoder(self.trained.model, moved)[:, 0].float().cpu())
        return torch.cat(rows)
