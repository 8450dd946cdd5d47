"""Pre-training recipes: an encoder learns to fill in the masked tokens of a text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.data.text.masking import Corruption, Dynamic, Masking, mask_arrays
from descend.data.text.plain import Text
from descend.data.text.repeats import describe_repeats
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.encoder import EncoderSize, build_encoder
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.masked import MaskedLanguage
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.text import show_masked_model
from descend.weights.labels import Labels

VALID_TEXTS = 1024  # at most, spread evenly over the validation text


@dataclass(frozen=True)
class MaskedRecipe(Recipe):
    """A masked language model on plain text, with fresh masks each time (RoBERTa's way, no next sentences)."""

    model: EncoderSize = field(default_factory=EncoderSize)
    data: Text = field(default_factory=Text)
    masking: Masking = field(default_factory=Masking)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    package: ClassVar[str] = "python"

    def build(self) -> Parts:
        loop = self.loop
        text = self.data.read()
        torch.manual_seed(loop.seed)
        model, inputs, origin = build_encoder(
            self.model, "ForMaskedLM", Labels(), lambda: self.data.learn_tokenizer(text)
        )
        tokens = self.data.split(text, inputs.tokenizer, inputs.longest)
        train, valid = (cut_windows(part.long(), inputs) for part in tokens)
        valid = valid[torch.linspace(0, len(valid) - 1, min(len(valid), VALID_TEXTS)).long()]
        corrupt = Corruption(self.masking, model.config.vocab, inputs.mask, inputs.special)
        batch = fit_batch(loop, len(train))
        micro = micro_batch(loop, batch)
        guess = unigram_entropy(tokens[0], tokens[1], model.config.vocab)
        return Parts(
            task=MaskedLanguage(model),
            model=model,
            stream=Dynamic(Shuffled({"x": train}, micro, loop.seed, *process()), corrupt, loop.seed),
            valid=InOrder(mask_arrays({"x": valid}, corrupt, seed=0), micro),
            optims={"model": self.optim},
            unit="tokens",
            units_per_batch=batch * inputs.longest,
            facts={
                "data": self.data.path or "the Python documentation",
                "started from": origin,
                "training tokens": len(tokens[0]),
                "validation tokens": len(tokens[1]),
                **describe_repeats(tokens[0], tokens[1]),
                "vocabulary": model.config.vocab,
                "loss of a guess by frequency": round(guess, 3),
                **describe_batch(loop, batch),
            },
            save_extra=inputs.tokenizer.save,
            exhibits=lambda: show_masked_model(model, inputs, valid),
        )

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """A text from its beginning to its end, its masks the same each time."""
        text, tokenizer = replace(self.data, path=path).read(), Tokenizer.load(folder)
        inputs = Inputs.of(tokenizer, min(self.model.context, model.longest))
        windows = cut_windows(torch.tensor(tokenizer.encode(text)), inputs)
        corrupt = Corruption(self.masking, model.config.vocab, inputs.mask, inputs.special)
        return Judged(MaskedLanguage(model), InOrder(mask_arrays({"x": windows}, corrupt, seed=0), self.loop.batch))


def cut_windows(tokens: Tensor, inputs: Inputs) -> Tensor:
    """[CLS] .. [SEP], one after the other through the text: (n, longest)"""
    room = inputs.longest - 2
    if len(tokens) < room:
        raise Mistake(f"{len(tokens)} tokens of text are fewer than --model.context {inputs.longest}; give more text")
    cut = tokens.unfold(0, room, room)
    ends = torch.full((len(cut), 1), inputs.cls), torch.full((len(cut), 1), inputs.sep)
    return torch.cat([ends[0], cut, ends[1]], dim=1)


def unigram_entropy(train: Tensor, valid: Tensor, vocab: int) -> float:
    """The mean loss on `valid` of one who knows only how frequent each token is in `train` (plus one of each)."""
    counts = torch.bincount(train.long(), minlength=vocab) + 1
    return float(-(counts / counts.sum()).log()[valid.long()].mean())
