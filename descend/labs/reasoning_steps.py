"""Reasoning in steps: sums that are too long to be said at once, votes over sampled chains, and what chains are worth.

    question     n = 8 digits and "=";  the answer is their sum modulo 10
    direct       3 1 4 1 5 9 2 6 = : 1                      the answer at once
    steps        3 1 4 1 5 9 2 6 = 3 4 8 9 4 3 5 1 : 1      the running sums first, each from the one before
    filler       the same form with digits drawn by chance as steps, and the first digit as the answer
    leaked       the direct form on 200 questions, again and again; half of an exam of 200 is among them

    votes        9 chains drawn at a temperature, and the answer that most of them end with
    disturbed    one digit of a chain is replaced by another: does the answer follow it?

What one step has to do is a table of 100 sums; what the direct answer has to do is a table of 10⁸.

DLN and S940 12.2 claim that steps and votes help, and that chains need not be faithful nor exams fresh; neither gives
figures for them. Chosen on seed 10: the sizes, the rate, and the temperature of the chains.

Systems: chain-of-thought, self-consistency, reasoning-faithfulness-leakage
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from descend.labs._evidence import AtLeast, AtMost
from descend.labs._relative_reader import RelativeReader
from descend.labs._train import train
from descend.metrics.faithfulness import probe
from descend.metrics.leakage import compare_leaked, find_leaks
from descend.sampling.votes import vote

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.85", "DLN-B.86", "S940-DLD.152", "S940-DLD.154")
PRINTED = (
    "Intermediate steps and a majority vote over sampled chains improve answers; steps need not reflect the"
    " computation, and test items may have been in the training data (no figures)."
)
CLAIM = (
    "A model that was trained with steps adds up long sums better than one trained on answers alone; the vote of"
    " sampled chains is more often right than one of them; an answer follows a disturbed chain where the model computes"
    " by it, and not where the chain is filler; and a model that memorised leaked questions fails on fresh ones."
)
PREDICTIONS = (
    AtLeast("steps", 0.3, "Accuracy with steps less that of direct answers, on questions never seen."),
    AtLeast("votes", 0.05, "Accuracy of the vote of 9 chains less that of one sampled chain."),
    AtLeast("faithful", 0.8, "Answers that follow a disturbed digit, of the model that computes by steps."),
    AtMost("filler", 0.1, "The same of the model whose steps are filler."),
    AtLeast("leak", 0.5, "Accuracy on leaked questions less that on fresh ones, of the model that memorised."),
)
CONTROLS = (
    AtLeast("found", 1.0, "Share of the leaked questions that n-gram overlap finds, with no fresh one among them."),
)
SCOPE = "Two layers on sums of 8 digits modulo 10; the steps are given, not invented, and the chains have one form."
N, SUM, ANSWER, VOCAB = 8, 10, 11, 12  # the tokens "=" and ":"
WIDTH, DEPTH, HEADS, NEAR, BATCH, RATE = 64, 2, 2, 12, 64, 4e-3
ASKED, CHAINS, TEMPERATURE, LEAKED, PROBED = 400, 9, 3.5, 200, 100
BUDGET = 40.0
PRICE = 30  # steps that a second of one core buys of each of the first two models
LEAST = 900  # steps below which nothing is said


def write_text(digits: Tensor, form: str, random: torch.Generator) -> Tensor:
    """Questions (b, n) with their steps and answers."""
    sums = digits.cumsum(1) % 10
    mark = torch.full_like(digits[:, :1], SUM)
    end = torch.full_like(mark, ANSWER)
    steps, answer = {
        "direct": (digits[:, :0], sums[:, -1:]),
        "steps": (sums, sums[:, -1:]),
        "filler": (torch.randint(10, digits.shape, generator=random), digits[:, :1]),
    }[form]
    return torch.cat([digits, mark, steps, end, answer], dim=1)


def teach(form: str, steps: int, seed: int, questions: Tensor | None = None) -> RelativeReader:
    """A model after so many steps; it learns what follows the question."""
    torch.manual_seed(seed)
    model, random = RelativeReader(VOCAB, WIDTH, DEPTH, HEADS, NEAR), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        if questions is None:
            digits = torch.randint(10, (BATCH, N), generator=random)
        else:
            digits = questions[torch.randint(len(questions), (BATCH,), generator=random)]
        text = write_text(digits, form, random)
        return cross_entropy(model(text[:, :-1])[:, N:].flatten(0, 1), text[:, N + 1 :].flatten())

    train(model, loss, steps, RATE)
    return model


def accuracy(model: RelativeReader, form: str, digits: Tensor, random: torch.Generator) -> Tensor:
    """Which questions (b) a greedy chain gets right."""
    asked = write_text(digits, form, random)[:, : N + 1]
    written = model.write(asked, 2 if form == "direct" else N + 2)
    return written[:, -1] == digits.sum(1) % 10


def judge_votes(model: RelativeReader, digits: Tensor, random: torch.Generator) -> tuple[float, float]:
    """Accuracy of one sampled chain, and of the vote of several."""
    asked = write_text(digits, "steps", random)[:, : N + 1].repeat_interleave(CHAINS, dim=0)
    said = model.write(asked, N + 2, TEMPERATURE, random)[:, -1].view(-1, CHAINS)
    right = digits.sum(1) % 10
    voted = [vote([str(answer) if answer < 10 else None for answer in row]).answer for row in said.tolist()]
    one = float((said == right[:, None]).double().mean())
    return one, sum(a == str(b) for a, b in zip(voted, right.tolist(), strict=True)) / len(right)


def judge_chains(model: RelativeReader, form: str, digits: Tensor, random: torch.Generator) -> float:
    """How often the answer changes when the last step of half a chain does, and the model goes on from there."""
    half = N // 2

    def answers(question: str, chain: str) -> str:
        row = torch.tensor([[int(part) for part in f"{question} {chain}".replace("=", str(SUM)).split()]])
        return str(int(model.write(row, N - half + 2)[0, -1]))

    chains = []
    for row in write_text(digits, form, random)[:, : N + 1 + half].tolist():
        *before, last = [str(token) if token < 10 else "=" for token in row]
        chains.append((" ".join(before), last))
    return probe(answers, chains)


def judge_leak(steps: int, seed: int, random: torch.Generator) -> tuple[dict[str, float], float]:
    """A model that saw 200 questions again and again: accuracy on leaked and fresh ones, and what overlap finds."""
    seen, fresh = (torch.randint(10, (LEAKED, N), generator=random) for _ in range(2))
    model = teach("direct", steps, seed, seen)
    exam = torch.cat([seen[: LEAKED // 2], fresh[: LEAKED // 2]])
    spell = lambda rows: [" ".join(map(str, row)) for row in rows.tolist()]
    leaked = find_leaks(spell(seen), spell(exam), n=N)
    right = accuracy(model, "direct", exam, random).tolist()
    true = [True] * (LEAKED // 2) + [False] * (LEAKED // 2)
    return compare_leaked(right, leaked), sum(a == b for a, b in zip(leaked, true, strict=True)) / LEAKED


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracies of the four models, and what follows a disturbed chain."""
    steps = max(4, round(PRICE * budget))
    random = torch.Generator().manual_seed(1000 + seed)
    asked = torch.randint(10, (ASKED, N), generator=random)
    direct, reasoned = teach("direct", steps, seed), teach("steps", steps, seed)
    filler = teach("filler", max(2, steps // 3), seed)
    one, voted = judge_votes(reasoned, asked, random)
    leak, found = judge_leak(max(2, steps // 2), seed, random)
    return {
        "direct": float(accuracy(direct, "direct", asked, random).double().mean()),
        "with steps": float(accuracy(reasoned, "steps", asked, random).double().mean()),
        "one sampled chain": one,
        "vote of 9": voted,
        "faithful": judge_chains(reasoned, "steps", asked[:PROBED], random),
        "filler": judge_chains(filler, "filler", asked[:PROBED], random),
        **{name: leak[name] for name in ("leaked", "fresh")},
        "found": found,
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "steps": numbers["with steps"] - numbers["direct"],
        "votes": numbers["vote of 9"] - numbers["one sampled chain"],
        "faithful": numbers["faithful"],
        "filler": numbers["filler"],
        "leak": numbers["leaked"] - numbers["fresh"],
        "found": numbers["found"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars: answers on the left, checks of chains and exams on the right."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7.5, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2)
    sides = (
        (left, ("direct", "with steps", "one sampled chain", "vote of 9"), "right answers"),
        (right, ("faithful", "filler", "leaked", "fresh"), "follows a disturbed chain; right on an exam"),
    )
    for axes, names, title in sides:
        axes.bar(range(len(names)), [numbers[name] for name in names], color="#2b6cd8")
        axes.set_xticks(range(len(names)), [name.replace(" ", "\n", 1) for name in names], fontsize=8)
        axes.set_ylim(0, 1.05)
        axes.set_title(title, fontsize=10, loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
