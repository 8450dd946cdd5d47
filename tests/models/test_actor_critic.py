"""Actor and critic, discrete and Gaussian: their equation, their start, and that they share nothing."""

from __future__ import annotations

import torch
from torch import nn

from descend.models.actor_critic import ActorCritic, ActorCriticConfig, Tower
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.ops.actions import Categorical, Gaussian
from tests.close import close


def test_a_tower_is_a_tanh_perceptron() -> None:
    torch.manual_seed(0)
    tower = Tower(4, 8, 2, 3, gain=1.0)
    plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    plain.load_state_dict(dict(zip(plain.state_dict(), tower.state_dict().values(), strict=True)))
    x = torch.randn(5, 4)
    close(tower(x), plain(x))


def test_weights_start_orthogonal() -> None:
    """WᵀW = gain² I: √2 in the hidden layers, 0.01 in the actor's head, 1 in the critic's."""
    torch.manual_seed(0)
    model = ActorCritic(ActorCriticConfig(observations=4, actions=3, width=16))
    for w, gain in (
        (model.actor.hidden[0].weight.T, 2**0.5),
        (model.critic.hidden[1].weight, 2**0.5),
        (model.actor.out.weight, 0.01),
        (model.critic.out.weight, 1.0),
    ):
        close(w @ w.T, gain**2 * torch.eye(len(w)))
    assert not any(p.any() for name, p in model.named_parameters() if name.endswith("bias"))


def test_the_first_policy_is_nearly_uniform() -> None:
    torch.manual_seed(0)
    logits, _ = ActorCritic(ActorCriticConfig())(torch.randn(100, 4))
    close(Categorical(logits).entropy(), torch.full((100,), 2.0).log(), loosen=50)  # 1e-3 of log 2
    out, _ = GaussianActorCritic(GaussianActorCriticConfig(actions=2))(torch.randn(100, 3))
    close(Gaussian(out).entropy(), torch.full((100,), 2 * 0.5 * (1 + torch.log(torch.tensor(2 * torch.pi)).item())))


def test_actor_and_critic_share_no_weight() -> None:
    for model, o in ((ActorCritic(ActorCriticConfig()), 4), (GaussianActorCritic(GaussianActorCriticConfig()), 3)):
        _, value = model(torch.randn(2, 7, o))  # any leading shape: rows and time
        assert value.shape == (2, 7)
        value.sum().backward()
        assert all(p.grad is None for p in model.actor.parameters())
        assert all(p.grad is not None for p in model.critic.parameters())
