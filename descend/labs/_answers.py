"""A small language of answers with a known quality, a model that speaks it, and PPO and reward models on it.

    answer     WORD | WORD and WORD | WORD , WORD and WORD | WORD , WORD , WORD and WORD, then "."
    words      3 praise, 3 blame; each at most once in an answer
    quality    (different praising words) − (different blaming words) − (mistakes)
    mistake    a word that was said already, or that follows a word with nothing between them

What a policy writes has a quality too, whether it speaks the language or not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.data.text.responses import Responses, respond
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._train import train
from descend.losses.preference import response_log_prob
from descend.models._text_scores import copy_trunk
from descend.models.gpt2 import GPT2, GPT2Config, GPT2ForSequenceClassification
from descend.nn.value_head import WithValues
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.tasks.language_policy import LanguagePolicy, ProximalTokens
from descend.tasks.reward import RankResponses

TOKENS = (".", ",", "and", "good", "clever", "fine", "bad", "dull", "long", "?", "praise it", "blame it", "[MASK]")
STOP, COMMA, AND, ASKED, ASK_PRAISE, ASK_BLAME, MASK = 0, 1, 2, 9, 10, 11, 12
PRAISE, BLAME = (3, 4, 5), (6, 7, 8)
WORDS = (*PRAISE, *BLAME)
LONGEST, MOST = 8, 4  # tokens of an answer, its end included; words
CONFIG = GPT2Config(vocab=len(TOKENS), context=LONGEST + 1, width=32, depth=1, heads=2, dropout=0.0)

Judge = Callable[[Sequence[int]], float]
"""The tokens of an answer -> its reward."""


class Texts(NamedTuple):
    """Answers behind the prompt: tokens (n, t), zeros after their ends, and which were written (n, t)."""

    tokens: Tensor
    written: Tensor

    def answers(self) -> list[list[int]]:
        rows = zip(self.tokens.tolist(), self.written.tolist(), strict=True)
        return [[token for token, mine in zip(*row, strict=True) if mine] for row in rows]


def make_answer(words: Sequence[int]) -> list[int]:
    """These words as an answer."""
    found = [words[0]]
    for i, word in enumerate(words[1:], start=2):
        found += [AND if i == len(words) else COMMA, word]
    return [*found, STOP]


def draw_answers(count: int, random: torch.Generator) -> list[list[int]]:
    """Answers of the language: any number of words, any words."""
    sizes = 1 + torch.randint(MOST, (count,), generator=random)
    return [make_answer([WORDS[i] for i in torch.randperm(6, generator=random)[:n]]) for n in sizes.tolist()]


def lay_out(answers: Sequence[Sequence[int]], prompt: int = ASKED) -> Texts:
    """These answers to a prompt."""
    tokens = torch.zeros(len(answers), LONGEST + 1, dtype=torch.long)
    written = torch.zeros_like(tokens, dtype=torch.bool)
    tokens[:, 0] = prompt
    for i, answer in enumerate(answers):
        tokens[i, 1 : 1 + len(answer)], written[i, 1 : 1 + len(answer)] = torch.tensor(answer), True
    return Texts(tokens, written)


def count_mistakes(answer: Sequence[int]) -> int:
    """Words that were said already, or follow a word at once."""
    wrong = [token in answer[:i] or (i > 0 and answer[i - 1] in WORDS) for i, token in enumerate(answer)]
    return sum(bad for token, bad in zip(answer, wrong, strict=True) if token in WORDS)


def quality(answer: Sequence[int]) -> float:
    """How good an answer really is."""
    said = set(answer)
    return float(len(said & set(PRAISE)) - len(said & set(BLAME)) - count_mistakes(answer))


def speak(steps: int, seed: int) -> GPT2:
    """A language model of the answers."""
    torch.manual_seed(seed)
    model, random = GPT2(CONFIG), torch.Generator().manual_seed(seed)

    train(model, lambda: -log_chance(model, lay_out(draw_answers(64, random))), steps, 5e-3)
    return model


def log_chance(model: nn.Module, texts: Texts) -> Tensor:
    """log π of a written token, on average."""
    return response_log_prob(model(texts.tokens[:, :-1]), texts.tokens, texts.written).sum() / texts.written.sum()


@torch.no_grad()
def write(model: GPT2, count: int, seed: int, prompt: int = ASKED) -> Texts:
    """What a model answers."""
    found = respond(model.decoder(), [[prompt]] * count, LONGEST, seed, (STOP,))
    return Texts(found["tokens"], found["written"])


@torch.no_grad()
def log_ratio(policy: GPT2, reference: GPT2, texts: Texts) -> tuple[Tensor, Tensor]:
    """log π(y|x) − log π_ref(y|x) of each text (n), and log π_ref(y|x) (n)."""
    mine, theirs = (
        response_log_prob(model(texts.tokens[:, :-1]), texts.tokens, texts.written) for model in (policy, reference)
    )
    return mine - theirs, theirs


def compare(answers: Sequence[Sequence[int]], worth: Judge, noise: float, random: torch.Generator) -> Texts:
    """Each two that follow each other as a pair (n/2, 2, t), the preferred one first, by an annotator who errs as
    Bradley and Terry say; without noise, what is worth the same is not compared."""
    value = torch.tensor([worth(answer) for answer in answers]).view(-1, 2)
    texts = Texts(*(x.view(-1, 2, x.shape[-1]) for x in lay_out(answers)))
    if not noise:
        kept = value[:, 0] != value[:, 1]
        value, texts = value[kept], Texts(*(x[kept] for x in texts))
    chance = (value.diff(dim=1)[:, 0] / (noise or 1e-9)).sigmoid()  # of the second
    swap = torch.rand(len(value), generator=random) < chance
    return Texts(*(torch.where(swap[:, None, None], x.flip(1), x) for x in texts))


def learn_reward(reference: GPT2, pairs: Texts, steps: int, seed: int) -> GPT2ForSequenceClassification:
    """A reward model that begins as the reference."""
    torch.manual_seed(seed)
    model = GPT2ForSequenceClassification(CONFIG)
    copy_trunk(model, reference)
    task, random = RankResponses(model), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(pairs.tokens), (64,), generator=random)
        return task.loss({"tokens": pairs.tokens[rows], "written": pairs.written[rows]}).total()

    train(model, loss, steps, 3e-3)
    return model.eval()


class Judged(nn.Module):
    """tokens and `written` (n, t) -> rewards (n) by a function of the answer."""

    def __init__(self, judge: Judge):
        super().__init__()
        self.judge = judge

    def forward(self, tokens: Tensor, written: Tensor) -> Tensor:
        return torch.tensor([self.judge(answer) for answer in Texts(tokens, written).answers()])


def align(reference: GPT2, reward: nn.Module, beta: float, steps: int, seed: int, batch: int = 96) -> GPT2:
    """A copy of the reference after so many batches of PPO."""
    torch.manual_seed(seed)
    model = copy.deepcopy(reference)
    ask = lambda prompts, chance: respond(model.decoder(), prompts, LONGEST, chance, (STOP,))
    numbers = ProximalTokens(beta=beta)
    task = LanguagePolicy(WithValues(model, CONFIG.width), copy.deepcopy(reference), reward, numbers, lambda x: x)
    stream = Responses([[ASKED]], ask, task.look_back, batch, seed)
    loop = Loop(steps=steps, seed=seed, precision="float32", compile="off", clip=1.0)
    run = Training(Parts(task, model, stream, (), {"policy": Adam(3e-3)}), loop, Cosine(warmup=0, floor=0.1), World())
    for _ in range(steps):
        run.advance()
    return model.eval()
