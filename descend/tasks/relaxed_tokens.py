"""A discrete VAE learns tokens: reconstruction from a relaxed choice, and a KL that keeps all codes in use.

    L = ‖x − x̂‖² + β KL(softmax(a) ‖ uniform)        each a mean over its numbers or places

A batch holds x and u (b, h', w', V), the noise of the relaxed choice.

Systems: dall-e-1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.quantization import usage
from descend.losses.reconstruction import squared_error
from descend.ops.relaxed_categorical import kl_to_uniform


class RelaxedTokens(Task):
    """`model(x, u)` gives a reconstruction and logits; β weighs the KL."""

    evidence = ("tokens",)

    def __init__(self, model: nn.Module, beta: float = 1e-3):
        super().__init__()
        self.model: Any = model
        self.beta = beta

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Both, for each example (b)."""
        y, a = self.model(batch["x"], batch["u"])
        error = squared_error(batch["x"], y) / batch["x"][0].numel()
        return {"reconstruction": error, "kl": self.beta * kl_to_uniform(a).flatten(1).mean(1)}

    def loss(self, batch: Batch) -> Loss:
        return Loss({name: value.mean() for name, value in self.terms(batch).items()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Loss, ‖x − x̂‖² through tokens and back, and the tokens."""
        terms, x = self.terms(batch), batch["x"]
        return {
            "loss": terms["reconstruction"] + terms["kl"],
            "squared_error": squared_error(x, self.model.reconstruct(x)),
            "tokens": self.model.tokens(x).flatten(1),
        }

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """With the number of codes in use (perplexity)."""
        return {**means, "codes_in_use": float(usage(evidence["tokens"], self.model.config.vocab))}
