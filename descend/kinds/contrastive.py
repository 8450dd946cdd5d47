"""Contrastive recipes: two encoders learn from images and their captions which belong together (CLIP).

Validation images have colours and shapes of training; the test images of the generated scenes have the pairs of them
that training never saw, and are named among all classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from descend.data.images.captions import Captioned, CaptionedParts, Captions, caption_tokens, pixels
from descend.data.images.processor import written
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.retrieval import recall
from descend.metrics.zero_shot import class_scores, class_vectors, prompts
from descend.models.clip import Clip, ClipConfig, Joint
from descend.models.clip_resnet import ClipResNet, ClipResNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.contrastive import Contrastive, alike
from descend.text.tokenizer import Tokenizer
from descend.weights.folder import write_json

MODELS: dict[type, Any] = {ClipConfig: Clip, ClipResNetConfig: ClipResNet}
TEMPLATES = ("a photo of {}", "a picture of {}", "there is {}", "{}")
SHOWN, FOUND = 12, 4  # rows of the matrix; texts to look for, with as many pictures each
MOST = 512  # images that the report looks at


@dataclass(frozen=True)
class ContrastRecipe(Recipe):
    """CLIP on pairs of image and caption. A whole batch is one set of negatives: --accumulate makes it smaller."""

    model: Any = field(default_factory=ClipConfig)
    """A ClipConfig or a ClipResNetConfig."""
    data: Captions = field(default_factory=Captions)
    optim: AdamW = field(default_factory=AdamW)
    schedule: Cosine = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, parts = self.loop, self.data.read()
        tokenizer = self.data.learn_tokenizer(parts.train.captions)
        texts = Texts(tokenizer, self.data.longest)
        torch.manual_seed(loop.seed)
        config = self.fitted(tokenizer)
        model: Joint = MODELS[type(config)](config)
        said = texts(prompts(parts.classes, TEMPLATES)) if parts.classes else None
        classes = None if said is None else said.unflatten(0, (len(parts.classes), -1))
        return Parts(
            task=Contrastive(model, classes),
            model=model,
            stream=Pictures(Shuffled(texts.arrays(parts.train), micro_batch(loop, loop.batch), loop.seed, *process())),
            valid=PicturesInOrder(texts.arrays(parts.valid), loop.batch),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=loop.batch,
            facts={
                "data": self.data.path or "generated scenes",
                "training pairs": len(parts.train),
                "validation pairs": len(parts.valid),
                "test pairs": len(parts.test),
                "different captions": len(set(parts.train.captions)),
                "vocabulary": tokenizer.vocab,
                "held out": ", ".join(parts.classes[i] for i in parts.held_out) or "nothing",
            },
            save_extra=lambda folder: self.save(folder, tokenizer),
            exhibits=lambda: Look(model, texts, parts).exhibits(),
        )

    def fitted(self, tokenizer: Tokenizer) -> Any:
        """The config with what the data gives."""
        c, longest, end = self.model, self.data.longest, tokenizer.end
        text = replace(c.text, vocab=tokenizer.vocab, context=longest, projected=c.width)
        text = replace(text, start=tokenizer.special("bos_token") or 0, end=end or 0, pad=end or 0)
        try:
            return replace(c.sized(self.data.size), text=text)
        except ValueError as error:
            raise Mistake(f"--data.size {self.data.size}: {error}") from None

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """The tokenizer and what an image goes through, beside the weights."""
        tokenizer.save(folder)
        side, half = self.data.size, (0.5, 0.5, 0.5)
        values = written((3, side, side), half, half, (side,), 2, "rgb")
        write_json(Path(folder) / "preprocessor_config.json", values)

    def test(self) -> Iterable[Batch]:
        """The test pairs; for generated scenes, colours and shapes that never met in training."""
        parts = self.data.read()
        texts = Texts(self.data.learn_tokenizer(parts.train.captions), self.data.longest)
        return PicturesInOrder(texts.arrays(parts.test), self.loop.batch)


@dataclass(frozen=True)
class Texts:
    """Captions to tokens."""

    tokenizer: Tokenizer
    longest: int

    def __call__(self, captions: list[str]) -> Tensor:
        return caption_tokens(self.tokenizer, captions, self.longest)

    def arrays(self, part: Captioned) -> dict[str, Tensor]:
        found = {"x": part.x, "tokens": self(part.captions)}
        return found if part.y is None else {**found, "y": part.y}


class Pictures:
    """A stream whose 8-bit images become what the model reads, batch by batch."""

    def __init__(self, inner: Shuffled):
        self.inner = inner

    def __next__(self) -> Batch:
        return ready(next(self.inner))

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state)


class PicturesInOrder(InOrder):
    """The same for validation."""

    def __iter__(self) -> Iterator[Batch]:
        return (ready(batch) for batch in super().__iter__())


def ready(batch: Batch) -> Batch:
    """Without the columns that are filling in every text."""
    tokens = batch["tokens"]
    used = int((tokens != tokens[:, -1:]).any(0).sum()) + 1
    return {**batch, "x": pixels(batch["x"]), "tokens": tokens[:, :used]}


@dataclass(frozen=True)
class Look:
    """What the report shows of a model and the data."""

    model: Joint
    texts: Texts
    parts: CaptionedParts

    @torch.no_grad()
    def exhibits(self) -> list[Exhibit]:
        valid, test = (self.encoded(part) for part in (self.parts.valid, self.parts.test))
        return [self.matrix(valid), self.found(test), self.table(valid, test)]

    def encoded(self, part: Captioned) -> tuple[Tensor, Tensor, Captioned]:
        """Images (n, p), texts (n, p) and the part they are of, at most MOST."""
        part = Captioned(part.x[:MOST], part.captions[:MOST], None if part.y is None else part.y[:MOST])
        where = self.model.scale.device
        images = torch.cat([self.model.encode_image(x.to(where)).cpu() for x in pixels(part.x).split(128)])
        return images, self.encode(part.captions), part

    def encode(self, captions: list[str]) -> Tensor:
        """T (n, p)"""
        tokens = self.texts(captions).to(self.model.scale.device)
        return torch.cat([self.model.encode_text(piece).cpu() for piece in tokens.split(256)])

    def matrix(self, valid: tuple[Tensor, Tensor, Captioned]) -> Exhibit:
        """Every image beside every text."""
        images, texts, part = valid
        names = part.captions[:SHOWN]
        content = {"values": (images[:SHOWN] @ texts[:SHOWN].T).tolist(), "rows": names, "columns": names,
                   "row_label": "image of", "column_label": "text"}  # fmt: skip
        return Exhibit("heatmap", "Which belong together", content, "Cosine of image and text; pairs are the diagonal.")

    def found(self, test: tuple[Tensor, Tensor, Captioned]) -> Exhibit:
        """The pictures nearest to a text."""
        images, _, part = test
        apart = [self.parts.classes[i] for i in self.parts.held_out]
        wanted = list(dict.fromkeys(apart or part.captions))[:FOUND]
        scores = self.encode([TEMPLATES[0].replace("{}", name) if apart else name for name in wanted]) @ images.T
        best = scores.topk(min(FOUND, len(images)), dim=1).indices
        captions = [f"{name}: {part.captions[i]}" for name, row in zip(wanted, best.tolist(), strict=True) for i in row]
        content = {"images": (part.x[best.flatten()].movedim(1, -1) / 255).numpy(), "captions": captions}
        return Exhibit("images", "Found by text", content, "Test images nearest to a text, and their own captions.")

    def table(self, *encoded: tuple[Tensor, Tensor, Captioned]) -> Exhibit:
        """Recall in both directions, and zero-shot accuracy."""
        classes = class_vectors(self.encode, self.parts.classes, TEMPLATES) if self.parts.classes else None
        rows = []
        for name, (images, texts, part) in zip(("validation", "test"), encoded, strict=True):
            group = alike(self.texts(part.captions))
            scores, belongs = images @ texts.T, group[:, None] == group
            k = min(5, len(part))
            row = [name, len(part), recall(scores, belongs), recall(scores, belongs, k), recall(scores.T, belongs, k)]
            if classes is not None:
                right = class_scores(images, classes).argmax(1) == cast("Tensor", part.y)
                row.append(float(right.float().mean()))
            rows.append(row)
        columns = ["part", "pairs", "image to text, recall@1", "recall@5", "text to image, recall@5"]
        columns += ["zero-shot accuracy"] if classes is not None else []
        note = "Among all pairs of the part. Zero-shot: the nearest of all class names, as an ensemble of prompts."
        return Exhibit("table", "Retrieval", {"columns": columns, "rows": rows}, note)
