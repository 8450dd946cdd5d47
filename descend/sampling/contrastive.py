"""Contrastive search: probable, and unlike what has been written.

    v* = argmax over the k most probable v of   (1 − α) p(v | x) − α max_j cos(h_v, h_{x_j})

    h_v: the last hidden state at v when v is appended to x;  h_{x_j}: those of the text so far

α = 0 or k = 1 is greedy search. A repeated text has hidden states that resemble earlier ones, and is passed over: no
chance is needed to leave the loops that greedy search falls into. (The books name greedy's loops; this cure is from
the literature, Su et al. 2022.)

Written over a function tokens (b, t) -> logits (b, t, v) and hidden states (b, t, d), which reads everything again at
each step: for short texts and for measurements.

Systems: likelihood-trap
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake

States = Callable[[Tensor], tuple[Tensor, Tensor]]


def contrastive_search(states: States, prompt: list[int], tokens: int, k: int = 4, alpha: float = 0.6) -> list[int]:
    """The new tokens after one prompt."""
    if k < 1 or not 0 <= alpha <= 1 or not prompt:
        raise Mistake(f"contrastive search needs a prompt, k ≥ 1 and 0 ≤ alpha ≤ 1, not k = {k} and alpha = {alpha}")
    text = torch.tensor(prompt)
    for _ in range(tokens):
        best = states(text[None])[0][0, -1].softmax(-1).topk(k)
        candidates = torch.cat([text.expand(k, -1), best.indices[:, None]], dim=1)
        h = F.normalize(states(candidates)[1], dim=-1)  # (k, t + 1, d)
        alike = (h[:, :-1] @ h[:, -1:].mT).amax(dim=(1, 2))
        choice = int(((1 - alpha) * best.values - alpha * alike).argmax())
        text = candidates[choice]
    return text[len(prompt) :].tolist()
