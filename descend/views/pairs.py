"""What an encoder-decoder shows: its answers, BLEU, errors by position and by length, and its alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.text.text_to_text import Pair
from descend.metrics.translation import as_rows, bleu, bleu_is_there, error_by_position, exact_match, overlap
from descend.ops.teacher_forcing import shift_right
from descend.sampling.answer import answer_sources
from descend.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from descend.models.seq2seq import Seq2Seq
    from descend.models.t5 import T5
    from descend.models.transformer import Transformer

SHOWN = 12  # answers
GROUPS = 8  # of sources of like length
ENOUGH = 20  # targets that must reach a position


@dataclass(frozen=True)
class PairsView:
    """What the report shows of a model and the validation pairs."""

    model: T5 | Transformer | Seq2Seq
    tokenizer: Tokenizer
    arrays: dict[str, Tensor]
    pairs: list[Pair]
    longest: int

    def show(self) -> list[Exhibit]:
        """Answers, scores, and the errors by position and length."""
        rows = answer_sources(self.model, self.arrays["x"], self.longest)
        answers, right = [self.tokenizer.decode(row) for row in rows], [y for _, y in self.pairs]
        shown = [{"prompt": f"{x}  ->  ", "text": a + ("" if a == y else f"   (reference: {y})")}
                 for (x, y), a in zip(self.pairs[:SHOWN], answers, strict=False)]  # fmt: skip
        scores = [["exact match", round(exact_match(answers, right), 4)]]
        note = "Greedy answers to the validation pairs."
        if bleu_is_there():
            score = bleu(answers, right)
            scores.append(["BLEU", round(score.score, 2)])
            note += f" BLEU: {score.signature}"
        return [
            Exhibit("text", "Answers", shown),
            Exhibit("table", "Text scores", {"columns": ["score", "value"], "rows": scores}, note),
            self.show_exposure(rows),
            self.show_lengths(answers, right),
            *self.show_alignment(),
        ]

    def show_alignment(self) -> list[Exhibit]:
        """Where the words of one target look in their source; of a transformer: the last block, its heads' mean."""
        from descend.models.seq2seq import Seq2Seq

        recurrent = isinstance(self.model, Seq2Seq)
        if isinstance(self.model, Seq2Seq) and self.model.config.context not in ("current", "previous"):
            return []
        c, device = self.model.config, self.model.embed.weight.device
        x, y = (self.arrays[name][:1].long() for name in ("x", "y"))
        x, y = x[x != c.pad][None], y[y != c.pad][None]
        weights = self.model.alignment(x.to(device), shift_right(y, c.start).to(device)).cpu()
        weights = weights[0] if recurrent else weights[-1, 0].mean(0)
        source, target = ([self.tokenizer.decode([token]) for token in row[0].tolist()] for row in (x, y))
        content = {"values": weights.tolist(), "rows": target, "columns": source,
                   "row_label": "target", "column_label": "source"}  # fmt: skip
        return [Exhibit("heatmap", "Alignment", content, "Cross-attention of each target token to the source.")]

    def show_lengths(self, answers: list[str], right: list[str]) -> Exhibit:
        """The share of exact answers, and of words that are right, for sources of each length."""
        length = (self.arrays["x"] != self.model.config.pad).sum(1)
        exact = torch.tensor([a.split() == y.split() for a, y in zip(answers, right, strict=True)]).float()
        near = torch.tensor([overlap(a.split(), y.split()) for a, y in zip(answers, right, strict=True)])
        groups = [rows for rows in length.argsort(stable=True).tensor_split(GROUPS) if len(rows)]
        lines = {"exact match": exact, "correct words": near}
        content = {
            "x": [float(length[rows].float().mean()) for rows in groups],
            "y": {name: [float(values[rows].mean()) for rows in groups] for name, values in lines.items()},
            "x_label": "tokens of the source",
            "y_label": "share",
        }
        return Exhibit(
            "curve", "Score by source length", content, "A fixed-size context loses long sources; attention keeps them."
        )

    @torch.no_grad()
    def show_exposure(self, rows: list[list[int]]) -> Exhibit:
        """How errors grow along the text when the model reads its own words instead of the true ones."""
        c, x, y = self.model.config, self.arrays["x"].long(), self.arrays["y"].long()
        device = self.model.embed.weight.device
        pieces = zip(x.to(device).split(64), y.to(device).split(64), strict=True)
        forced = torch.cat([self.model(a, shift_right(b, c.start), a != c.pad).argmax(-1).cpu() for a, b in pieces])
        free = as_rows([[*row, c.end] for row in rows], y.shape[1], c.pad)
        enough = (y != c.pad).sum(0) >= ENOUGH
        lines = {"teacher forcing": forced, "free running": free}
        errors = {name: error_by_position(found, y, c.pad)[enough].tolist() for name, found in lines.items()}
        places = torch.arange(1, y.shape[1] + 1)[enough].tolist()
        content = {"x": places, "y": errors, "x_label": "position in the target", "y_label": "share of wrong tokens"}
        return Exhibit("curve", "Exposure bias", content, "The gap is the cost of reading its own output.")
