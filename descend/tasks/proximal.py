"""The terms of PPO on some steps, and what is told beside them.

    policy    −E[min(r A, clip(r, 1−ε, 1+ε) A)],   r = π_θ(a|s) / π_old(a|s)
    value     ½ E[(V(s) − G)²]
    entropy   E[H(π_θ(·|s))]

A network of 64 × 64 spends most of a step in autograd's bookkeeping, not in products. For two tanh networks on a CPU
the whole is one node of the graph, with its gradient by hand and compiled (`native/proximal.cpp`):

    ∂policy/∂log π = −A r / n where r A ≤ clip(r) A, else 0        ∂value/∂V = (V − G) / n
    discrete       ∂log π/∂z = 1_a − p            ∂H/∂z = −p (log p + H)
    continuous     ∂log π/∂μ = (a − μ) / σ²       ∂log π/∂log σ = ((a − μ) / σ)² − 1       ∂H/∂log σ = 1

and back through h = tanh(W x + b): ∂L/∂(W x + b) = ∂L/∂h (1 − h²).

Systems: ppo
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from descend.losses.reinforcement import ppo_loss, value_loss
from descend.metrics.policies import approximate_kl, clip_fraction, explained_variance
from descend.native.proximal import Networks, Steps, TowerLayers, usable
from descend.ops.actions import Categorical, Gaussian


class ProximalTerms(NamedTuple):
    """Means over the steps; what is told has no gradient."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    told: dict[str, Tensor]


@runtime_checkable
class HasTowers(Protocol):
    """A policy that is two tanh networks."""

    def layers(self) -> TowerLayers: ...


def judge_steps(
    policy: Any, actions: type[Categorical] | type[Gaussian], steps: Mapping[str, Tensor], eps: float
) -> ProximalTerms:
    """For any policy: `observation`, `action`, `old` (log π_old), `advantage`, `target` of any number of axes."""
    out, value = policy(steps["observation"])
    pi, target = actions(out), steps["target"]
    log_prob, entropy = pi.log_prob(steps["action"]), pi.entropy().mean()
    surrogate = ppo_loss(log_prob, steps["old"], steps["advantage"], eps)
    with torch.no_grad():
        change = log_prob - steps["old"]
        told = {
            "entropy": entropy.detach(),
            "approximate_kl": approximate_kl(change),
            "clip_fraction": clip_fraction(change.exp(), eps),
            "explained_variance": explained_variance(value, target),
        }
    return ProximalTerms(surrogate, value_loss(value, target), entropy, told)


def find_networks(policy: Any, rows: int) -> Networks | None:
    """The networks of a policy, if there is compiled code for them with so many rows at once."""
    if torch.is_autocast_enabled("cpu") or not isinstance(policy, HasTowers):
        return None
    towers = policy.layers()
    return Networks(towers) if usable(towers, rows) else None


def judge_steps_compiled(networks: Networks, steps: Mapping[str, Tensor], eps: float) -> ProximalTerms:
    """The same for two tanh networks, as one node of autograd's graph."""
    x, action, *others = (steps[name] for name in ("observation", "action", "old", "advantage", "target"))
    axes = others[0].dim() - 1
    given = Steps(networks, x.flatten(0, axes), action.flatten(0, axes), *(other.flatten() for other in others))
    found = CompiledTerms.apply(given, eps, *networks.parameters)
    policy, value, entropy, *told = found
    names = ("approximate_kl", "clip_fraction", "explained_variance")
    return ProximalTerms(policy, value, entropy, {"entropy": entropy.detach(), **dict(zip(names, told, strict=True))})


class CompiledTerms(torch.autograd.Function):
    """steps, ε, parameters -> the three terms and what is told"""

    @staticmethod
    def forward(ctx: Any, steps: Steps, eps: float, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.steps = steps
        ctx.save_for_backward(*parameters)  # so that a change of theirs before the backward pass is noticed
        found = steps.forward(eps).unbind()
        ctx.mark_non_differentiable(*found[3:])
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 (torch refuses it where a parameter has changed since)
        return None, None, *ctx.steps.backward([float(grad) for grad in grads[:3]])
