"""Recipes of instruction tuning: conversations, and a language model that learns to say the assistant's part.

    --start.path RUN                 a model to start from; without it, random weights
    --penalty 0.01                   λ ‖θ − θ_pre‖²: stay near the model that training began with
    --data.general.share 0.2         replay: general text between the conversations
    --start.freeze embed,blocks.0    parts that stay as they are

The loss of general text (the Python documentation, or --data.general.path) is told beside that of the conversations as
`general_loss`, so that forgetting is seen; `--watch "min general_loss"` keeps the checkpoint that forgot least.

Systems: instruction-tuning, fine-tuning-objective, catastrophic-forgetting
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.data.streams.mixture import Mixture, Stage
from descend.data.streams.shards import process
from descend.data.text.conversation_batches import (
    Dialogues,
    DialoguesInOrder,
    OneAfterAnother,
    Replayed,
    count_tokens,
    encode_records,
    join_rows,
)
from descend.data.text.conversation_source import ConversationParts, Conversations
from descend.data.text.conversations import read_records
from descend.data.text.plain import Passages
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.start_language import Begun, StartLanguage
from descend.models import config_class
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative
from descend.tasks.instruct import Instruct, InstructNear
from descend.text.chat_template import add_roles, name_roles
from descend.text.tokenizer import Tokenizer
from descend.views.conversations import ConversationView

VALID_RECORDS = 1024  # at most, spread evenly over the validation records
VALID_WINDOWS = 64  # of general text
GENERAL_WINDOW = 256  # tokens of each, at most


@dataclass(frozen=True)
class InstructRecipe(Recipe):
    """A causal language model on conversations; the loss counts what the assistant says."""

    model: Any = field(default_factory=lambda: config_class("llama")())
    """What is built from random weights; a model to start from brings its own sizes."""
    data: Conversations = field(default_factory=Conversations)
    start: StartLanguage = field(default_factory=StartLanguage)
    adapter: Any = None
    """What is trained in the place of the weights (`nn/adapters`); None: the weights."""
    penalty: NonNegative = 0.0
    """λ of the penalty toward the weights that training began with; 0: none."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        records = data.read()
        begun = self.begin(records)
        task, model = self.task(begun)
        tokenizer, longest = begun.tokenizer, limit(model.config, data.longest)  # virtual tokens take places
        train = encode_records(records.train, tokenizer, longest)
        valid = spread(encode_records(records.valid, tokenizer, longest), VALID_RECORDS)
        batch = fit_batch(loop, len(train["ids"]))
        micro = micro_batch(loop, batch)
        general = data.general.read(tokenizer, min(longest, GENERAL_WINDOW)) if self.remembers() else None
        sets: list[Iterable[Batch]] = [DialoguesInOrder(valid, max(micro, 64))]
        if general is not None:
            sets.append(Passages(general[1], min(longest, GENERAL_WINDOW) - 1, max(micro, 16), VALID_WINDOWS))
        view = ConversationView(model, tokenizer, [records.valid[i] for i in valid["ids"].tolist()])
        return Parts(
            task=task,
            model=model,
            stream=self.stream(train, general, min(longest, GENERAL_WINDOW), batch),
            valid=OneAfterAnother(*sets),
            optims={"model": self.optim},
            unit="conversations",
            units_per_batch=batch,
            facts={
                **data.describe(records),
                **({"started from": self.start.path, "its checksum": begun.base.checksum} if begun.base else {}),
                **describe_lengths(train, longest),
                "vocabulary": tokenizer.vocab,
                **({"general text": f"{data.general.share:.3g} of the examples"} if data.general.share else {}),
                "parameters that learn": sum(p.numel() for p in model.parameters() if p.requires_grad),
                **describe_batch(loop, batch),
            },
            save_extra=tokenizer.save,
            exhibits=view.show,
        )

    def begin(self, records: ConversationParts) -> Begun:
        """The model to train and its tokenizer. Below an adapter the vocabulary stays that of the base."""
        return self.start.begin(self.model, lambda: self.learn(records), self.prepare, self.loop.seed)

    def learn(self, records: ConversationParts) -> Tokenizer:
        text = self.data.general
        return self.data.learn_tokenizer(records.train, text.read_training() if self.remembers() else "")

    def prepare(self, tokenizer: Tokenizer) -> Tokenizer:
        return add_roles(tokenizer) if self.adapter is None else name_roles(tokenizer)

    def remembers(self) -> bool:
        """Whether general text is read: there is something to forget, or it is asked for."""
        return bool(self.start.path or self.data.general.path or self.data.general.share)

    def task(self, begun: Begun) -> tuple[Instruct, Any]:
        """What is learned, and the model that is saved."""
        if self.adapter is not None:
            if self.penalty:
                raise Mistake(
                    "--penalty keeps the weights near the base, and an adapter does not move them; leave it out"
                )
            model = self.adapter.apply(begun.model)
            return Instruct(model), model
        if not self.penalty:
            return Instruct(begun.model), begun.model
        if begun.base is None:
            raise Mistake("--penalty stays near a pre-trained model, and there is none; give --start.path too")
        return InstructNear(begun.model, copy.deepcopy(begun.model), self.penalty), begun.model

    def stream(self, train: Batch, general: tuple[Tensor, Tensor] | None, window: int, batch: int) -> Stream:
        """Conversations, and between them windows of the general text where a share is asked for."""
        seed, micro, share = self.loop.seed, micro_batch(self.loop, batch), self.data.general.share
        dialogues = Dialogues(train, batch, micro, seed, *process())
        if general is None or not share:
            return dialogues
        sources: Mapping[str, Any] = {"task": dialogues, "general": Replayed(general[0], window, seed)}
        return Mixture(sources, [Stage({"task": 1 - share, "general": share})], micro, seed, *process(), join=join_rows)

    def test(self) -> Iterable[Batch]:
        """The test part of a folder, or of the generated tasks."""
        records = self.data.read()
        if not records.test:
            return ()
        tokenizer = self.start.read_tokenizer(lambda: self.learn(records), self.prepare)
        taken = 0 if self.adapter is None else self.adapter.virtual
        longest = limit(self.start.read_config(self.model), self.data.longest, taken)
        return DialoguesInOrder(encode_records(records.test, tokenizer, longest), 64)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every record of a file, or the test part of a folder where it has one."""
        parts = read_records(path)
        records, tokenizer = parts["test"] or parts["train"], Tokenizer.load(folder)
        arrays = encode_records(records, tokenizer, limit(model.config, self.data.longest))
        view = ConversationView(model, tokenizer, records)
        return Judged(Instruct(model), DialoguesInOrder(arrays, 64), view.show)


def limit(config: Any, longest: int, taken: int = 0) -> int:
    """Tokens of a conversation: no more than the model reads, beside places that are taken."""
    return min(longest, config.context - taken) if "context" in type(config).__dataclass_fields__ else longest


def spread(arrays: Batch, most: int) -> Batch:
    """At most so many of the rows, spread evenly."""
    n = len(arrays["ids"])
    rows = torch.linspace(0, n - 1, min(most, n)).long()
    return {name: tensor[rows] for name, tensor in arrays.items()}


def describe_lengths(train: Batch, longest: int) -> dict[str, Any]:
    """What a run tells of the tokens of its conversations."""
    lengths, said = count_tokens(train), train["said"].sum(dim=1)
    cut = int((lengths == longest).sum())
    told = {"tokens of a conversation": round(float(lengths.float().mean()), 1)}
    told["of which are learned"] = round(float(said.float().mean()), 1)
    return told | ({f"as long as the {longest} tokens read, or cut there": cut} if cut else {})
