"""Four objectives at equal compute: causal, masked, instructions, RLHF. Is each the best at what it was trained for?

    causal        −log p of the next token                       decoder       writes text like the corpus
    masked        −log p of hidden tokens, from both sides       encoder       knows a hidden token
    instructions  causal, then −log p of answers to "praise it", "blame it" and "?"      does as it is told
    RLHF          causal, then a reward model and PPO            writes what annotators like

One language of answers, networks of one width and depth. Compute is counted in texts that pass through a network, a
backward pass as two: each objective has as many, with all of its stages, the writing of PPO and its four epochs.

    text          −log p of a token of new answers, from what comes before it; masked: by [MASK] behind it
    hidden        share of hidden tokens that are named; the decoders see what comes before
    instructions  share of what is written to both instructions that has words of the right kind alone, and no mistake
    reward        quality of what is written to "?": praising less blaming words less mistakes

VOM 13.8 gives the comparison as a table in words. Its classification is the naming of a hidden token here.

Sizes, rates, shares of the stages and all thresholds were chosen on seed 10.

Systems: pretraining-family-comparison
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._answers import (
    ASK_BLAME,
    ASK_PRAISE,
    ASKED,
    BLAME,
    CONFIG,
    LONGEST,
    MASK,
    MOST,
    PRAISE,
    STOP,
    WORDS,
    Texts,
    align,
    compare,
    count_mistakes,
    draw_answers,
    lay_out,
    learn_reward,
    log_chance,
    make_answer,
    quality,
    speak,
    write,
)
from descend.labs._evidence import AtLeast, NeedsMore
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.bert import BertConfig, BertForMaskedLM
from descend.models.gpt2 import GPT2

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.102",)
PRINTED = "Causal: generation. Masked: understanding. Instruction tuning: following instructions. RLHF: alignment."
CLAIM = "At equal compute each of the four objectives is the best of them on its own row."
PREDICTIONS = (
    AtLeast("text, nats", 0.02, "the next best −log p of a token less that of causal; less refutes it"),
    AtLeast("hidden", 0.04, "share of hidden tokens named: masked less the next best"),
    AtLeast("instructions", 0.3, "share obeyed: instructions less the next best"),
    AtLeast("reward", 0.5, "quality of what is written: RLHF less the next best"),
)
RETUNED = (
    'First recorded without "?" among the instructions: what a tuned model answers to a prompt that it never saw is'
    " chance, and on seed 0 it praised (quality 2.0, RLHF 1.3), which refuted the row of rewards. Then recorded with"
    ' any answers of the corpus to "?": a third of what instructions were learned from was the corpus, so that its row'
    ' was a tie of two models of the corpus (0.006, 0.033, 0.0003 nats of 0.02, open). Now the answers to "?" are'
    " demonstrations, too: fair ones. The same thresholds."
)
SCOPE = "networks of 17,000 weights, a language of 13 tokens, simulated annotators without noise"
BUDGET = 30.0
PRICE = 40.0  # steps of causal training that a second of one core buys, with all the rest
LEAST = 600
BATCH, TESTS, PAIRS = 64, 400, 2000
ENCODER = BertConfig(CONFIG.vocab, CONFIG.context, CONFIG.width, 1, CONFIG.heads, 4 * CONFIG.width, dropout=0.0)
NAMES = ("causal", "masked", "instructions", "RLHF")
PASSES = {"step": BATCH * 3, "pairs": 64 * 2 * 3, "ppo": 96 * (1 + 3 + 4 * 3)}  # of one step of each kind


def fill_in(steps: int, seed: int) -> BertForMaskedLM:
    """A masked language model of the answers. Of half of the texts a share of the tokens is hidden; the others are cut
    at a hidden token, so that it can write, too."""
    torch.manual_seed(seed)
    model, random = BertForMaskedLM(ENCODER), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        texts = lay_out(draw_answers(BATCH, random))
        hidden = texts.written & (torch.rand(texts.written.shape, generator=random) < 0.2)
        hidden[:, 1] |= ~hidden.any(1)
        place, real = torch.arange(LONGEST + 1), texts.written | (torch.arange(LONGEST + 1) == 0)
        length, cut = texts.written.sum(1, keepdim=True), torch.rand(BATCH, 1, generator=random) < 0.5
        last = 1 + (torch.rand(BATCH, 1, generator=random) * length).long()
        hidden = torch.where(cut, place == last, hidden)
        logits = model(texts.tokens.masked_fill(hidden, MASK), torch.where(cut, real & (place <= last), real))
        return cross_entropy(logits[hidden], texts.tokens[hidden]).mean()

    train(model, loss, steps, 5e-3)
    return model.eval()


def instruct(model: GPT2, steps: int, seed: int) -> GPT2:
    """The answers to both instructions, and fair ones to "?": as many words that praise as words that blame."""
    random = torch.Generator().manual_seed(seed)

    def fair() -> list[int]:
        each = 1 + int(torch.randint(MOST // 2, (), generator=random))
        words = [side[i] for side in (PRAISE, BLAME) for i in torch.randperm(len(side), generator=random)[:each]]
        return make_answer([words[i] for i in torch.randperm(len(words), generator=random)])

    def answers(words: tuple[int, ...]) -> list[list[int]]:
        sizes = 1 + torch.randint(len(words), (BATCH // 3,), generator=random)
        return [
            make_answer([words[i] for i in torch.randperm(len(words), generator=random)[:n]]) for n in sizes.tolist()
        ]

    def loss() -> Tensor:
        sides = [lay_out(answers(PRAISE), ASK_PRAISE), lay_out(answers(BLAME), ASK_BLAME)]
        sides.append(lay_out([fair() for _ in range(BATCH // 3)]))
        return -log_chance(model, Texts(*(torch.cat(pair) for pair in zip(*sides, strict=True))))

    train(model, loss, steps, 5e-3)
    return model.eval()


def reward(reference: GPT2, passes: int, seed: int) -> GPT2:
    """A reward model with a third of the passes, PPO with the rest."""
    random = torch.Generator().manual_seed(seed)
    pairs = compare(draw_answers(2 * PAIRS, random), quality, 0.0, random)
    marks = learn_reward(reference, pairs, passes // 3 // PASSES["pairs"], seed)
    return align(reference, marks, 0.1, passes * 2 // 3 // PASSES["ppo"], seed)


def make(steps: int, seed: int) -> dict[str, Any]:
    """All four, each with the passes of so many steps."""
    passes = steps * PASSES["step"]
    return {
        "causal": speak(steps, seed).eval(),
        "masked": fill_in(steps, seed),
        "instructions": instruct(speak(steps // 2, seed), steps - steps // 2, seed),
        "RLHF": reward(speak(steps // 3, seed).eval(), passes * 2 // 3, seed),
    }


# What is asked of all of them


@torch.no_grad()
def follow(model: Any, tokens: Tensor) -> Tensor:
    """log p of the token after these (n, t): (n, v)"""
    if isinstance(model, GPT2):
        found: Tensor = model(tokens)[:, -1]
    else:
        behind = torch.cat([tokens, torch.full_like(tokens[:, :1], MASK)], 1)
        found = model(behind, torch.ones_like(behind, dtype=torch.bool))[:, -1]
    return found.log_softmax(-1)


def say(model: Any, count: int, seed: int, prompt: int) -> list[list[int]]:
    """What it writes."""
    if isinstance(model, GPT2):
        return write(model, count, seed, prompt).answers()
    random, tokens = torch.Generator().manual_seed(seed), torch.full((count, 1), prompt)
    for _ in range(LONGEST):
        drawn = torch.multinomial(follow(model, tokens).exp(), 1, generator=random)
        tokens = torch.cat([tokens, drawn], 1)
    rows = [row[1:] for row in tokens.tolist()]
    return [row[: row.index(STOP) + 1] if STOP in row else row for row in rows]


def continue_text(model: Any, texts: Texts) -> float:
    """−log p of a written token."""
    total = 0.0
    for t in range(1, LONGEST + 1):
        at = texts.written[:, t]
        if at.any():
            total -= float(follow(model, texts.tokens[at, :t]).gather(1, texts.tokens[at, t : t + 1]).sum())
    return total / int(texts.written.sum())


@torch.no_grad()
def name_hidden(model: Any, texts: Texts, random: torch.Generator) -> float:
    """The share of right names, of one token of each text but its end."""
    right = 0
    for tokens, written in zip(texts.tokens, texts.written, strict=True):
        t = 1 + int(torch.randint(max(1, int(written.sum()) - 1), (), generator=random))
        if isinstance(model, GPT2):
            said = follow(model, tokens[None, :t])[0]
        else:
            end = int(written.sum()) + 1
            seen = tokens[None, :end].clone()
            seen[0, t] = MASK
            said = model(seen, torch.ones_like(seen, dtype=torch.bool))[0, t]
        right += int(said.argmax() == tokens[t])
    return right / len(texts.tokens)


def obeys(answer: list[int], words: tuple[int, ...]) -> bool:
    said = [token for token in answer if token in WORDS]
    return bool(said) and all(token in words for token in said) and not count_mistakes(answer)


def ask(model: Any, seed: int) -> dict[str, float]:
    """The four rows."""
    random = torch.Generator().manual_seed(10_000 + seed)
    texts = lay_out(draw_answers(TESTS, random))
    done = [
        obeys(answer, words)
        for prompt, words in ((ASK_PRAISE, PRAISE), (ASK_BLAME, BLAME))
        for answer in say(model, TESTS // 2, seed, prompt)
    ]
    return {
        "text": continue_text(model, texts),
        "hidden": name_hidden(model, texts, random),
        "instructions": fmean(done),
        "reward": fmean(map(quality, say(model, TESTS, seed, ASKED))),
    }


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Every row of every objective."""
    steps = round(PRICE * budget)
    if steps < LEAST:
        raise NeedsMore(LEAST / PRICE)
    found = {name: ask(model, seed) for name, model in make(steps, seed).items()}
    rows = {row: [found[name][row] for name in NAMES] for row in ("text", "hidden", "instructions", "reward")}
    return {"objective": list(NAMES), **rows, "steps": steps, "passes": steps * PASSES["step"]}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    def lead(row: str, own: int, sign: Callable[[float], float]) -> float:
        values = [sign(value) for value in numbers[row]]
        return values[own] - max(value for i, value in enumerate(values) if i != own)

    plain = lambda value: value
    return {
        "text, nats": lead("text", 0, lambda value: -value),
        **{row: lead(row, i, plain) for i, row in enumerate(("hidden", "instructions", "reward"), start=1)},
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """A panel for each row."""
    fig, panels = make_panels(4)
    titles = {
        "text": "−log p of new text", "hidden": "hidden tokens named", "instructions": "instructions obeyed",
        "reward": "quality of what is written",
    }  # fmt: skip
    for axes, (row, title) in zip(panels, titles.items(), strict=True):
        axes.bar(range(4), numbers[row], color=COLOURS[:4])
        axes.set_xticks(range(4), NAMES, rotation=20)
        finish(axes, title, "")
    return fig
