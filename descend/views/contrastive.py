"""What two joint encoders show: similarities of pairs, images found by a text, retrieval and zero-shot scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.images.captions import Captioned, CaptionedParts, pixels
from descend.metrics.retrieval import recall
from descend.metrics.zero_shot import class_scores, class_vectors
from descend.models.clip import Joint
from descend.views.pixels import channels_last

SHOWN, FOUND = 12, 4  # rows of the matrix; texts to look for, with as many images each
MOST = 512  # images that the report looks at

Encoded = tuple[Tensor, Tensor, Captioned]
"""Images (n, p), texts (n, p) and what they are of."""


@dataclass(frozen=True)
class ContrastiveView:
    """What the report shows of a model and its data. `tokens` turns captions into tokens."""

    model: Joint
    tokens: Callable[[list[str]], Tensor]
    parts: CaptionedParts
    templates: tuple[str, ...]

    @torch.no_grad()
    def show(self) -> list[Exhibit]:
        """All exhibits."""
        valid, test = (self.encode_pairs(part) for part in (self.parts.valid, self.parts.test))
        return [self.show_similarities(valid), self.show_found(test), self.show_retrieval(valid, test)]

    def encode_pairs(self, part: Captioned) -> Encoded:
        """At most MOST pairs of a part."""
        part = Captioned(part.x[:MOST], part.captions[:MOST], None if part.y is None else part.y[:MOST])
        where = self.model.scale.device
        images = torch.cat([self.model.encode_image(x.to(where)).cpu() for x in pixels(part.x).split(128)])
        return images, self.encode_texts(part.captions), part

    def encode_texts(self, captions: list[str]) -> Tensor:
        """T (n, p)"""
        tokens = self.tokens(captions).to(self.model.scale.device)
        return torch.cat([self.model.encode_text(piece).cpu() for piece in tokens.split(256)])

    def show_similarities(self, valid: Encoded) -> Exhibit:
        """Every image beside every text."""
        images, texts, part = valid
        names = part.captions[:SHOWN]
        content = {"values": (images[:SHOWN] @ texts[:SHOWN].T).tolist(), "rows": names, "columns": names,
                   "row_label": "image of", "column_label": "text"}  # fmt: skip
        note = "Cosine of image and text; the pairs are on the diagonal."
        return Exhibit("heatmap", "Image-text similarity", content, note)

    def show_found(self, test: Encoded) -> Exhibit:
        """The images nearest to a text."""
        images, _, part = test
        apart = [self.parts.classes[i] for i in self.parts.held_out]
        wanted = list(dict.fromkeys(apart or part.captions))[:FOUND]
        asked = [self.templates[0].replace("{}", name) if apart else name for name in wanted]
        best = (self.encode_texts(asked) @ images.T).topk(min(FOUND, len(images)), dim=1).indices
        captions = [f"{name}: {part.captions[i]}" for name, row in zip(wanted, best.tolist(), strict=True) for i in row]
        content = {"images": channels_last(part.x[best.flatten()] / 255), "captions": captions}
        return Exhibit(
            "images", "Text-to-image retrieval", content, "Test images nearest to a text: their own captions."
        )

    def show_retrieval(self, *encoded: Encoded) -> Exhibit:
        """Recall in both directions, and zero-shot accuracy."""
        classes = class_vectors(self.encode_texts, self.parts.classes, self.templates) if self.parts.classes else None
        rows = []
        for name, (images, texts, part) in zip(("validation", "test"), encoded, strict=True):
            group = torch.unique(self.tokens(part.captions), dim=0, return_inverse=True)[1]
            scores, belongs = images @ texts.T, group[:, None] == group
            k = min(5, len(part))
            row = [name, len(part), recall(scores, belongs), recall(scores, belongs, k), recall(scores.T, belongs, k)]
            if classes is not None and part.y is not None:
                row.append(float((class_scores(images, classes).argmax(1) == part.y).float().mean()))
            rows.append(row)
        columns = ["part", "pairs", "image to text, recall@1", "recall@5", "text to image, recall@5"]
        columns += ["zero-shot accuracy"] if classes is not None else []
        note = "Among all pairs of the part. Zero-shot: the nearest of all class names, as an ensemble of prompts."
        return Exhibit("table", "Retrieval", {"columns": columns, "rows": rows}, note)
