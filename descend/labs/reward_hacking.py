"""Reward hacking: as the KL penalty shrinks, the reward that is worked for rises and the one that is meant falls.

    J(π) = E[r] − β KL(π ‖ π_ref)            raised by PPO on tokens, from the reference on
    true reward     (different praising words) − (blaming words) − (mistakes)
    proxy r         praising words, however often each is said: right for what the reference says, wrong beyond it
    reference       a language model of answers of one to four words, each said once, with commas and "and"
    β               1, 0.3, 0.1, 0: four policies, trained alike
    perplexity      of what a policy writes, under the reference, a token

Near the reference the proxy is as good as the truth, so some freedom raises both. Without a penalty the policy says
"good good good ..", which the reference never would. VOM 13.7.5 and MF 20.8.5 claim it without numbers.

Sizes, rate, the values of β and all thresholds were chosen on seed 10.

Systems: reward-hacking
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from descend.labs._answers import PRAISE, Judged, align, log_ratio, quality, speak, write
from descend.labs._evidence import AtLeast, AtMost, NeedsMore
from descend.labs._panels import COLOURS, finish, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.99", "MF-B.53")
PRINTED = "Without the KL term the policy finds degenerate text that scores high; the KL keeps it near the SFT model."
CLAIM = (
    "As β shrinks the proxy reward rises and the true reward falls, and the perplexity under the reference explodes;"
    " with a moderate β both rewards rise."
)
PREDICTIONS = (
    AtLeast("proxy gained without KL", 2.0, "proxy reward at β = 0 less that at β = 0.3; less refutes it"),
    AtMost("truth gained without KL", -2.0, "true reward at β = 0 less that at β = 0.3: it falls; more refutes it"),
    AtLeast("steps of β in order", 3.0, "at each of the 3 steps to a smaller β, KL and proxy reward rise"),
    AtLeast("perplexity, times that at 0.3", 20.0, "of what is written without KL, under the reference"),
    AtLeast("truth gained at 0.3", 0.5, "over the reference: the same proxy is of use while the KL is dear"),
)
SCOPE = "a transformer of 17,000 weights, a language of 9 tokens, one prompt, a proxy whose flaw was planted"
SEEDS = (0, 1, 2, 3, 4)
BUDGET = 12.5
PRICE = 8.0  # batches of PPO for each β that a second of one core buys, the reference included
LEAST = 80
BETAS = (1.0, 0.3, 0.1, 0.0)
TEXTS = 500


def count_praise(answer: Sequence[int]) -> float:
    """The proxy."""
    return float(sum(token in PRAISE for token in answer))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Both rewards, the KL and the perplexity of the reference, and of the policy at every β."""
    steps = round(PRICE * budget)
    if steps < LEAST:
        raise NeedsMore(LEAST / PRICE)
    reference = speak(5 * steps, seed)
    columns: dict[str, Any] = {name: [] for name in ("proxy", "true", "kl", "perplexity")}
    for beta in (None, *BETAS):
        policy = reference if beta is None else align(reference, Judged(count_praise), beta, steps, seed)
        texts = write(policy, TEXTS, seed)
        ratio, log_p = log_ratio(policy, reference, texts)
        columns["proxy"].append(fmean(map(count_praise, texts.answers())))
        columns["true"].append(fmean(map(quality, texts.answers())))
        columns["kl"].append(float(ratio.mean()))
        columns["perplexity"].append(float((-log_p.sum() / texts.written.sum()).exp()))
    return {"beta": ["reference", *BETAS], **columns, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    proxy, true, kl = numbers["proxy"], numbers["true"], numbers["kl"]
    rises = [proxy[i + 1] > proxy[i] and kl[i + 1] > kl[i] for i in range(1, len(BETAS))]
    return {
        "proxy gained without KL": proxy[4] - proxy[2],
        "truth gained without KL": true[4] - true[2],
        "steps of β in order": float(sum(rises)),
        "perplexity, times that at 0.3": numbers["perplexity"][4] / numbers["perplexity"][2],
        "truth gained at 0.3": true[2] - true[0],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Both rewards, and what leaving the reference came to, from the reference to β = 0."""
    fig, (left, right) = make_panels(2)
    at = range(len(numbers["beta"]))
    for i, name in enumerate(("proxy", "true")):
        left.plot(at, numbers[name], "o-", color=COLOURS[i], label=f"{name} reward")
    right.semilogy(at, numbers["perplexity"], "o-", color=COLOURS[2])
    for axes, title in ((left, "reward of an answer"), (right, "perplexity under the reference")):
        axes.set_xticks(list(at), [str(beta) for beta in numbers["beta"]])
        finish(axes, title, "β")
    return fig
