"""Sequence to sequence: say y after reading x.

    min_θ  E[ Σ_s −log p_θ(y_s | x, y_<s) ]          SUM over the target (MF 36.5.3), mean over the examples

Training is teacher-forced: one parallel pass, in which position s reads the true y_<s. That equals one pass for each
prefix. When the model writes by itself it reads its own words, which it never saw in training (exposure bias).

Exact match needs no writing: greedy search finds y exactly when every argmax under teacher forcing is right, since up
to its first mistake it has read the true words too.

Systems: teacher-forcing, scheduled-sampling, span-corruption
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy, smoothed_cross_entropy
from descend.metrics.language import exponentiate
from descend.metrics.translation import bleu, bleu_is_there, exact_match
from descend.ops.teacher_forcing import Forcing, mix_tokens, shift_right


class SequenceToSequence(Task):
    """x (b, s) and y (b, t) are tokens, filled up with `pad`; the decoder begins with `start`."""

    def __init__(self, model: nn.Module, pad: int, start: int, smoothing: float = 0.0):
        super().__init__()
        self.model, self.pad, self.start, self.smoothing = model, pad, start, smoothing

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch, shift_right(batch["y"], self.start)))

    def loss(self, batch: Batch, read: Tensor) -> Tensor:
        """The sum over each target, when the decoder reads `read` (b, t)."""
        y = batch["y"]
        losses = smoothed_cross_entropy(self.logits(batch["x"], read).flatten(0, 1), y.flatten(), self.smoothing)
        return losses[(y != self.pad).flatten()].sum() / len(y)

    def logits(self, x: Tensor, read: Tensor) -> Tensor:
        return self.model(x, read, x != self.pad)

    def score(self, batch: Batch) -> dict[str, Any]:
        """−log p of every target token, and whether each target would be written exactly."""
        y = batch["y"]
        real = y != self.pad
        logits = self.logits(batch["x"], shift_right(y, self.start))
        right = (logits.argmax(-1) == y) | ~real
        return {"loss": cross_entropy(logits[real], y[real]), "exact": right.all(1).float()}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """exp of the mean loss of a token."""
        return {**means, "perplexity": exponentiate(means["loss"])}


class Translation(SequenceToSequence):
    """The same, judged by what the model writes: BLEU and exact match of the texts.

    A batch may have reference (b): the row of `references` that a pair is to be compared with, -1 where the pair is not
    written. `write` answers sources (n, s) with texts.
    """

    evidence = ("answers", "references")

    def __init__(
        self,
        model: nn.Module,
        pad: int,
        start: int,
        smoothing: float,
        write: Callable[[Tensor], list[str]],
        references: Sequence[str],
    ):
        super().__init__(model, pad, start, smoothing)
        self.write, self.references = write, references

    def score(self, batch: Batch) -> dict[str, Any]:
        rows = batch["reference"] if "reference" in batch else torch.full((len(batch["x"]),), -1)
        wanted = rows >= 0
        answers = self.write(batch["x"][wanted]) if bool(wanted.any()) else []
        references = [self.references[row] for row in rows[wanted].tolist()]
        return {**super().score(batch), "answers": answers, "references": references}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """BLEU is there when sacrebleu is installed."""
        found, answers, references = super().judge(means, evidence), evidence["answers"], evidence["references"]
        if not references:
            return found
        found["exact_text"] = exact_match(answers, references)
        return found | ({"bleu": bleu(answers, references).score} if bleu_is_there() else {})


class ScheduledSampling(SequenceToSequence):
    """The decoder reads the true word before with probability `forcing(t)` at step t, else what the model would say."""

    step: Tensor

    def __init__(self, model: nn.Module, pad: int, start: int, forcing: Forcing):
        super().__init__(model, pad, start)
        self.forcing = forcing
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def moves(self, batch: Batch) -> Iterator[Move]:
        now = int(self.step)
        read = self.mixture(batch["x"], batch["y"], self.forcing(now))
        yield Move("model", lambda: self.loss(batch, read))
        self.step.fill_(now + 1)  # the slices of one batch (accumulation) all say the same

    @torch.no_grad()
    def mixture(self, x: Tensor, y: Tensor, p: float) -> Tensor:
        """What the second pass reads; the words of the first are its argmax."""
        true = torch.rand(y.shape, device=y.device) < p
        if bool(true.all()):
            return shift_right(y, self.start)
        own = self.logits(x, shift_right(y, self.start)).argmax(-1)
        return mix_tokens(y, own, self.start, true)
