"""What the recipes of text encoders share: a new BERT of a given size, or a pre-trained one with a new head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Exhibit, Task
from descend.data.streams.shards import process
from descend.data.text.labelled import Trimmed, TrimmedInOrder
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.models import load, model_folder, with_head
from descend.models.bert import BertConfig
from descend.nn.transfer import freeze
from descend.ranges import Depth, Fraction, Length, Width
from descend.tasks.fine_tune import run_encoder
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels
from descend.weights.transfer import take_over

Show = Callable[[Callable[[Batch], Tensor], Any, Inputs], list[Exhibit]]
"""What the model says of a batch, data and the form of the inputs -> what the report shows"""
BODY = ("embed", "encoder")


@dataclass(frozen=True)
class EncoderSize:
    """The encoder: sizes of a new one, or the folder of a trained one."""

    path: str = ""
    """A run's folder or a model folder (BERT, RoBERTa) to start from; its sizes are kept, all but the context."""
    context: Length = 128
    """Maximum tokens per text."""
    width: Width = 128
    depth: Depth = 4
    heads: Width = 4
    hidden: Width = 512
    dropout: Fraction = 0.1
    freeze: str = ""
    """body (only the head learns), or parts of the pre-trained model that stay as they are: embed,encoder.layers.0."""


def build_encoder(
    size: EncoderSize, head: str, labels: Labels, learn_tokenizer: Callable[[], Tokenizer]
) -> tuple[Any, Inputs, str]:
    """The model with this head, the form of its inputs, and what it started from."""
    if not size.path:
        if size.freeze:
            raise Mistake("--model.freeze keeps what was trained, and nothing was; give --model.path too")
        inputs = Inputs.extend(learn_tokenizer(), size.context)
        try:
            config = BertConfig(
                inputs.tokenizer.vocab, size.context, size.width, size.depth, size.heads, size.hidden,
                dropout=size.dropout, pad=inputs.pad, labels=labels,
            )  # fmt: skip
            return with_head(config, head), inputs, "random weights"
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
    source, folder = load(size.path), model_folder(size.path)
    if "labels" not in {f.name for f in fields(source.config)}:
        raise Mistake(f"--model.path {size.path}: {type(source).__name__} is not an encoder such as BERT or RoBERTa")
    model: Any = with_head(replace(source.config, labels=labels), head)
    new = take_over(model, source, BODY)
    freeze(model, BODY if size.freeze == "body" else [part.strip() for part in size.freeze.split(",") if part.strip()])
    origin = (
        f"{size.path} ({'new: ' + ', '.join(sorted({name.partition('.')[0] for name in new})) if new else 'whole'})"
    )
    return model.train(), Inputs.of(Tokenizer.load(folder), min(size.context, model.longest)), origin


def build_fine_tuning(recipe: Recipe, task: Callable[[Any], Task], unit: str, default: str, show: Show) -> Parts:
    """The parts of a recipe that fine-tunes an encoder on `unit`s; `default` says what is read without --data.path."""
    loop = recipe.loop
    data, model, inputs, origin = recipe.parts()  # type: ignore[attr-defined]
    batch = fit_batch(loop, len(data.parts["train"]))
    return Parts(
        task=task(model),
        model=model,
        stream=Trimmed(data.arrays("train", inputs), batch, micro_batch(loop, batch), loop.seed, *process()),
        valid=TrimmedInOrder(data.arrays("valid", inputs), 64),
        optims={"model": recipe.optim},
        unit=unit,
        units_per_batch=batch,
        facts={
            "data": recipe.data.path or default,
            "started from": origin,
            **{f"{name} {unit}": len(rows) for name, rows in data.parts.items()},
            "labels": len(data.names),
            **data.facts,
            "vocabulary": model.config.vocab,
            **describe_batch(loop, batch),
        },
        save_extra=inputs.tokenizer.save,
        exhibits=lambda: show(partial(predict, model), data, inputs),
    )


def predict(model: nn.Module, batch: Batch) -> Tensor:
    """The logits of a batch, on the CPU."""
    where = next(model.parameters()).device
    return run_encoder(model, {name: value.to(where) for name, value in batch.items()}).cpu()
