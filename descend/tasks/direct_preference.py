"""Direct preference optimization: a language model learns from pairs of responses, with no reward model in between.

    L = −E log σ(β log (π(y_w|x) / π_ref(y_w|x)) − β log (π(y_l|x) / π_ref(y_l|x)))
    log π(y|x) = Σ_t log π(y_t | x, y_<t)                        SUM over the response's tokens
    implied reward   r̂(x, y) = β log (π(y|x) / π_ref(y|x))       = r − β log Z(x) at the optimum, π* = π_ref e^{r/β} / Z

At the start π = π_ref, and L = log 2 exactly. The reference is frozen and known by its checksum. Margin and accuracy
are those of the implied rewards; the KL is estimated on responses that the policy writes itself, where that is asked
for (`write`), since pairs say little about what it would say now.

Only differences count in L, so the likelihood of both responses may fall while that of texts nobody compared rises. An
`anchor` α adds −α E log π of a chosen token to L, which holds the chosen responses (trl's "sft" beside "sigmoid").

Systems: dpo
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.preference import dpo_loss, response_log_prob


class DirectPreference(Task):
    """`policy` and `reference` map tokens (n, t) to logits (n, t, v).

    A batch is `tokens` (b, 2, t), the chosen response first, and `written` (b, 2, t): the response's. `write` makes a
    batch of prompts into texts of the policy's own, which `measure` may say more of.
    """

    players = ("policy",)
    frozen = ("reference",)

    def __init__(
        self,
        policy: nn.Module,
        reference: nn.Module,
        beta: float,
        write: Callable[[Batch], Batch] | None = None,
        measure: Callable[[Batch], dict[str, Tensor]] | None = None,
        anchor: float = 0.0,
    ):
        super().__init__()
        self.policy, self.beta, self.write, self.measure, self.anchor = policy, beta, write, measure, anchor
        self.reference = reference.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """The policy; the reference stays as it is."""
        super().train(mode)
        self.reference.eval()
        return self

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("policy", lambda: self.loss(batch), self.count_units(batch))

    def count_units(self, batch: Batch) -> dict[str, Tensor]:
        """The anchor is a mean over the tokens of the chosen responses."""
        return {"anchor": batch["written"][:, 0].sum()} if self.anchor else {}

    def loss(self, batch: Batch) -> Loss:
        """The mean over pairs."""
        ratio, mine = self.look(batch["tokens"], batch["written"])
        terms = {"loss": dpo_loss(ratio[:, 0], ratio[:, 1], self.beta).mean()}
        if self.anchor:
            terms["anchor"] = -self.anchor * mine[:, 0].sum() / self.count_units(batch)["anchor"].clamp_min(1)
        return Loss(terms, {k: v.mean() for k, v in self.compare(ratio.detach(), batch).items()})

    def log_ratio(self, tokens: Tensor, written: Tensor) -> Tensor:
        """log π(y|x) − log π_ref(y|x), for texts (.., t): (..)"""
        return self.look(tokens, written)[0]

    def look(self, tokens: Tensor, written: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and log π(y|x)."""
        flat, at = tokens.flatten(0, -2), written.flatten(0, -2)
        mine = response_log_prob(self.policy(flat[:, :-1]), flat, at)
        with torch.no_grad():
            theirs = response_log_prob(self.reference(flat[:, :-1]), flat, at)
        return (mine - theirs).view(tokens.shape[:-1]), mine.view(tokens.shape[:-1])

    def compare(self, ratio: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Implied rewards of both responses, their margin, whether the order is right (a tie is half right), and how
        long the responses are (b)."""
        implied = self.beta * ratio
        margin = implied[:, 0] - implied[:, 1]
        right = (margin > 0).to(margin.dtype) + 0.5 * (margin == 0).to(margin.dtype)
        length = batch["written"].sum(-1).to(margin.dtype)
        found = {"margin": margin, "accuracy": right, "chosen_reward": implied[:, 0], "rejected_reward": implied[:, 1]}
        return found | {"chosen_length": length[:, 0], "rejected_length": length[:, 1]}

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Of pairs, and of prompts (which have no `written`)."""
        if "written" in batch:
            ratio = self.log_ratio(batch["tokens"], batch["written"])
            return {"loss": dpo_loss(ratio[:, 0], ratio[:, 1], self.beta), **self.compare(ratio, batch)}
        assert self.write is not None
        texts = self.write(batch)
        tokens, written = texts["tokens"].to(batch["tokens"].device), texts["written"].to(batch["tokens"].device)
        found = {"kl": self.log_ratio(tokens, written), "length": written.sum(-1).to(torch.float32)}
        return found | (self.measure(texts) if self.measure else {})
