"""A run that is served: its name, and what it offers.

completions, chat     a model that continues texts (chat: with a template)
embeddings            an encoder of texts
predict               everything else
"""

from __future__ import annotations

import base64
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.inference import open_trained
from descend.inference.encoder import encodes_texts, joint_texts, mean_of_tokens
from descend.inference.trained import BATCH, Trained, load_trained
from descend.inference.writer import Writer
from descend.models.clip import Joint
from descend.server.asking import Family, asks_for_names, choose_family
from descend.server.writing import TextModel
from descend.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Limits:
    """How much the server takes on."""

    rows: int = 16
    """Texts that are written at once."""
    queue: int = 256
    """Requests that may wait."""
    context: int = 0
    """Tokens of a text, its prompt included; 0: the model's own, up to `writing.LONGEST`."""
    body: int = 2**25
    """Bytes of a request."""

    def __post_init__(self) -> None:
        for flag, value, least in (("rows", self.rows, 1), ("queue", self.queue, 0), ("context", self.context, 0)):
            if value < least:
                raise Mistake(f"--{flag} {value}: at least {least}")


class TextEncoder:
    """Vectors of texts by an encoder that was read once."""

    def __init__(self, trained: Trained):
        self.forward: Callable[[Sequence[str]], Tensor] = (
            joint_texts(trained) if isinstance(trained.model, Joint) else mean_of_tokens(trained)
        )
        self.tokenizer = Tokenizer.load(trained.folder)
        self.lock = threading.Lock()

    @torch.no_grad()
    def encode(self, texts: Sequence[str]) -> tuple[list[list[float]], int]:
        """A vector of each text, and how many tokens they had."""
        with self.lock:
            x = torch.cat([self.forward(texts[i : i + BATCH]).cpu() for i in range(0, len(texts), BATCH)])
            count = sum(map(len, self.tokenizer.encode_many(texts)))
        if not x.isfinite().all():
            raise Mistake("the model's vectors are not numbers (NaN or infinity): its weights are damaged")
        return x.float().tolist(), count


def as_base64(vector: Sequence[float]) -> str:
    """float32, as OpenAI's client asks for it."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@dataclass(frozen=True)
class Served:
    """A run by its name."""

    name: str
    trained: Trained
    text: TextModel | None
    encoder: TextEncoder | None
    family: Family | None
    created: int

    @classmethod
    def open(cls, name: str, run: str, checkpoint: str | int, limits: Limits) -> Served:
        """Whatever a run offers."""
        trained = load_trained(run, checkpoint)
        created = int(trained.folder.stat().st_mtime)
        encoder = TextEncoder(trained) if encodes_texts(trained) else None
        if family := asks_for_names(trained):
            return cls(name, trained, None, encoder, family, created)
        try:
            answerer: Any = open_trained(trained, run)
        except Mistake:
            if encoder is None:
                raise
            return cls(name, trained, None, encoder, None, created)  # it only gives vectors
        if isinstance(answerer, Writer) and answerer.continues:
            model = TextModel(name, answerer, limits.rows, limits.queue, limits.context)
            return cls(name, trained, model, encoder, None, created)
        return cls(name, trained, None, encoder, choose_family(answerer, run), created)

    @cached_property
    def offers(self) -> list[str]:
        """The routes that answer for it."""
        there: dict[str, Any] = {
            "completions": self.text,
            "chat": self.text is not None and self.text.template,
            "embeddings": self.encoder,
            "predict": self.family,
        }
        return [name for name, part in there.items() if part]


def open_all(runs: Sequence[str], checkpoint: str | int, limits: Limits) -> dict[str, Served]:
    """Runs by their names: the folder's, or NAME=RUN."""
    if not runs:
        raise Mistake("name at least one run: descend serve RUN")
    found: dict[str, Served] = {}
    for given in runs:
        name, _, path = given.partition("=") if "=" in given and not Path(given).exists() else ("", "", given)
        name = name or Path(path).resolve().name
        if name in found:
            raise Mistake(f"two runs are called {name!r}; give one another name: other-name={path}")
        found[name] = Served.open(name, path, checkpoint, limits)
    return found


def describe(served: Served) -> str:
    """A line for the terminal."""
    said = f"{served.name}: {served.trained.kind}, {', '.join(served.offers)}"
    if served.text is None:
        return said
    return f"{said}; texts of up to {served.text.context:,} tokens, {served.text.batcher.count} at once"
