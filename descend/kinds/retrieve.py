"""Recipes of search: a bi-encoder that finds documents by their vectors, a cross-encoder that ranks what was found.

Both learn from queries and the documents that answer them (`descend.data.text.docstrings`), from random weights or from
a trained encoder (`--model.path`). The candidates of the cross-encoder are those that BM25 finds among the documents of
the same part. What the folder holds opens as any encoder does: `descend embed RUN`, `descend index DOCS --by RUN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.classic.bm25 import BM25
from descend.contracts import Batch
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.data.text.docstrings import Match, QueryDocuments, read_matches
from descend.engine.parts import Parts
from descend.files import write_json
from descend.kinds.encoder import EncoderSize, build_encoder
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.metrics.retrieval import pairs
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear
from descend.ranges import Count, NonNegative, Positive
from descend.tasks.retrieve import WRONG, MatchTexts, RankCandidates, score_ranking
from descend.text.inputs import Encoded, Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.retrieval import show_ranks
from descend.weights.labels import Labels

RANKER = "ranker.json"  # how far a cross-encoder trusts the retriever, and how many candidates it was trained on
SHAPE = ("x", "mask", "segments")


@dataclass(frozen=True)
class RetrievalRecipe(Recipe):
    """What both kinds have in common."""

    model: EncoderSize = field(default_factory=EncoderSize)
    data: QueryDocuments = field(default_factory=QueryDocuments)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Linear)
    package: ClassVar[str] = "python"
    head: ClassVar[str] = ""

    def read(self) -> tuple[dict[str, list[Match]], Any, Inputs, str]:
        """The parts of the data, the model, the form of its inputs, and what it started from."""
        parts = self.data.read()
        torch.manual_seed(self.loop.seed)
        texts = [text for match in parts["train"] for text in (match.query, match.document)]
        learn = lambda: Tokenizer.bpe("\n".join(texts), self.data.vocab)
        return parts, *build_encoder(self.model, self.head, Labels(("relevant",)), learn)

    def tell(self, parts: dict[str, list[Match]], origin: str, vocab: int, batch: int) -> dict[str, Any]:
        """What a run says of its data, with the keyword search that it is to be better than."""
        told = score_ranking(score_keywords(parts["valid"]), pairs(len(parts["valid"])))
        return {
            "data": self.data.path or "docstrings of Python's library, summary -> body",
            "started from": origin,
            **{f"{name} pairs": len(matches) for name, matches in parts.items()},
            "BM25 on validation": ", ".join(f"{name} {value:.3f}" for name, value in told.items()),
            "vocabulary": vocab,
            **describe_batch(self.loop, batch),
        }


@dataclass(frozen=True)
class BiEncoderRecipe(RetrievalRecipe):
    """Queries and documents as vectors. A whole batch is one set of wrong documents: --accumulate saves memory."""

    tau: Positive = 0.05
    """Temperature: cosines are divided by it."""
    head: ClassVar[str] = "Model"

    def build(self) -> Parts:
        parts, model, inputs, origin = self.read()
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not name.startswith("pooler"))  # the mean is taken instead
        if not self.model.path:
            let_words_lead(model)
        more = self.data.more(parts)
        train = self.arrays(parts["train"] + more, inputs)
        loop, batch = self.loop, fit_batch(self.loop, len(train["key"]))
        valid = self.arrays(parts["valid"], inputs)
        return Parts(
            task=MatchTexts(model, self.tau),
            model=model,
            stream=Shuffled(train, micro_batch(loop, batch), loop.seed, *process()),
            valid=InOrder(valid, 64),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=batch,
            facts=self.tell(parts, origin, model.config.vocab, batch)
            | ({"pairs with code": len(more)} if more else {}),
            save_extra=inputs.tokenizer.save,
            exhibits=lambda: show_ranks(encode_part(model, valid), parts["valid"], score_keywords(parts["valid"])),
        )

    def arrays(self, matches: Sequence[Match], inputs: Inputs) -> dict[str, Tensor]:
        """Queries and documents, cut to --data.longest tokens."""
        number = {query: i for i, query in enumerate(dict.fromkeys(match.query for match in matches))}
        found = {"key": torch.tensor([number[match.query] for match in matches])}
        for what in ("query", "document"):
            texts, most = [getattr(match, what) for match in matches], self.longest(inputs, what) - 2
            encoded = inputs.batch([inputs.join(ids[:most]) for ids in encode_all(inputs, texts)])
            found |= {what: encoded["x"], f"{what}_mask": encoded["mask"]}
        return found

    def longest(self, inputs: Inputs, what: str) -> int:
        """Tokens of a document; a query may have half as many."""
        most = min(inputs.longest, self.data.longest)
        return most if what == "document" else max(most // 2, 3)

    def test(self) -> Iterable[Batch]:
        """The test pairs: every query against all test documents."""
        parts, _, inputs, _ = self.read()
        return InOrder(self.arrays(parts["test"], inputs), 64)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """The pairs of a file."""
        inputs = Inputs.of(Tokenizer.load(folder), min(self.model.context, model.longest))
        return Judged(MatchTexts(model, self.tau), InOrder(self.arrays(read_matches(Path(path)), inputs), 64))


@dataclass(frozen=True)
class CrossEncoderRecipe(RetrievalRecipe):
    """Query and document read together; ranks what BM25 found."""

    candidates: Count = 10
    """Documents that are ranked for each query; in training the right one is always among them."""
    trust: NonNegative = 1.0
    """a, how far the retriever's score counts beside the model's; 0: not at all."""
    head: ClassVar[str] = "ForSequenceClassification"

    def build(self) -> Parts:
        parts, model, inputs, origin = self.read()
        loop, batch = self.loop, fit_batch(self.loop, len(parts["train"]))
        train = self.arrays(parts["train"], inputs, taught=True)
        return Parts(
            task=RankCandidates(model, self.trust),
            model=model,
            stream=Shuffled(train, micro_batch(loop, batch), loop.seed, *process()),
            valid=InOrder(self.arrays(parts["valid"], inputs, taught=False), 16),
            optims={"model": self.optim},
            unit="queries",
            units_per_batch=batch,
            facts=self.tell(parts, origin, model.config.vocab, batch) | {"candidates": self.candidates},
            save_extra=lambda folder: self.save(folder, inputs.tokenizer),
        )

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """The tokenizer, the trust and the number of candidates, beside the weights."""
        tokenizer.save(folder)
        write_json(Path(folder) / RANKER, {"trust": self.trust, "candidates": self.candidates})

    def arrays(self, matches: Sequence[Match], inputs: Inputs, taught: bool) -> dict[str, Tensor]:
        """Each query with its candidates. Where it is taught, the right document takes the place of the last one if it
        was not found."""
        scores, m = score_keywords(matches), min(self.candidates, len(matches))
        chosen = scores.topk(m, dim=1).indices
        right = torch.arange(len(matches))[:, None]
        if taught:
            missing = ~(chosen == right).any(1)
            chosen[missing, -1] = right[missing, 0]
        hit = chosen == right
        y = torch.where(hit.any(1), hit.float().argmax(1), WRONG)
        queries, documents = (encode_all(inputs, [m[side] for m in matches]) for side in (0, 1))
        room = min(inputs.longest, self.data.longest)
        rows = chosen.tolist()
        joined = [join_pair(inputs, queries[i], documents[j], room) for i, row in enumerate(rows) for j in row]
        batch = inputs.batch(joined)
        shaped = {name: batch[name].unflatten(0, (len(matches), m)) for name in SHAPE}
        return {**shaped, "r": compare_within(scores.gather(1, chosen)), "y": y}

    def test(self) -> Iterable[Batch]:
        """The test queries, each with what BM25 finds among the test documents."""
        parts, _, inputs, _ = self.read()
        return InOrder(self.arrays(parts["test"], inputs, taught=False), 16)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """The pairs of a file."""
        inputs = Inputs.of(Tokenizer.load(folder), min(self.model.context, model.longest))
        arrays = self.arrays(read_matches(Path(path)), inputs, taught=False)
        return Judged(RankCandidates(model, self.trust), InOrder(arrays, 16))


@torch.no_grad()
def let_words_lead(model: Any) -> None:
    """At the start a token's vector is longer than that of its position, so that the mean over a text is a random
    projection of its bag of words: texts that share words are near from the first step on."""
    model.embed.token.weight.mul_(LEAD)


LEAD = 5.0


def join_pair(inputs: Inputs, query: Sequence[int], document: Sequence[int], room: int) -> Encoded:
    """Query and document in so many tokens: what is too long loses the document's end, but for half of the room."""
    return inputs.join(query, document[: max(room - 3 - len(query), room // 2)])


def encode_all(inputs: Inputs, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of texts, without special ones."""
    return inputs.tokenizer.encode_many([text[:LETTERS] for text in texts])


LETTERS = 4000  # of a text; what is behind them is beyond any context here


def score_keywords(matches: Sequence[Match]) -> Tensor:
    """BM25 of every query and document of a part (n, n)."""
    return BM25().fit([match.document for match in matches]).score([match.query for match in matches]).float()


def compare_within(scores: Tensor) -> Tensor:
    """(s − mean) / deviation among the candidates of a query (b, m): scores of any retriever on one scale."""
    return (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True, correction=0).clamp(min=1e-6)


@torch.no_grad()
def encode_part(model: Any, arrays: dict[str, Tensor]) -> Tensor:
    """The cosines of every query and document (n, n)."""
    task, training, where = MatchTexts(model), model.training, next(model.parameters()).device
    model.eval()
    rows = [task.score({name: x.to(where) for name, x in batch.items()}) for batch in InOrder(arrays, 64)]
    model.train(training)
    queries, documents = (torch.cat([row[name].cpu() for row in rows]) for name in ("queries", "documents"))
    return queries @ documents.T
