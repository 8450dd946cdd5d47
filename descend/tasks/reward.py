"""A reward model learns the order in which people put the responses to a prompt.

    L = −1 / C(K, 2) Σ_{i<j} log σ(r(x, y_(i)) − r(x, y_(j)))         K responses, y_(1) the best; K = 2: one pair

The mean over prompts of the mean over their pairs: a prompt with many responses counts as much as one with two, and its
responses are in one batch, as InstructGPT does. r is one number at the last real token. At equal rewards L = log 2, and
a constant for each prompt changes nothing.

Systems: reward-model
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.preference import choose_pairs, mean_over_pairs, ranking_loss


class RankResponses(Task):
    """`model` maps tokens (n, t) and which were `written` (n, t) to rewards (n).

    A batch is `tokens` (b, K, t), best to worst, and `written` (b, K, t): the response's; where none is, there is none.
    """

    model: Callable[[Tensor, Tensor], Tensor]

    def __init__(self, model: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.model = model

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def loss(self, batch: Batch) -> Loss:
        """The mean over prompts."""
        reward, real = self.rewards(batch)
        told = {name: values.mean() for name, values in self.compare(reward.detach(), real).items()}
        return Loss({"loss": ranking_loss(reward, real).mean()}, told)

    def rewards(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """r (b, K), and which responses there are (b, K)."""
        tokens, written = batch["tokens"], batch["written"]
        return self.model(tokens.flatten(0, 1), written.flatten(0, 1)).view(tokens.shape[:2]), written.any(-1)

    def compare(self, reward: Tensor, real: Tensor) -> dict[str, Tensor]:
        """Of each prompt's pairs: the share in the right order (a tie is half right), and by how much (b)."""
        better, worse = choose_pairs(reward)
        right = (better > worse).to(reward.dtype) + 0.5 * (better == worse).to(reward.dtype)
        return {"accuracy": mean_over_pairs(right, real), "margin": mean_over_pairs(better - worse, real)}

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        reward, real = self.rewards(batch)
        return {"loss": ranking_loss(reward, real), **self.compare(reward, real)}
