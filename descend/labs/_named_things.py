"""Texts with names of people and places, an encoder that learns to fill in their gaps, and taggers of the names.

    clause     WHO verb WHOM, WHO verb WHOM preposition WHERE, each with "." behind it; three of them, cut at 16 tokens
    WHO, WHOM  a person: one or two names, or an article and a noun
    WHERE      a place: one or two names, or an article and a noun
    tags       B-person, I-person, B-place, I-place and O; judged by the F1 of whole names

Of 80 names 30 are of people only, 30 of places only, and 20 of both: these are told by what stands before. Pre-training
sees many texts without tags, a tagger is taught with a few tagged ones, in which many a name never occurs.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.data.text.masking import Corruption, Masking
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.metrics.spans import thing_f1
from descend.models.bert import BertConfig, BertForMaskedLM, BertForTokenClassification
from descend.nn.layer_mix import STRATEGIES, FeatureTagger
from descend.tasks.masked import MaskedLanguage
from descend.weights.labels import Labels

SIZES = {"stop": 1, "article": 2, "preposition": 4, "noun": 20, "verb": 20, "person": 30, "place": 30, "both": 20}
WORDS = sum(SIZES.values())
MASK, LENGTH = WORDS, 16
KINDS = ("person", "place")
TAGS = ("O", "B-person", "I-person", "B-place", "I-place")
WIDTH, DEPTH, HEADS, HIDDEN = 32, 4, 2, 24
CONFIG = BertConfig(WORDS + 1, LENGTH, WIDTH, DEPTH, HEADS, 2 * WIDTH, dropout=0.0, labels=Labels(TAGS))
BATCH, RATE = 64, 4e-3


def list_words() -> dict[str, range]:
    """The numbers of the words of each kind."""
    ends = torch.tensor(list(SIZES.values())).cumsum(0).tolist()
    return {name: range(end - size, end) for (name, size), end in zip(SIZES.items(), ends, strict=True)}


def draw_texts(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Texts (n, t) and the numbers of their tags (n, t)."""
    chance, words = random.Random(seed), list_words()

    def name(kind: str) -> list[tuple[int, int]]:
        if chance.random() < 0.35:
            return [(chance.choice(words["article"]), 0), (chance.choice(words["noun"]), 0)]
        first, names = 1 + 2 * KINDS.index(kind), [*words[kind], *words["both"]]
        return [(chance.choice(names), first + i) for i in range(1 + (chance.random() < 0.4))]

    def clause() -> list[tuple[int, int]]:
        found = [*name("person"), (chance.choice(words["verb"]), 0), *name("person")]
        if chance.random() < 0.7:
            found += [(chance.choice(words["preposition"]), 0), *name("place")]
        return [*found, (0, 0)]

    texts = torch.tensor([[*clause(), *clause(), *clause(), *clause()][:LENGTH] for _ in range(count)])
    return texts[..., 0], texts[..., 1]


def widen_start(model: nn.Module) -> None:
    """N(0, 1/n): the released N(0, 0.02²) is for wide models, a narrow one would start late."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)


def fill_gaps(texts: Tensor, masking: Masking, steps: int, seed: int) -> BertForMaskedLM:
    """Masked language modelling; the same texts and the same chosen tokens for every masking."""
    torch.manual_seed(seed)
    model, random = BertForMaskedLM(CONFIG), torch.Generator().manual_seed(seed)
    widen_start(model)
    task, corrupt = MaskedLanguage(model), Corruption(masking, WORDS, MASK, ())

    def loss() -> Tensor:
        rows = torch.randint(len(texts), (BATCH,), generator=random)
        batch = corrupt(texts[rows], torch.rand(BATCH, LENGTH, 3, generator=random))
        return cross_entropy(task.logits(batch), batch["y"][batch["at"]]).mean()

    train(model, loss, steps, RATE)
    return model.eval()


def teach(tagger: nn.Module, x: Tensor, y: Tensor, steps: int, rate: float, seed: int) -> None:
    """A tagger learns from a few tagged texts."""
    random = torch.Generator().manual_seed(seed + 2)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (32,), generator=random)
        return cross_entropy(tagger(x[rows]).flatten(0, 1), y[rows].flatten()).mean()

    train(tagger, loss, steps, rate)


def on_features(encoder: BertForMaskedLM, strategy: str, seed: int) -> FeatureTagger:
    """A new BiLSTM on layers of the encoder, which stays as it is."""
    torch.manual_seed(seed)
    width = WIDTH * (4 if strategy.startswith("concat") else 1)
    return FeatureTagger(encoder, STRATEGIES[strategy](DEPTH), width, HIDDEN, len(TAGS))


def on_top(encoder: BertForMaskedLM | None, seed: int) -> BertForTokenClassification:
    """A new head on a copy of the encoder, all of which learns; on random weights where there is none."""
    torch.manual_seed(seed)
    model = BertForTokenClassification(CONFIG)
    widen_start(model)
    if encoder is not None:
        known = model.state_dict()
        model.load_state_dict({**known, **{k: v for k, v in encoder.state_dict().items() if k in known}})
    return model


@torch.no_grad()
def score(tagger: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> float:
    """F1 of whole names."""
    spell = lambda rows: [[TAGS[tag] for tag in row] for row in rows.tolist()]
    return thing_f1(spell(tagger(x).argmax(-1)), spell(y))
