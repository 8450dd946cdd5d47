"""Worked examples of the family reinforcement."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.dynamic_programming import evaluate_policy, iterate_policies
from descend.classic.q_learning import update
from descend.losses.reinforcement import clipped_surrogate, episode_loss, policy_gradient_loss
from descend.ops.actions import Categorical
from descend.ops.decisions.bellman import action_values
from descend.ops.decisions.process import process_from_arrays
from descend.ops.returns import discounted_returns


def ppo_table(i: Inputs) -> Inputs:
    pairs = torch.cartesian_prod(real(i["r"]), real(i["A"]))
    values = clipped_surrogate(pairs[:, 0], pairs[:, 1], i["epsilon"])
    return {"table_r_A_value": torch.cat([pairs, values[:, None]], dim=1)}


def ppo_interval(i: Inputs) -> Inputs:
    ratio, far = real(i["ratio"]), real([1e6])
    # With A = 1 the surrogate stops at the upper end; with A = −1 and a ratio of 0 it stops at the lower one.
    low, high = -clipped_surrogate(0 * far, -far / far, i["eps"]), clipped_surrogate(far, far / far, i["eps"])
    up, down = (clipped_surrogate(ratio, torch.full_like(ratio, a), i["eps"]) for a in i["advantage"])
    return {"interval": torch.cat([low, high]), "surrogate_A=+1": up, "surrogate_A=-1": down}


def reinforce_discount(i: Inputs) -> Inputs:
    """Two states, two actions each; every episode is s0, s1. All four episodes, weighted by their probability."""
    theta = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)  # state, action
    action = torch.cartesian_prod(torch.arange(2), torch.arange(2))  # (episode, t)
    reward = torch.stack([real(i["r_s0"])[action[:, 0]], real(i["r_s1"])[action[:, 1]]], 1)
    log_prob = Categorical(theta.expand(4, 2, 2)).log_prob(action)
    chance = log_prob.sum(1).exp()
    ended = torch.tensor([[False, True]]).expand(4, 2)
    returns, discount = discounted_returns(reward, ended, i["gamma"]), i["gamma"] ** torch.arange(2).double()

    def estimate(weight: Tensor) -> Tensor:
        """The mean of the estimator: episodes count by their probability, not by their number."""
        by_episode = chance.detach()[:, None] * weight * len(chance)
        return torch.autograd.grad(-episode_loss(log_prob, by_episode, returns), theta, retain_graph=True)[0]

    (true,) = torch.autograd.grad((chance * (discount * reward).sum(1)).sum(), theta, retain_graph=True)
    printed, weighted = estimate(torch.ones(4, 2)), estimate(discount.expand(4, 2))
    return {
        "true_gradient_s0": true[0],
        "true_gradient_s1": true[1],
        "printed_formula_s0": printed[0],
        "printed_formula_s1": printed[1],
        "with_gamma_pow_t_s1": weighted[1],
    }


def baseline(i: Inputs) -> Inputs:
    """One step; the score ∇ log π(a) of each action, and mean and variance of its first number times G − b."""
    chance, returns = real(i["policy"]), real(i["returns"])
    logits = chance.log().requires_grad_()
    pick = lambda a: -policy_gradient_loss(Categorical(logits).log_prob(torch.tensor(a)), torch.ones(()).double())
    score = torch.stack([torch.autograd.grad(pick(a), logits)[0] for a in range(len(chance))])
    mean = lambda x: (chance @ x)[0]
    variance = lambda x: mean(x.square()) - mean(x).square()
    plain, less = score * returns[:, None], score * (returns - i["baseline"])[:, None]
    return {
        "E_score_times_b": chance @ (score * i["baseline"]),
        "mean_no_baseline": mean(plain),
        "mean_with": mean(less),
        "var_no_baseline": variance(plain),
        "var_with": variance(less),
    }


def bellman(i: Inputs) -> Inputs:
    """V of the linear solve, Q one step further, and Q* by policy iteration."""
    process = process_from_arrays(real(i["P"]), real(i["R"]), i["gamma"])
    v = evaluate_policy(process, real(i["pi"]))
    return {"V": v, "Q": action_values(process, v), "Q_optimal": iterate_policies(process).q}


def q_update(i: Inputs) -> Inputs:
    """One step from state 0 to state 1, by the update of the learner itself."""
    q = torch.tensor([[i["Q"]], [i["max_next"]]], dtype=torch.float64)
    here, there, goes_on = torch.tensor([0]), torch.tensor([1]), torch.tensor([False])
    batch = {"state": here, "action": here, "next": there, "terminated": goes_on}
    update(q, batch | {"reward": real([i["r"]]), "weight": real([i["alpha"]])}, i["gamma"])
    return {"Q_new": q[0, 0]}


EXAMPLES: dict[str, Compute] = {
    "S940-9.1-bellman": bellman,
    "S940-9.2-q-update": q_update,
    "S940-9.3-baseline": baseline,
    "S940-9.3-reinforce-discount": reinforce_discount,
    "S940-9.3-ppo-clip": ppo_table,
    "VOM-13.7.6-clip": ppo_interval,
}

SET_ASIDE: dict[str, str] = {}
