"""Starting from a language model: a run or a public folder that has weights and a tokenizer.

    --start.path RUN                its weights and its tokenizer; the model's own flags (--model.*) do not apply
    --start.path FOLDER             the same of a GPT-2, LLaMA, .. as transformers writes them
    --start.freeze embed,blocks.0   these parts stay as they are

Without a path a small model begins from random weights, with a tokenizer learned from the data. New special tokens get
rows of the embedding (and of the output matrix, where that is one of its own) drawn like those that are there; tied
weights stay tied.

    e_new ~ N(mean of the rows, their variance), each number by its column
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from descend.contracts import AnswersSource, HasDecoder
from descend.engine.frozen import checksum
from descend.errors import Mistake
from descend.models import load, make_model
from descend.nn.transfer import freeze
from descend.text.tokenizer import Tokenizer
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pretrained import Pretrained

KEPT = ("README", "LICENSE", "NOTICE", "generation_config")


class Base(NamedTuple):
    """A trained language model, and where it comes from."""

    model: Any
    tokenizer: Tokenizer
    folder: Path
    checksum: str


class Begun(NamedTuple):
    """What training begins with; `base` is None where the weights are random."""

    model: Any
    tokenizer: Tokenizer
    base: Base | None


def open_base(path: str) -> Base:
    """The best checkpoint of a run, or a public folder."""
    folder = resolve_checkpoint(path)
    model = load(folder)
    if not isinstance(model, HasDecoder) or isinstance(model, AnswersSource) or not counts_tokens(model):
        raise Mistake(
            f"--start.path {path} holds a {type(model).__name__}, which does not write text; give a language model"
        )
    tokenizer = Tokenizer.load(folder)
    tokenizer.check_fits(model.config.vocab)
    return Base(model, tokenizer, folder, checksum(model))


def counts_tokens(model: Any) -> bool:
    """Whether the config says how many tokens there are."""
    return "vocab" in type(model.config).__dataclass_fields__


@dataclass(frozen=True)
class StartLanguage:
    """What to start from."""

    path: str = ""
    """A run or a folder of a language model to start from, with its tokenizer; empty: random weights."""
    freeze: str = ""
    """Names of its parts that do not learn, separated by commas; empty: all learn."""

    def begin(
        self, config: Any, learn: Callable[[], Tokenizer], prepare: Callable[[Tokenizer], Tokenizer], seed: int = 0
    ) -> Begun:
        """The model to train and its tokenizer, with the special tokens that `prepare` adds.

        `config` and `learn` are for a model from random weights: its sizes, and the tokenizer of the data.
        """
        torch.manual_seed(seed)
        if self.path:
            base = open_base(self.path)
            tokenizer = prepare(base.tokenizer)
            model = grow_vocabulary(base.model, tokenizer.vocab, seed)
            freeze(model, [part.strip() for part in self.freeze.split(",") if part.strip()])
            return Begun(model, tokenizer, base)
        if self.freeze:
            raise Mistake("--start.freeze keeps what was trained, and nothing was; give --start.path too")
        tokenizer = prepare(learn())
        try:
            return Begun(make_model(replace(config, vocab=tokenizer.vocab)), tokenizer, None)
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None

    def read_tokenizer(self, learn: Callable[[], Tokenizer], prepare: Callable[[Tokenizer], Tokenizer]) -> Tokenizer:
        """The tokenizer of `begin` alone."""
        return prepare(Tokenizer.load(resolve_checkpoint(self.path)) if self.path else learn())

    def read_config(self, config: Any) -> Any:
        """The sizes of the model of `begin`."""
        return open_base(self.path).model.config if self.path else config


def grow_vocabulary(model: Any, vocab: int, seed: int = 0) -> Any:
    """The same model for at least `vocab` tokens: it itself where it has as many rows, else one with new rows after
    the others."""
    if model.config.vocab >= vocab:
        return model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        grown: Pretrained = type(model)(replace(model.config, vocab=vocab))
    state, old = grown.state_dict(), model.state_dict()
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in state.items():
            rows = old[name]
            tensor[: len(rows)] = rows
            if tensor.shape != rows.shape:
                new = torch.randn(len(tensor) - len(rows), *rows.shape[1:], generator=chance)
                tensor[len(rows) :] = rows.mean(0) + rows.std(0) * new
    kept = {name: file for name, file in model.companions.items() if name.startswith(KEPT)}
    grown.companions = kept  # not the files of the old tokenizer
    grown.origin = model.origin
    return grown.eval()
