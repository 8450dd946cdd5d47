"""DPO beside PPO with a reward model, from the same comparisons: both look for π_ref exp(r/β) / Z.

    comparisons    of answers that the reference writes, by an annotator who errs as Bradley and Terry say: r = quality
    DPO            learns from the pairs; no reward model, nothing is written
    PPO            learns from the marks of a reward model of the same pairs, on what it writes itself
    judged         J = E[r] − β KL(π ‖ π_ref) with the true r, on texts of each policy
    best possible  β log E_ref[exp(r/β)], estimated on many texts of the reference
    share          (J − J_ref) / (J* − J_ref), from few and from many comparisons

VOM 13.7.7 derives DPO as the same optimum by a shorter way and compares no numbers. DPO sees no text beyond the pairs,
and where the reference could write but never did, nothing holds it; PPO meets its own texts, but only a learned mark.
What each costs is told as passes: texts through a network, a backward pass as two.

Sizes, rates and all thresholds were chosen on seed 10.

Systems: dpo
"""

from __future__ import annotations

import copy
from math import log
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._answers import Texts, align, compare, learn_reward, log_ratio, quality, speak, write
from descend.labs._evidence import AtLeast, AtMost, NeedsMore, Within
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._train import train
from descend.tasks.direct_preference import DirectPreference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from descend.models.gpt2 import GPT2

ENTRIES = ("VOM-B.101", "S940-DLD.151")
PRINTED = "DPO reaches the optimum of RLHF directly from the pairs, without a reward model and without PPO."
CLAIM = (
    "From the same 4000 comparisons DPO and PPO with a reward model both gain much of what can be gained over the"
    " reference, neither far more than the other; from 100 both fit the annotator's errors and leave it for the worse."
)
PREDICTIONS = (
    AtLeast("DPO, share of the best", 0.4, "of the gain in J that is possible, from many comparisons; less refutes it"),
    AtLeast("PPO, share of the best", 0.4, "the same"),
    Within(
        "PPO less DPO", -0.35, 0.35, "shares from many comparisons: a larger difference refutes that they are equal"
    ),
    AtMost("DPO, share from few", 0.0, "J below the reference's; above it refutes"),
    AtMost("PPO, share from few", 0.0, "the same"),
)
SCOPE = "a transformer of 17,000 weights, a language of 9 tokens, one prompt, comparisons of the reference's own texts"
BUDGET = 20.0
PRICE = 5.0  # batches of PPO that a second of one core buys, with all the rest
LEAST = 60
BETA, NOISE = 1.0, 1.0
FEW, MANY, TEXTS, BATCH, WRITING = 100, 4000, 2000, 64, 96


def prefer(reference: GPT2, pairs: Texts, steps: int, seed: int) -> GPT2:
    """DPO."""
    model, random = copy.deepcopy(reference), torch.Generator().manual_seed(seed)
    task = DirectPreference(model, copy.deepcopy(reference), BETA)

    def loss() -> Tensor:
        rows = torch.randint(len(pairs.tokens), (BATCH,), generator=random)
        return task.loss({"tokens": pairs.tokens[rows], "written": pairs.written[rows]}).total()

    train(model, loss, steps, 1e-3)
    return model.eval()


def judge(policy: GPT2, reference: GPT2, seed: int) -> dict[str, float]:
    """Quality, KL and J of what it writes."""
    texts = write(policy, TEXTS, seed)
    kl = float(log_ratio(policy, reference, texts)[0].mean())
    mean = fmean(map(quality, texts.answers()))
    return {"quality": mean, "kl": kl, "J": mean - BETA * kl}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """J of the reference, of the best policy, and of both ways from few and from many comparisons."""
    steps = round(PRICE * budget)
    if steps < LEAST:
        raise NeedsMore(LEAST / PRICE)
    reference, random = speak(5 * steps, seed), torch.Generator().manual_seed(seed)
    said = write(reference, 2 * MANY, seed).answers()
    pairs = compare(said, quality, NOISE, random)
    worth = torch.tensor([quality(answer) for answer in said], dtype=torch.float64) / BETA
    best = BETA * (float(worth.logsumexp(0)) - log(len(said)))
    found: dict[str, Any] = {"reference": judge(reference, reference, seed), "best": best}
    for name, count in (("few", FEW), ("many", MANY)):
        these = Texts(pairs.tokens[:count], pairs.written[:count])
        marks = learn_reward(reference, these, 5 * steps, seed)
        found[f"DPO, {name}"] = judge(prefer(reference, these, 5 * steps, seed), reference, seed)
        found[f"PPO, {name}"] = judge(align(reference, marks, BETA / NOISE, steps, seed, WRITING), reference, seed)
    direct = 5 * steps * 2 * BATCH * (3 + 1)  # the policy forward and back, the reference forward, of both responses
    marked = 5 * steps * 2 * BATCH * 3
    acted = steps * WRITING * (1 + 3 + 4 * 3)  # writing, looking back by three networks, four epochs
    return {**found, "passes": {"DPO": direct, "PPO": marked + acted}, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    floor = numbers["reference"]["J"]
    share = {
        name: (numbers[name]["J"] - floor) / (numbers["best"] - floor)
        for name in ("DPO, few", "DPO, many", "PPO, few", "PPO, many")
    }
    return {
        "DPO, share of the best": share["DPO, many"],
        "PPO, share of the best": share["PPO, many"],
        "PPO less DPO": share["PPO, many"] - share["DPO, many"],
        "DPO, share from few": share["DPO, few"],
        "PPO, share from few": share["PPO, few"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Quality over the KL; J by way and number of comparisons."""
    fig, (left, right) = make_panels(2)
    names = ("reference", "DPO, few", "DPO, many", "PPO, few", "PPO, many")
    for color, name in zip(COLOURS, names, strict=False):
        left.plot(numbers[name]["kl"], numbers[name]["quality"], "o", color=color, label=name)
    right.bar(range(len(names)), [numbers[name]["J"] for name in names], color=COLOURS[: len(names)])
    right.axhline(numbers["best"], color="0.5", ls=":", label="best possible")
    right.set_xticks(range(len(names)), [name.replace(", ", "\n") for name in names])
    finish(left, "true quality of what is written", "KL to the reference, nats")
    finish(right, "E[r] − β KL", "")
    return fig
