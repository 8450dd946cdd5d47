"""Images as tokens: a VQ-VAE learns them, and a transformer learns which of them follow a caption, in the same steps.

    VQ-VAE        ‖x − x̂‖² + ‖sg[z_e] − e‖² + β ‖z_e − sg[e]‖²          each a mean over its numbers
    transformer   a Σ −log p(text token)/n + (1 − a) Σ −log p(image token)/n        a = 1/8 in the original

Tokens are whole numbers, so no gradient passes from the transformer to the VQ-VAE: the two sums are independent, and
training them together only means that the transformer follows tokens that still change at first. A batch holds x and,
where there is text, tokens (b, T), which begin with a start token; without text the caption is that token alone.

Systems: vq-vae, dall-e-1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.quantization import codebook_loss, commitment_loss, usage
from descend.losses.reconstruction import squared_error

TEXT = 1 / 8  # share of the text's loss in the original


class Quantize(Task):
    """A VQ-VAE alone; β weighs the commitment."""

    evidence = ("tokens",)

    def __init__(self, model: nn.Module, beta: float = 0.25):
        super().__init__()
        self.model: Any = model
        self.beta = beta

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch["x"]))

    def loss(self, x: Tensor) -> Loss:
        y, code, entry = self.model(x)
        return Loss(quantization_terms(x, y, code, entry, self.beta))

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Loss, ‖x − x̂‖² of each image, and its tokens."""
        x = batch["x"]
        y, code, entry = self.model(x)
        terms = quantization_terms(x, y, code, entry, self.beta, each=True)
        tokens = self.model.tokens(x).flatten(1)
        return {"loss": sum_terms(terms), "squared_error": squared_error(x, y), "tokens": tokens}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """With the number of codebook entries in use (perplexity)."""
        return {**means, "codes_in_use": float(usage(evidence["tokens"], self.model.config.vocab))}


class VisualTokens(Task):
    """A VQ-VAE and a transformer over captions and its tokens."""

    evidence = ("tokens", "asked")

    def __init__(
        self,
        model: nn.Module,
        beta: float = 0.25,
        text: float = TEXT,
        judge_asked: Callable[[Tensor], dict[str, float]] | None = None,
    ):
        """`judge_asked(asked)`: scores of images of what a set of examples asks for."""
        super().__init__()
        self.model: Any = model
        self.beta, self.text, self.judge_asked = beta, text, judge_asked

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def captions(self, batch: Batch) -> Tensor:
        """The caption of each image, or its start token."""
        return batch["tokens"] if "tokens" in batch else batch["x"].new_zeros(len(batch["x"]), 1, dtype=torch.long)

    def loss(self, batch: Batch) -> Loss:
        logits, y, code, entry = self.model(self.captions(batch), batch["x"])
        text, image = self.token_losses(self.captions(batch), code, logits)
        terms = quantization_terms(batch["x"], y, code, entry, self.beta)
        if text is not None:
            terms["text"] = self.text * text.mean()
        terms["image"] = (1 - self.text if text is not None else 1.0) * image.mean()
        return Loss(terms)

    def token_losses(self, captions: Tensor, code: Tensor, logits: Tensor) -> tuple[Tensor | None, Tensor]:
        """−log p of a text token and of an image token, the mean of each example (b); no text: None."""
        tokens = self.model.codes.quantizer.tokens(code).flatten(1)
        text, image = self.model.split_logits(logits)
        of_image = cross_entropy(image.mT, tokens, reduction="none").mean(1)
        if captions.shape[1] == 1:
            return None, of_image
        return cross_entropy(text.mT, captions[:, 1:], reduction="none").mean(1), of_image

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Losses, ‖x − x̂‖² of each image, and its tokens."""
        x, captions = batch["x"], self.captions(batch)
        logits, y, code, entry = self.model(captions, x)
        text, image = self.token_losses(captions, code, logits)
        terms = quantization_terms(x, y, code, entry, self.beta, each=True)
        found = {"image_loss": image, "squared_error": squared_error(x, y), "reconstruction": terms["reconstruction"]}
        share = 1 - self.text if text is not None else 1.0
        loss = sum_terms(terms) + share * image + (0.0 if text is None else self.text * text)
        tokens = self.model.codes.quantizer.tokens(code).flatten(1)
        more = {name: batch[name] for name in ("asked",) if name in batch}
        if text is not None:
            more["text_loss"] = text
        return {"loss": loss, **found, **more, "tokens": tokens}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """With the codebook entries in use (perplexity), and scores of images for what is asked, where a set asks."""
        found = {**means, "codes_in_use": float(usage(evidence["tokens"], self.model.config.codes.vocab))}
        return {**found, **(self.judge_asked(evidence["asked"]) if self.judge_asked and "asked" in evidence else {})}


def quantization_terms(
    x: Tensor, y: Tensor, code: Tensor, entry: Tensor, beta: float, each: bool = False
) -> dict[str, Tensor]:
    """The three terms of a VQ-VAE, as means over the batch or for each example."""
    values = {
        "reconstruction": squared_error(x, y) / x[0].numel(),
        "codebook": codebook_loss(code, entry).flatten(1).mean(1) / code.shape[-1],
        "commitment": beta * commitment_loss(code, entry).flatten(1).mean(1) / code.shape[-1],
    }
    return values if each else {name: value.mean() for name, value in values.items()}


def sum_terms(terms: dict[str, Tensor]) -> Tensor:
    first, *others = terms.values()
    return sum(others, first)
