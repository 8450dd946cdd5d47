"""The stages of alignment, each with its task, its data and its optimizer; the kinds put them together.

    pretrain    plain text                        language model
    instruct    prompts and responses             language model (SFT): all responses that people gave, good and bad
    reward      rankings                          reward model, which begins as a copy of the language model
    prefer      pairs                             language model (DPO); a copy of it before becomes the reference
    policy      prompts and what it writes        language model (PPO), judged by the reward model

Systems: rlhf, dpo, reward-model, multi-stage-training
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Exhibit, Stream
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.data.streams.sliced import Sliced
from descend.data.text.plain import Passages, Windows, count_windows
from descend.data.text.preference_source import PreferenceParts
from descend.data.text.preferences import (
    PreferencesInOrder,
    ShuffledPreferences,
    split_pairs,
    tokenize,
    tokenize_prompts,
)
from descend.data.text.responses import Responses, respond
from descend.data.text.sentiment import generate_opinions
from descend.errors import Mistake
from descend.kinds.recipe import micro_batch
from descend.models import load, with_head
from descend.models._text_scores import ScoresTexts, copy_trunk
from descend.nn.value_head import ReadsStates, WithValues
from descend.tasks.chain import Link, hand_over
from descend.tasks.direct_preference import DirectPreference
from descend.tasks.instruct import Instruct
from descend.tasks.language import Language
from descend.tasks.language_policy import LanguagePolicy
from descend.tasks.reward import RankResponses
from descend.text.tokenizer import Tokenizer
from descend.views.attempts import show_each
from descend.views.preferences import show_pairs, show_responses
from descend.weights.checkpoints import resolve_checkpoint

PARTS = ("train", "valid")
SCORED = 256  # records, or texts that are written, in an evaluation
VALID_SEED = 2**20  # of texts written for evaluations
HEAD = "ForSequenceClassification"


@dataclass(frozen=True)
class AlignmentStage:
    """What one stage needs."""

    link: Link
    stream: Stream
    valid: Iterable[Batch]
    rate: Callable[[Batch], Tensor]
    """Preferences -> the reward of each response (b, K), as this stage sees it."""


@dataclass
class Workshop:
    """Makes the stages of a recipe around one language model."""

    recipe: Any
    records: PreferenceParts
    language: Any
    tokenizer: Tokenizer
    batch: int

    @property
    def context(self) -> int:
        """Tokens that the model reads at once."""
        return int(self.language.config.context)

    def shuffle(self, arrays: Batch, number: int) -> ShuffledPreferences:
        """A stream of a stage; each has an order of its own."""
        seed = self.recipe.loop.seed + number
        return ShuffledPreferences(arrays, micro_batch(self.recipe.loop, self.batch), seed, *process())

    # The stages

    def pretrain(self, number: int) -> AlignmentStage:
        text = self.recipe.text.read() if self.recipe.text.path else "\n".join(generate_opinions().texts) + "\n"
        cut = round(0.9 * len(text))
        train, valid = (torch.tensor(self.tokenizer.encode(part)) for part in (text[:cut], text[cut:]))
        window = min(self.context, len(valid) - 1)
        if window < 1 or count_windows(len(train), window) < self.batch:
            raise Mistake(f"--text.path {self.recipe.text.path}: {len(train)} tokens are too few; give more text")
        micro, seed = micro_batch(self.recipe.loop, self.batch), self.recipe.loop.seed + number
        stream = Windows(train, window, micro, seed, *process())
        link = Link("pretrain", "language", Language(self.language))
        return AlignmentStage(link, stream, Passages(valid, window, 64, 64), self.rate)

    def instruct(self, number: int) -> AlignmentStage:
        sets = {part: as_dialogues(tokenize(self.records[part], self.tokenizer, self.context)) for part in PARTS}
        stream = Shuffled(sets["train"], micro_batch(self.recipe.loop, self.batch), self.recipe.loop.seed, *process())
        valid = {name: x[:SCORED] for name, x in sets["valid"].items()}
        return AlignmentStage(
            Link("instruct", "language", Instruct(self.language)), stream, InOrder(valid, 64), self.rate
        )

    def reward(self, number: int) -> AlignmentStage:
        sets = {part: tokenize(self.records[part], self.tokenizer, self.context) for part in PARTS}
        link = Link("reward", "reward", RankResponses(self.scorer), lambda: copy_trunk(self.scorer, self.language))
        return AlignmentStage(
            link, self.shuffle(sets["train"], number), PreferencesInOrder(sets["valid"], 64), self.rate
        )

    def prefer(self, number: int) -> AlignmentStage:
        sets = {part: tokenize(split_pairs(self.records[part]), self.tokenizer, self.context) for part in PARTS}
        beta = self.recipe.beta
        task = DirectPreference(self.language, self.reference, beta, self.write, self.measure, self.recipe.anchor)
        link = Link("prefer", "policy", task, hand_over(self.language, self.reference))
        valid = {name: spread(x, SCORED) for name, x in sets["valid"].items()}
        batches = Together(PreferencesInOrder(valid, 64), self.prompts("valid"))
        rate = lambda batch: beta * task.log_ratio(batch["tokens"], batch["written"])
        return AlignmentStage(link, self.shuffle(sets["train"], number), batches, rate)

    def policy(self, number: int, enter: Callable[[], None]) -> AlignmentStage:
        """`enter` begins the stage: the texts are written, and looked back at, before its first move."""
        loop, numbers = self.recipe.loop, self.recipe.ppo
        task = LanguagePolicy(
            self.values, self.reference, self.scorer, numbers, self.write, self.measure, self.write_before
        )
        if not self.recipe.rewards.path:
            self.scorer.requires_grad_(True)  # it learns in a stage before

        def look_back(texts: dict[str, Tensor]) -> dict[str, Tensor]:
            enter()
            return task.look_back(texts)

        asked = tokenize_prompts(self.records["train"], self.tokenizer, self.room)
        stream = Responses(asked, self.respond, look_back, self.batch, loop.seed + number)
        sliced = Sliced(stream, self.batch, loop.accumulate, *process())
        link = Link("policy", "policy", task, hand_over(self.language, self.reference))
        return AlignmentStage(link, sliced, self.prompts("valid"), self.rate)

    def rate(self, batch: Batch) -> Tensor:
        """r (b, K) by the reward model."""
        return RankResponses(self.scorer).rewards(batch)[0]

    # The networks

    @cached_property
    def scorer(self) -> ScoresTexts:
        """The reward model: that of --rewards.path, or one that is made of the language model."""
        path = getattr(self.recipe, "rewards", None) and self.recipe.rewards.path
        return open_scorer(path, self.tokenizer) if path else make_scorer(self.language)

    @cached_property
    def reference(self) -> Any:
        """The language model as it is before its last stage."""
        return copy.deepcopy(self.language).eval().requires_grad_(False)

    @cached_property
    def values(self) -> WithValues:
        """The language model with a value for each prefix."""
        model = self.language
        if not isinstance(model, ReadsStates):
            raise Mistake(f"a {type(model).__name__} shows no states to read values from; use gpt2 or llama")
        return WithValues(self.language, self.language.config.width)

    # What the language model writes

    @property
    def room(self) -> int:
        """Tokens of a prompt, at most."""
        return self.context - int(self.recipe.longest)

    def respond(self, prompts: Sequence[Sequence[int]], seed: int) -> dict[str, Tensor]:
        """Prompts and what is written after them."""
        return self.continue_by(self.language, prompts, seed)

    def continue_by(self, model: Any, prompts: Sequence[Sequence[int]], seed: int) -> dict[str, Tensor]:
        """The same by any model of these tokens."""
        end = () if self.tokenizer.end is None else (self.tokenizer.end,)
        return respond(model.decoder(), prompts, self.recipe.longest, seed, end)

    def write(self, batch: Batch) -> Batch:
        """A batch of prompts, continued; the same random numbers each time."""
        return self.respond(*list_prompts(batch))

    def write_before(self, batch: Batch) -> Batch:
        """The same by the reference."""
        return self.continue_by(self.reference, *list_prompts(batch))

    def measure(self, texts: Batch) -> dict[str, Tensor]:
        """The true quality of what was written, where it is known."""
        quality = self.records.quality
        if quality is None:
            return {}
        rows = zip(texts["tokens"].tolist(), texts["written"].tolist(), strict=True)
        pairs = [self.read_texts(*row) for row in rows]
        return {"quality": torch.tensor([quality(*pair) for pair in pairs])}

    def read_texts(self, tokens: list[int], written: list[bool]) -> tuple[str, str]:
        """Prompt and response of a row as texts."""
        first = written.index(True) if True in written else len(tokens)
        said = [token for token, mine in zip(tokens, written, strict=True) if mine]
        return self.tokenizer.decode(tokens[:first]), self.tokenizer.decode_plain(said)

    def prompts(self, part: str) -> Iterable[Batch]:
        """The prompts of a part, to write for."""
        return repeat_prompts(self.records, part, self.tokenizer, self.room)

    def show(self, rate: Callable[[Batch], Tensor]) -> list[Exhibit]:
        """Held-out responses in their order with the rewards of each, and what the model writes now."""
        records = self.records["valid"][:SCORED]
        asked = next(iter(self.prompts("valid")))
        return show_each(
            {
                "Preferences": lambda: show_pairs(rate, records, self.tokenizer, self.context),
                "What it writes": lambda: show_responses(self.list_written(asked), self.records.quality),
            }
        )

    def list_written(self, asked: Batch) -> list[tuple[str, str]]:
        """Prompts and responses as texts."""
        texts = self.write(asked)
        rows = zip(texts["tokens"].tolist(), texts["written"].tolist(), strict=True)
        return [self.read_texts(*row) for row in rows]


def list_prompts(batch: Batch) -> tuple[list[list[int]], int]:
    """The prompts of a batch, and the seed with which they are continued."""
    rows = zip(batch["tokens"].tolist(), batch["asked"].tolist(), strict=True)
    return [row[:asked] for row, asked in rows], VALID_SEED + int(batch["ids"][0])


def repeat_prompts(records: PreferenceParts, part: str, tokenizer: Tokenizer, room: int) -> Iterable[Batch]:
    """The prompts of a part, each as often as makes SCORED texts: tokens (n, t), and how many are asked (n)."""
    found = tokenize_prompts(records[part], tokenizer, room)
    found = (found * -(-SCORED // len(found)))[:SCORED]
    asked = torch.tensor([len(prompt) for prompt in found])
    tokens = torch.zeros(len(found), int(asked.max()), dtype=torch.long)
    for row, prompt in zip(tokens, found, strict=True):
        row[: len(prompt)] = torch.tensor(prompt)
    return InOrder({"tokens": tokens, "asked": asked, "ids": torch.arange(len(found))}, 64)


@dataclass(frozen=True)
class Together:
    """Batches of one kind after those of another."""

    first: Iterable[Batch]
    second: Iterable[Batch]

    def __iter__(self) -> Iterator[Batch]:
        yield from self.first
        yield from self.second


@dataclass(frozen=True)
class OfStage:
    """Batches that say their stage."""

    batches: Iterable[Batch]
    stage: int

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches:
            yield {**batch, "stage": torch.full((len(batch["ids"]),), self.stage)}


def as_dialogues(arrays: Batch) -> Batch:
    """Every response as an example to learn from: tokens (n, t), padded with −1, and said (n, t)."""
    written = arrays["written"].flatten(0, 1)
    there = written.any(1)
    tokens, written = arrays["tokens"].flatten(0, 1)[there], written[there]
    last = (written * torch.arange(written.shape[1])).amax(1)
    padding = torch.arange(written.shape[1]) > last[:, None]
    return {"tokens": tokens.masked_fill(padding, -1), "said": written, "ids": torch.arange(len(tokens))}


def spread(x: Tensor, most: int) -> Tensor:
    """At most so many of the rows, spread evenly."""
    return x[torch.linspace(0, len(x) - 1, min(most, len(x))).long()]


def make_scorer(language: Any) -> ScoresTexts:
    """A reward model of the language model's family and sizes."""
    try:
        found = with_head(language.config, HEAD)
    except Mistake:
        found = None
    if not isinstance(found, ScoresTexts):
        raise Mistake(f"a {type(language).__name__} cannot become a reward model; use gpt2 or llama")
    copy_trunk(found, language)
    return found


def open_scorer(path: str, tokenizer: Tokenizer) -> ScoresTexts:
    """A reward model that was trained, with the same tokenizer."""
    folder = resolve_checkpoint(path)
    found = load(folder)
    if not isinstance(found, ScoresTexts):
        held = type(found).__name__
        raise Mistake(f"--rewards.path {path} holds a {held}, which is no reward model; descend train reward-opinions")
    if Tokenizer.load(folder).inner.get_vocab() != tokenizer.inner.get_vocab():
        raise Mistake(
            f"--rewards.path {path} reads other tokens than the language model; train it with the same --start.path"
        )
    return found


def silence_dropout(model: Any) -> Any:
    """The same model without dropout: the policy that writes must be the one that learns."""
    if not getattr(model.config, "dropout", 0.0):
        return model
    quiet = type(model)(replace(model.config, dropout=0.0))
    quiet.load_state_dict(model.state_dict())
    quiet.companions = model.companions
    return quiet


def save_beside(folder: Path, networks: dict[str, Any], tokenizer: Tokenizer) -> None:
    """The other networks of a run, each a folder of its own that opens like any model."""
    for name, network in networks.items():
        network.save_pretrained(folder / name)
        tokenizer.save(folder / name)


def take_beside(folder: Path, networks: dict[str, nn.Module]) -> None:
    """Their weights again."""
    for name, network in networks.items():
        network.load_state_dict(load(folder / name).state_dict())
