"""A language model as a policy: every token is an action, the text so far the state; a reward model judges the text.

    r_t(θ) = π_θ(y_t | x, y_<t) / π_old(y_t | x, y_<t)
    L(θ) = −E_t[min(r_t A_t, clip(r_t, 1−ε, 1+ε) A_t)] + c_v · ½ E_t[(V(x, y_<t) − G_t)²] − c_e E_t[H]
    reward of token t:  −β log (π_old(y_t|..) / π_ref(y_t|..)),  and R(x, y) more at the last one
    A: generalized advantages of these rewards; G = A + V; E_t over all tokens that were written

What is maximised is E[R] − β KL(π ‖ π_ref): a text that pleases the reward model and could still be the reference's.
VOM gives the ratio, ε = 0.2 and a value network; estimator, value loss, epochs and what each token pays for leaving the
reference are those of the usual practice. Where β > 1 all rewards are divided by β: in the loss of the critic, which
shares the trunk, their size would drown the policy's, which does not depend on it. A text that is cut at the longest
length is judged as it is. Train without dropout: π_old and π_θ would differ before the first step.

Systems: ppo
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from descend.contracts import EVERY, Batch, Loss, Move, Task
from descend.losses.reinforcement import ppo_loss, token_rewards, value_loss
from descend.metrics.policies import explained_variance
from descend.ops.actions import Categorical
from descend.ops.returns import gae, td_errors
from descend.ranges import Between, Depth, NonNegative, Share

Write = Callable[[Batch], Batch]
"""Prompts -> the texts that the policy makes of them: tokens (b, t), and which were written (b, t)."""
Measure = Callable[[Batch], dict[str, Tensor]]
"""Such texts -> what else is known of each (b): its true quality."""


@dataclass(frozen=True)
class ProximalTokens:
    """The configuration of PPO on tokens."""

    beta: NonNegative = 0.05
    """Cost of leaving the reference, for each nat."""
    eps: Between = 0.2
    """Clip range ε of a token's ratio."""
    gamma: Share = 1.0
    """Discount; a text is short, and its end is what counts."""
    lam: Share = 0.95
    """λ of the advantage: 0 trusts the critic, 1 the rewards."""
    value: NonNegative = 0.5
    """Weight of the critic's loss."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus."""
    epochs: Depth = 4
    """Passes over each batch of texts."""


class LanguagePolicy(Task):
    """A batch is texts that `look_back` has seen; a move of "policy" for each epoch, on all of their tokens.

    `policy` maps tokens to logits and V, `reference` tokens to logits, `reward` tokens and `written` to R (b). The two
    are frozen. `write` makes texts for prompts that are to be scored; `measure` says more of them; `write_before` makes
    those of the reference, beside whose rewards the policy's are the `gain`.
    """

    players = ("policy",)
    frozen = ("reference", "reward")

    def __init__(
        self,
        policy: nn.Module,
        reference: nn.Module,
        reward: nn.Module,
        numbers: ProximalTokens,
        write: Write,
        measure: Measure | None = None,
        write_before: Write | None = None,
    ):
        super().__init__()
        self.policy, self.numbers = policy, numbers
        self.write, self.measure, self.write_before = write, measure, write_before
        self.reference = reference.eval().requires_grad_(False)
        self.reward = reward.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """The policy; what judges it stays as it is."""
        super().train(mode)
        self.reference.eval()
        self.reward.eval()
        return self

    def moves(self, batch: Batch) -> Iterator[Move]:
        tokens = batch["at"].sum()
        for _ in range(self.numbers.epochs):
            yield Move("policy", lambda: self.loss(batch), {EVERY: tokens})

    @torch.no_grad()
    def look_back(self, texts: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the moves need of the policy that wrote the texts: log π_old, A and G of each token."""
        where, n = next(self.policy.parameters()).device, self.numbers
        tokens, written = (texts[name].to(where) for name in ("tokens", "written"))
        x, y, at = tokens[:, :-1], tokens[:, 1:], written[:, 1:]
        logits, value = self.policy(x)
        old, ratio = Categorical(logits).log_prob(y), self.log_ratio(logits, x, y)
        last = at & ~nn.functional.pad(at[:, 1:], (0, 1))
        judged = self.reward(tokens, written)
        rewards = token_rewards(judged, ratio, at, last, n.beta) / max(1.0, n.beta)
        beyond = nn.functional.pad(value[:, 1:], (0, 1))
        delta = td_errors(rewards, value, beyond, last, n.gamma).masked_fill(~at, 0.0)
        advantage = gae(delta, last | ~at, n.gamma, n.lam)
        scale = advantage[at]
        return {
            "x": x,
            "y": y,
            "at": at,
            "old": old,
            "target": advantage + value,
            "advantage": (advantage - scale.mean()) / (scale.std() + 1e-8),
            "reward": judged,
            "kl": (ratio * at).sum(-1),
        }

    def log_ratio(self, logits: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """log π(y_t|..) / π_ref(y_t|..) (b, t)"""
        return Categorical(logits).log_prob(y) - Categorical(self.reference(x)).log_prob(y)

    def loss(self, batch: Batch) -> Loss:
        """Means over the tokens that were written."""
        logits, value = self.policy(batch["x"])
        at, n = batch["at"], self.numbers
        pi, target = Categorical(logits), batch["target"]
        log_prob, entropy = pi.log_prob(batch["y"]), pi.entropy()
        terms = {
            "policy": ppo_loss(log_prob[at], batch["old"][at], batch["advantage"][at], n.eps),
            "value": n.value * value_loss(value[at], target[at]),
            "entropy": -n.entropy * entropy[at].mean(),
        }
        with torch.no_grad():
            change = log_prob - batch["old"]
            told = {
                "reward": batch["reward"].mean(),
                "kl": batch["kl"].mean(),
                "entropy": mean_by_text(entropy, at),
                "length": at.sum(-1).to(entropy.dtype).mean(),
                "approximate_kl": mean_by_text(change.exp() - 1 - change, at),
                "clip_fraction": mean_by_text(((change.exp() - 1).abs() > n.eps).to(change.dtype), at),
                "explained_variance": explained_variance(value[at], target[at]),
            }
        return Loss(terms, told)

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Of a text for each prompt: R, log π / π_ref of the whole text, whose mean is the KL, what is maximised of the
        two, entropy of a token, and length."""
        texts = self.write(batch)
        where = next(self.policy.parameters()).device
        tokens, written = texts["tokens"].to(where), texts["written"].to(where)
        x, y, at = tokens[:, :-1], tokens[:, 1:], written[:, 1:]
        logits = self.policy(x)[0]
        kl, reward = (self.log_ratio(logits, x, y) * at).sum(-1), self.reward(tokens, written)
        length = at.sum(-1).to(kl.dtype)
        entropy = (Categorical(logits).entropy() * at).sum(-1) / length.clamp_min(1)
        found = {"reward": reward, "kl": kl, "objective": reward - self.numbers.beta * kl}
        found |= {"entropy": entropy, "length": length}
        if self.write_before is not None:
            before = self.write_before(batch)
            found["gain"] = reward - self.reward(before["tokens"].to(where), before["written"].to(where))
        return found | (self.measure(texts) if self.measure else {})


def mean_by_text(values: Tensor, at: Tensor) -> Tensor:
    """The mean over texts of the mean over their tokens."""
    return ((values * at).sum(-1) / at.sum(-1).clamp_min(1)).mean()
