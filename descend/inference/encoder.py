"""Vectors: what a model makes of images, texts or graphs before its head; near vectors mean alike inputs.

images   features(x) (n, d); of a CLIP I(x) of length 1
texts    the mean of an encoder's last vectors over the tokens of a text; of a CLIP T(text) of length 1
graphs   of each node what the last layer makes of it; of whole graphs the mean over the nodes of each
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.contracts import EncodesTokens, HasFeatures
from descend.data.images.captions import caption_tokens
from descend.data.images.labelled import PREPROCESSOR
from descend.errors import Mistake
from descend.inference.graphs import answers_graphs, embed_graphs
from descend.inference.images import ImageModel
from descend.inference.inputs import list_images, names_images, read_texts
from descend.inference.trained import BATCH, Trained, load_trained
from descend.kinds.text_columns import read_run_columns
from descend.models.clip import Joint
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Vectors:
    """What was given, and a vector of each: x (n, d)"""

    inputs: list[str]
    x: Tensor

    def cosines(self) -> Tensor:
        """cos(x_i, x_j) = x_i · x_j / |x_i| |x_j| (n, n)"""
        unit = normalize(self.x.double(), dim=1)
        return unit @ unit.T


@dataclass(frozen=True)
class Encoder:
    """A model whose inner vectors are wanted."""

    trained: Trained
    takes = "images, texts or graphs"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Encoder:
        """From a run or a model folder."""
        trained = load_trained(run, checkpoint)
        if not (encodes_images(trained) or encodes_texts(trained) or answers_graphs(trained)):
            raise Mistake(f"{run} holds a {trained.kind}, which does not embed images, texts or graphs")
        return cls(trained)

    def encode_images(self, images: Sequence[str | Path] | Tensor) -> Tensor:
        """Image files, or pixels (n, c, h, w) in 0..1 -> (n, d)"""
        model = self.trained.model
        if not encodes_images(self.trained):
            raise Mistake(f"{self.trained.folder} holds a {self.trained.kind}, which does not embed images")
        reader = ImageModel.read(self.trained)
        forward = model.encode_image if isinstance(model, Joint) else model.features
        return torch.cat([v.flatten(1).cpu() for v in reader.run(reader.read_images(images), forward)])

    def encode(self, inputs: Sequence[str]) -> Vectors:
        """Images, texts and files of texts; or graphs. Where the model takes images and texts, what is an image's file,
        folder or pattern is images."""
        if answers_graphs(self.trained):
            return Vectors(*embed_graphs(self.trained, inputs))
        names: list[str] = []
        vectors: list[Tensor] = []
        for given in inputs:
            if encodes_images(self.trained) and (not encodes_texts(self.trained) or names_images(given)):
                images = list_images([given])
                names += map(str, images)
                vectors.append(self.encode_images(images))
            else:
                texts = read_texts([given], read_run_columns(self.trained.folder)).texts
                names += texts
                vectors.append(self.encode_texts(texts))
        return Vectors(names, torch.cat(vectors))

    @torch.no_grad()
    def encode_texts(self, texts: Sequence[str]) -> Tensor:
        """Texts -> (n, d)"""
        if not encodes_texts(self.trained):
            raise Mistake(f"{self.trained.folder} holds a {self.trained.kind}, which does not embed texts")
        forward = joint_texts(self.trained) if isinstance(self.trained.model, Joint) else mean_of_tokens(self.trained)
        return torch.cat([forward(texts[i : i + BATCH]).cpu() for i in range(0, len(texts), BATCH)])


def encodes_images(trained: Trained) -> bool:
    """Whether there are vectors of images."""
    return isinstance(trained.model, Joint | HasFeatures) and (trained.folder / PREPROCESSOR).exists()


def encodes_texts(trained: Trained) -> bool:
    """Whether there are vectors of texts."""
    return isinstance(trained.model, Joint | EncodesTokens) and (trained.folder / "tokenizer.json").exists()


def joint_texts(trained: Trained) -> Callable[[Sequence[str]], Tensor]:
    """T of a CLIP."""
    model, tokenizer = trained.model, Tokenizer.load(trained.folder)
    return lambda texts: model.encode_text(
        caption_tokens(tokenizer, texts, model.config.text.context).to(trained.device)
    )


def mean_of_tokens(trained: Trained) -> Callable[[Sequence[str]], Tensor]:
    """(1/t) Σ_i h_i over the t real tokens of a text, special ones included."""
    model, device = trained.model, trained.device
    inputs = Inputs.of(Tokenizer.load(trained.folder), model.longest)

    def forward(texts: Sequence[str]) -> Tensor:
        batch = {name: x.to(device) for name, x in inputs.batch([inputs.encode(text) for text in texts]).items()}
        real = batch["mask"].unsqueeze(-1)
        h: Tensor = model.hidden(batch["x"], batch["mask"])
        return (h * real).sum(dim=1) / real.sum(dim=1)

    return forward
