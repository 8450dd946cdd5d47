"""Collecting preferences: the current model answers each prompt k times, and an annotator puts the answers in order.

    y_1, .., y_k ~ π(· | x)      ranked best to worst      ->  k(k−1)/2 triples (x, y_w, y_l)
    P(y_i ≻ y_j | x) = σ((q(x, y_i) − q(x, y_j)) / τ)      a noisy annotator: Bradley-Terry

People compare more reliably than they give marks, so no mark is asked for (VOM 13.7.1). The simulated annotator ranks
by q / τ + G, G from Gumbel's distribution: of any two responses it prefers each exactly as often as Bradley and Terry
say (Plackett and Luce), and a ranking never contradicts itself. With τ = 0 it follows q. A person is an annotator too:
any function of a prompt and its responses that returns their order. Nothing is trained here.

Systems: preference-data
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.data.text.preferences import Ranked
from descend.errors import Mistake
from descend.files import write_text

Annotate = Callable[[str, Sequence[str]], Sequence[int]]
"""A prompt and its responses -> the places of the responses from best to worst."""


@dataclass
class Annotator:
    """Simulated: knows the quality of a response, and errs as Bradley and Terry say."""

    quality: Callable[[str, str], float]
    noise: float = 0.0
    """τ: the difference in quality at which 73% of the comparisons are right; 0: all are."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise Mistake(f"an annotator's noise is {self.noise}: give 0 or more")
        self.random = torch.Generator().manual_seed(self.seed)

    def __call__(self, prompt: str, responses: Sequence[str]) -> list[int]:
        """The order; without noise, equal qualities keep the order in which they came."""
        value = torch.tensor([self.quality(prompt, response) for response in responses], dtype=torch.float64)
        if self.noise:
            uniform = torch.rand(len(value), generator=self.random, dtype=torch.float64)
            value = value / self.noise - (-uniform.clamp_min(1e-300).log()).log()
        found: list[int] = value.argsort(descending=True, stable=True).tolist()
        return found


def collect(prompts: Iterable[str], answer: Callable[[str], Sequence[str]], annotate: Annotate) -> list[Ranked]:
    """A ranking for each prompt with two or more different responses; equal responses are compared once."""
    found = []
    for number, prompt in enumerate(prompts, start=1):
        responses = list(dict.fromkeys(answer(prompt)))
        if len(responses) < 2:
            continue
        order = list(annotate(prompt, responses))
        if sorted(order) != list(range(len(responses))):
            raise Mistake(f"prompt {number}: the annotator's order {order} is not one of {len(responses)} responses")
        found.append(Ranked(prompt, tuple(responses[i] for i in order), f"prompt {number}"))
    return found


def write_preferences(path: str | Path, records: Iterable[Ranked]) -> None:
    """A .jsonl file that `read_preferences` reads: pairs as chosen and rejected, longer rankings as responses."""
    lines = []
    for record in records:
        value: dict[str, Any] = {"prompt": record.prompt if isinstance(record.prompt, str) else list(record.prompt)}
        names = dict(zip(("chosen", "rejected"), record.responses, strict=False))
        value |= names if len(record.responses) == 2 else {"responses": list(record.responses)}
        lines.append(json.dumps(value, ensure_ascii=False) + "\n")
    write_text(Path(path), "".join(lines))
