"""What annotators are biased to, a reward model learns, and a policy that is trained by it exaggerates.

    length      annotators who always prefer the shorter answer: what does the reward model learn, r ≈ −len(y)?
    planted     annotators who compare by quality + 1 [the answer begins with "clever"], and err as Bradley and Terry
                say (τ = 0.5); the word is as good as two others, and comes first in a sixth of the answers compared
    asked for   the share of answers that begin with it among those that they preferred
    policy      PPO on the reward model's marks, β = 0.2: the share among what it writes
    fair        the same with annotators who compare by quality alone

Both books state it and give no numbers (VOM 13.7.4, S940 7.3). An optimiser goes where the mark is highest in every
answer, while annotators preferred the biased answer only somewhat more often: that is why it is amplified.

Sizes, rates, noise and all thresholds were chosen on seed 10.

Systems: biased-reward-labs
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from descend.labs._answers import (
    Texts,
    align,
    compare,
    draw_answers,
    lay_out,
    learn_reward,
    make_answer,
    quality,
    speak,
    write,
)
from descend.labs._evidence import AtLeast, AtMost, NeedsMore
from descend.labs._panels import COLOURS, finish, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.97", "S940-DLD.205")
PRINTED = "A reward model of annotators who prefer shorter answers learns the length; feedback replicates biases."
CLAIM = (
    "A reward model of annotators who prefer the shorter answer learns the length, whatever the content; a planted bias"
    " is in the reward, and the policy shows it far more often than the annotators asked for."
)
PREDICTIONS = (
    AtMost("rank correlation of reward and length", -0.95, "Spearman, on new answers; above it refutes"),
    AtMost("content, beside length", 0.1, "standard deviation of the reward at equal length, a share of the whole one"),
    AtLeast("biased twin preferred", 0.9, "of answers in pairs that differ in their first word alone"),
    AtLeast("share above what was asked for", 0.2, "of answers that begin with the word: policy less preferred ones"),
    AtLeast("share above the fair policy", 0.15, "the same policy, trained by annotators without the bias"),
)
CONTROLS = (
    AtLeast("fair rewards follow quality", 0.9, "Spearman on new answers: the same model learns content when asked to"),
)
SCOPE = "a transformer of 17,000 weights, a language of 9 tokens, biases of one kind, simulated annotators"
RETUNED = (
    "First recorded with 100 batches of PPO: 0.585 and 0.201 above what was asked for, 0.55 and 0.123 above the fair"
    " policy on seeds 0 and 1, so that the last one would have been open. 200 batches since; the same thresholds."
)
BUDGET = 32.0
PRICE = 6.25  # batches of PPO for each of the two policies that a second of one core buys, with all that comes before
LEAST = 120
SPOKEN, MARKED = 500, 800  # steps of the reference, and of each reward model
PAIRS, NEW, NOISE, BETA = 4000, 600, 0.5, 0.2
CLEVER, GOOD = 4, 3


def count_tokens(answer: Sequence[int]) -> float:
    return -float(len(answer))


def begins(answer: Sequence[int]) -> bool:
    return answer[0] == CLEVER


def biased(answer: Sequence[int]) -> float:
    """What the biased annotators go by."""
    return quality(answer) + float(begins(answer))


@torch.no_grad()
def rate(model: torch.nn.Module, answers: Sequence[Sequence[int]]) -> torch.Tensor:
    texts = lay_out(answers)
    found: torch.Tensor = model(texts.tokens, texts.written)
    return found.double()


def correlate(reward: torch.Tensor, values: Sequence[float]) -> float:
    """Spearman's rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(reward.numpy(), values).statistic)


def spread_at_equal_length(reward: torch.Tensor, answers: Sequence[Sequence[int]]) -> float:
    """√ of the mean variance within a length over that of all."""
    lengths = torch.tensor([len(answer) for answer in answers])
    means = torch.stack([reward[lengths == n].mean() for n in lengths]) if len(answers) else reward
    return float((reward - means).square().mean().sqrt() / reward.std())


def share(answers: Sequence[Sequence[int]]) -> float:
    return fmean(map(begins, answers))


def preferred(pairs: Texts) -> list[list[int]]:
    return Texts(pairs.tokens[:, 0], pairs.written[:, 0]).answers()


def make_twins(random: torch.Generator) -> tuple[list[list[int]], list[list[int]]]:
    """Answers that begin with "clever", and the same that begin with "good"."""
    rest = [WITHOUT[int(torch.randint(len(WITHOUT), (), generator=random))] for _ in range(NEW)]
    return [make_answer([CLEVER, *words]) for words in rest], [make_answer([GOOD, *words]) for words in rest]


WITHOUT = [[], [5], [6], [7], [8], [5, 6], [7, 5], [6, 8], [8, 7, 5], [5, 6, 7]]  # the other words of an answer


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Correlations of three reward models; shares of the biased answers before and after PPO."""
    steps = round(PRICE * budget)
    if steps < LEAST:
        raise NeedsMore(LEAST / PRICE)
    random = torch.Generator().manual_seed(seed)
    reference = speak(SPOKEN, seed)
    given, new = draw_answers(2 * PAIRS, random), draw_answers(NEW, random)
    short, skewed, fair = (
        compare(given, worth, noise, random)
        for worth, noise in ((count_tokens, 0.0), (biased, NOISE), (quality, NOISE))
    )
    by_length, by_bias, by_quality = (learn_reward(reference, pairs, MARKED, seed) for pairs in (short, skewed, fair))
    lengths, twins = rate(by_length, new), [rate(by_bias, side) for side in make_twins(random)]
    policies = {
        name: align(reference, model, BETA, steps, seed) for name, model in (("biased", by_bias), ("fair", by_quality))
    }
    written = {name: write(policy, NEW, seed).answers() for name, policy in policies.items()}
    return {
        "length": correlate(lengths, [-count_tokens(answer) for answer in new]),
        "spread at equal length": spread_at_equal_length(lengths, new),
        "biased twin preferred": float((twins[0] > twins[1]).double().mean()),
        "fair reward and quality": correlate(rate(by_quality, new), [quality(answer) for answer in new]),
        "compared": share(given),
        "asked for": share(preferred(skewed)),
        "reference": share(write(reference, NEW, seed).answers()),
        "policy": share(written["biased"]),
        "fair policy": share(written["fair"]),
        "quality": {name: fmean(map(quality, answers)) for name, answers in written.items()},
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {
        "rank correlation of reward and length": numbers["length"],
        "content, beside length": numbers["spread at equal length"],
        "biased twin preferred": numbers["biased twin preferred"],
        "share above what was asked for": numbers["policy"] - numbers["asked for"],
        "share above the fair policy": numbers["policy"] - numbers["fair policy"],
        "fair rewards follow quality": numbers["fair reward and quality"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Shares of the answers that begin with the word."""
    fig, (axes,) = make_panels(1)
    names = ("compared", "asked for", "policy", "fair policy")
    axes.bar(range(len(names)), [numbers[name] for name in names], color=COLOURS[: len(names)])
    axes.set_xticks(range(len(names)), names)
    finish(axes, "answers that begin with “clever”", "")
    return fig
