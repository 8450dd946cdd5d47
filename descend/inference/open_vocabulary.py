"""Open-vocabulary detection: look for whatever the user names, by a model that compares regions with texts.

    look_for(trained, ("a red circle", "a dog"))        a Detector with these names, and nothing is trained

OWL-ViT and OWLv2 read texts by the tokenizer of their folder; an `OpenVocabularyDetector` knows the words that it has
learned, and names one that it has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.data.detection.prepare import DetectionPreprocessing
from descend.errors import Mistake
from descend.inference.detector import Detector
from descend.inference.trained import Trained
from descend.models._owl import OwlDetector
from descend.models.open_vocabulary_detector import OpenVocabularyDetector
from descend.text.caption import caption_tokens
from descend.text.clip import load_tokenizer

EXAMPLE = '--labels "a red circle, a dog"'


class AskedDetector(nn.Module):
    """A model that is asked for certain texts (q, p): a detector like any other (`contracts.Detects`)."""

    def __init__(self, model: OwlDetector | OpenVocabularyDetector, texts: Tensor):
        super().__init__()
        self.model, self.config, self.stride = model, model.config, model.stride
        self.register_buffer("texts", texts)

    def forward(self, x: Tensor) -> Any:
        return self.model.find(x, cast("Tensor", self.texts))

    def decode(self, found: Any, least: float = 0.001, most: int = 100) -> Boxes:
        return self.model.decode(found, least, most)


def finds_by_text(trained: Trained) -> bool:
    """Whether a model looks for what it is asked for."""
    return isinstance(trained.model, OwlDetector | OpenVocabularyDetector)


def look_for(trained: Trained, names: Sequence[str]) -> Detector:
    """A detector of these names; without any, of those that the model was trained with, if it has some."""
    model = trained.model
    if not names:
        if isinstance(model, OwlDetector):
            raise Mistake(f"{trained.folder} finds what it is asked for; name something: {EXAMPLE}")
        return Detector.read(trained)
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), ""):
        raise Mistake(f"--labels: {twice!r} is there twice; name it once")
    with torch.no_grad():
        asked = AskedDetector(model, encode_names(trained, names)).eval()
    prepare = DetectionPreprocessing.read(trained.folder)
    return Detector(Trained(asked, trained.folder), prepare, tuple(names))


def encode_names(trained: Trained, names: Sequence[str]) -> Tensor:
    """The vectors of the names (q, p)."""
    model = trained.model
    if isinstance(model, OpenVocabularyDetector):
        try:
            return model.encode_names(names)
        except ValueError as error:
            raise Mistake(f"--labels: {error}") from None
    tokens = caption_tokens(load_tokenizer(trained.folder), names, model.config.text.context)
    return cast("Tensor", model.encode_text(tokens.to(trained.device)))
