"""Actor-critic: what an advantage is, one-step and n-step, and Stable-Baselines3's loss on one batch."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.buffers import RolloutBuffer
from torch import Tensor

from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.ops.actions import Categorical
from descend.ops.returns import n_step_advantages, td_errors
from descend.tasks.actor_critic import Advantage, AdvantageActorCritic
from tests.close import close

GAMMA = 0.9


def nobody(act: object, seeds: object) -> dict[str, Tensor]:
    raise AssertionError("no episode is played here")


def process() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """P (s, a, s'), R (s, a, s'), π (s, a) of four states and three actions, and the true V and Q."""
    g = torch.Generator().manual_seed(0)
    p = torch.rand(4, 3, 4, generator=g, dtype=torch.float64)
    p /= p.sum(-1, keepdim=True)
    r = torch.randn(4, 3, 4, generator=g, dtype=torch.float64)
    pi = torch.rand(4, 3, generator=g, dtype=torch.float64).softmax(-1)
    mean = (p * r).sum(-1)
    walk = torch.einsum("sa,sat->st", pi, p)
    v = torch.linalg.solve(torch.eye(4).double() - GAMMA * walk, (pi * mean).sum(-1))
    return p, r, pi, v, mean + GAMMA * p @ v


@pytest.mark.system("actor-critic", "advantage")
def test_the_mean_advantage_is_zero_and_the_error_of_the_true_values_is_one() -> None:
    """E_π[A(s, ·)] = 0;  E[δ | s, a] = A(s, a) = Q − V, and E_π[δ | s] = 0, with δ from `td_errors`."""
    p, r, pi, v, q = process()
    advantage = q - v[:, None]
    assert (pi * advantage).sum(-1).abs().max() < 1e-12
    going = torch.zeros_like(r, dtype=torch.bool)
    delta = td_errors(r, v[:, None, None].expand_as(r), v.expand_as(r), going, GAMMA)
    close((p * delta).sum(-1), advantage)
    wrong = td_errors(r, (v + 1)[:, None, None].expand_as(r), (v + 1).expand_as(r), going, GAMMA)
    assert ((p * wrong).sum(-1) - advantage).abs().min() > 0.05  # a critic that is off by 1 is off by 1 − γ


@pytest.mark.system("actor-critic", "advantage", "n-step")
def test_n_steps_of_the_true_values_are_unbiased() -> None:
    """Every walk of three steps from each (s, a), with its probability."""
    p, r, pi, v, q = process()
    for s, a in torch.cartesian_prod(torch.arange(4), torch.arange(3)).tolist():
        total = torch.zeros((), dtype=torch.float64)
        for s1, a1, s2, a2, s3 in torch.cartesian_prod(*map(torch.arange, (4, 3, 4, 3, 4))).tolist():
            chance = p[s, a, s1] * pi[s1, a1] * p[s1, a1, s2] * pi[s2, a2] * p[s2, a2, s3]
            reward = torch.stack([r[s, a, s1], r[s1, a1, s2], r[s2, a2, s3]])[None]
            value, beyond = v[[s, s1, s2]][None], v[[s1, s2, s3]][None]
            never = torch.zeros(1, 3, dtype=torch.bool)
            delta = td_errors(reward, value, beyond, never, GAMMA)
            total += chance * n_step_advantages(delta, never, GAMMA, 3)[0, 0]
        close(total, q[s, a] - v[s])


def rollout(b: int = 3, t: int = 7) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    terminated, truncated = torch.rand(2, b, t, generator=g) < 0.2
    observation, beyond = torch.randn(2, b, t, 4, generator=g)
    ended = (terminated | truncated)[..., None]
    beyond[:, :-1] = torch.where(ended[:, :-1], beyond[:, :-1], observation[:, 1:])
    return {
        "observation": observation,
        "action": torch.randint(2, (b, t), generator=g),
        "reward": torch.randn(b, t, generator=g),
        "next": beyond,
        "terminated": terminated,
        "truncated": truncated & ~terminated,
    }


def task(n: int, entropy: float = 0.0) -> AdvantageActorCritic:
    torch.manual_seed(0)
    model = ActorCritic(ActorCriticConfig(4, 2, 8, 2))
    return AdvantageActorCritic(model, Categorical, Advantage(GAMMA, n, value=1.0, entropy=entropy), nobody)


@pytest.mark.system("actor-critic", "one-step")
def test_one_step_advantages_are_the_errors() -> None:
    learner, played = task(1), rollout()
    value, beyond = (learner.policy(played[name])[1].detach() for name in ("observation", "next"))
    follows = torch.where(played["terminated"], 0.0, beyond)
    close(learner.look_back(played)["advantage"], played["reward"] + GAMMA * follows - value)


def peer(learner: AdvantageActorCritic) -> A2C:
    """Stable-Baselines3's A2C with the same weights."""
    their = A2C("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=7, gamma=GAMMA, ent_coef=0.1,
                policy_kwargs={"net_arch": [8, 8]}, device="cpu")  # fmt: skip
    mine, theirs = learner.policy, their.policy
    pairs = [(mine.actor, theirs.mlp_extractor.policy_net, theirs.action_net),
             (mine.critic, theirs.mlp_extractor.value_net, theirs.value_net)]  # fmt: skip
    for tower, hidden, out in pairs:
        layers = [hidden[0], hidden[2], out]
        for layer, (w, b) in zip(layers, [(x.weight, x.bias) for x in (*tower.hidden, tower.out)], strict=True):
            layer.weight.data.copy_(w), layer.bias.data.copy_(b)
    return their


@pytest.mark.system("actor-critic")
@pytest.mark.system("actor-critic", "n-step")
def test_loss_and_gradient_are_those_of_stable_baselines() -> None:
    """Its buffer adds γ V(s') to the reward where a time limit cut, then runs with λ = 1 to the end of the stretch."""
    learner, played = task(7, entropy=0.1), rollout()
    their = peer(learner)
    with torch.no_grad():
        value, beyond = (learner.policy(played[name])[1] for name in ("observation", "next"))
    reward = played["reward"] + GAMMA * beyond * played["truncated"]
    ended = played["terminated"] | played["truncated"]
    buffer = RolloutBuffer(7, their.observation_space, their.action_space, "cpu", 1.0, GAMMA, n_envs=3)
    for t in range(7):
        start = ended[:, t - 1].numpy() if t else np.zeros(3)
        buffer.add(played["observation"][:, t].numpy(), played["action"][:, t, None].numpy(), reward[:, t].numpy(),
                   start, value[:, t], torch.zeros(3))  # fmt: skip
    buffer.compute_returns_and_advantage(beyond[:, -1], ended[:, -1].numpy())
    batch = learner.look_back(played)
    close(batch["advantage"], torch.from_numpy(buffer.advantages).T)
    close(batch["target"], torch.from_numpy(buffer.returns).T)
    values, log_prob, entropy = their.policy.evaluate_actions(
        played["observation"].flatten(0, 1), played["action"].flatten()
    )
    policy = -(torch.from_numpy(buffer.advantages).T.flatten() * log_prob).mean()
    critic = torch.nn.functional.mse_loss(torch.from_numpy(buffer.returns).T.flatten(), values.flatten())
    (policy + 0.5 * critic - 0.1 * entropy.mean()).backward()
    (move,) = learner.moves(batch)
    loss = move.value().total()
    close(loss, policy + 0.5 * critic - 0.1 * entropy.mean())
    loss.backward()
    close(learner.policy.actor.out.weight.grad, their.policy.action_net.weight.grad)
    close(learner.policy.critic.hidden[0].weight.grad, their.policy.mlp_extractor.value_net[0].weight.grad)
    close(learner.policy.actor.hidden[0].weight.grad, their.policy.mlp_extractor.policy_net[0].weight.grad)
