"""Policies of Stable-Baselines3 open here, ours open there, and both act alike; nothing is unpickled on the way."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy

import descend
from descend.data.control.environments import episode_seed
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.player import PLAYED, Player
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.ops.actions import Categorical, Gaussian
from descend.weights.stable_baselines import read_policy, rename_to_theirs, write_policy
from tests.close import close

CASES = [(PPO, "CartPole-v1"), (A2C, "CartPole-v1"), (PPO, "Pendulum-v1"), (A2C, "Pendulum-v1"), (DQN, "CartPole-v1")]


def make(kind: Any, env: str, **settings: Any) -> Any:
    small = {"buffer_size": 10} if kind is DQN else {}
    model = kind("MlpPolicy", env, seed=0, device="cpu", **small, **settings)
    chance = torch.Generator().manual_seed(1)
    with torch.no_grad():  # away from a head of gain 0.01, which would leave all actions alike
        for p in model.policy.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=chance))
    return model


def look(kind: Any, model: Any, x: torch.Tensor, action: torch.Tensor) -> list[torch.Tensor]:
    """Values, and of an actor log π and entropy."""
    with torch.no_grad():
        return [model.q_net(x)] if kind is DQN else list(model.policy.evaluate_actions(x, action))


def look_here(model: Any, x: torch.Tensor, action: torch.Tensor) -> list[torch.Tensor]:
    with torch.no_grad():
        found = model(x)
        if isinstance(model, QNetwork):
            return [found]
        pi = (Gaussian if isinstance(model, GaussianActorCritic) else Categorical)(found[0])
        return [found[1][:, None], pi.log_prob(action), pi.entropy()]


def ask(env: str) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(0)
    size = 4 if env == "CartPole-v1" else 3
    action = torch.randint(2, (20,), generator=chance) if size == 4 else torch.randn(20, 1, generator=chance)
    return torch.randn(20, size, generator=chance), action


@pytest.mark.parametrize(("kind", "env"), CASES)
def test_a_policy_of_theirs_opens_here(kind: Any, env: str, tmp_path: Path) -> None:
    theirs, (x, action) = make(kind, env), ask(env)
    theirs.save(tmp_path / "policy.zip")
    ours = descend.load(tmp_path / "policy.zip")
    assert not ours.training
    for a, b in zip(look_here(ours, x, action), look(kind, theirs, x, action), strict=True):
        close(a, b, loosen=0.05)
    player = Player.open(tmp_path / "policy.zip")
    chosen = theirs.predict(x.numpy(), deterministic=True)[0]
    close(player.act(x).clamp(-2, 2) if env == "Pendulum-v1" else player.act(x), torch.from_numpy(chosen))


@pytest.mark.parametrize(("kind", "env"), CASES)
def test_a_policy_of_ours_opens_there(kind: Any, env: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    sizes = (4, 2) if env == "CartPole-v1" else (3, 1)
    made: dict[Any, Any] = {DQN: QNetwork(QNetworkConfig(*sizes, width=64))}
    vector = GaussianActorCritic(GaussianActorCriticConfig(*sizes))
    ours = made.get(kind) or (ActorCritic(ActorCriticConfig(*sizes)) if sizes[1] == 2 else vector)
    with torch.no_grad():
        for p in ours.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    theirs, (x, action) = make(kind, env), ask(env)
    theirs.save(tmp_path / "template.zip")
    theirs.policy.load_state_dict(rename_to_theirs(ours.state_dict()))
    for a, b in zip(look_here(ours, x, action), look(kind, theirs, x, action), strict=True):
        close(a, b, loosen=0.05)
    write_policy(ours.state_dict(), tmp_path / "template.zip", tmp_path / "ours.zip")
    again = kind.load(tmp_path / "ours.zip", device="cpu")
    for a, b in zip(look(kind, theirs, x, action), look(kind, again, x, action), strict=True):
        assert torch.equal(a, b)
    back = read_policy(tmp_path / "ours.zip").tensors
    assert all(torch.equal(back[name], tensor) for name, tensor in ours.state_dict().items())


class Seeded(gymnasium.Wrapper):
    """Episodes from given seeds, one after another."""

    def __init__(self, env: gymnasium.Env, seeds: list[int]):
        super().__init__(env)
        self.seeds = iter(seeds)

    def reset(self, **_: Any) -> Any:
        return self.env.reset(seed=next(self.seeds, 0))


@pytest.mark.parametrize(("kind", "env"), [(PPO, "CartPole-v1"), (PPO, "Pendulum-v1"), (DQN, "CartPole-v1")])
def test_their_evaluation_gives_our_returns(kind: Any, env: str, tmp_path: Path) -> None:
    """evaluate_policy and Player, from the same seeds."""
    theirs = make(kind, env)
    theirs.save(tmp_path / "policy.zip")
    player = Player.open(tmp_path / "policy.zip")
    ours = player.play(episodes=4, seed=2, env=env)
    seeds = [episode_seed(PLAYED, 2, i) for i in range(4)]
    world = Seeded(gymnasium.make(env), seeds)
    found, lengths = evaluate_policy(theirs, world, n_eval_episodes=4, return_episode_rewards=True, warn=False)
    np.testing.assert_allclose(ours, found, rtol=1e-5)
    assert len({*ours}) > 1
    assert player.outcome(4, 2, env).lengths.tolist() == lengths


def rewrite(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path) as file:
        old = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in (old | parts).items():
            file.writestr(name, content)
    return path


class Trap:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (exec, ("raise SystemExit('it ran')",))


def pack(found: Any) -> bytes:
    torch.save(found, stored := io.BytesIO())
    return stored.getvalue()


def test_what_is_not_such_a_policy_is_told_in_one_line(tmp_path: Path) -> None:
    def refuse(path: Path, match: str) -> None:
        with pytest.raises(Mistake, match=match) as caught:
            descend.load(path)
        assert "\n" not in str(caught.value)

    whole = tmp_path / "whole.zip"
    make(PPO, "CartPole-v1").save(whole)
    for name, parts, match in (
        ("trap.zip", {"policy.pth": pack({"w": Trap()})}, "cannot be read"),
        ("pickle.zip", {"policy.pth": pickle.dumps(Trap())}, "cannot be read"),
        ("table.zip", {"policy.pth": pack([torch.zeros(1)])}, "not a table of tensors"),
        ("strange.zip", {"policy.pth": pack({"cnn.0.weight": torch.zeros(1, 1)})}, "cnn.0.weight is of no MlpPolicy"),
        ("data.zip", {"data": b"{"}, "cannot be read"),
    ):
        path = tmp_path / name
        path.write_bytes(whole.read_bytes())
        refuse(rewrite(path, parts), match)
    (tmp_path / "text.zip").write_text("no zip")
    refuse(tmp_path / "text.zip", "cannot be read")
    refuse(tmp_path / "absent.zip", "No such file")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as file:
        file.writestr("readme", "")
    refuse(tmp_path / "empty.zip", r"holds no policy.pth")
    for name, settings, match in (
        ("relu.zip", {"activation_fn": torch.nn.ReLU}, "activation is .*ReLU.*; policies here have Tanh"),
        ("uneven.zip", {"net_arch": [32, 16]}, "all of them must be equally wide"),
        ("apart.zip", {"net_arch": {"pi": [32, 32], "vf": [32]}}, "2 hidden layers and the critic 1"),
    ):
        make(PPO, "CartPole-v1", policy_kwargs=settings).save(tmp_path / name)
        refuse(tmp_path / name, match)
    with pytest.raises(Mistake, match="networks of other sizes"):
        write_policy(ActorCritic(ActorCriticConfig(width=8)).state_dict(), whole, tmp_path / "out.zip")
    with pytest.raises(Mistake, match=r"embed\.weight is of no policy"):
        rename_to_theirs({"embed.weight": torch.zeros(1)})


def test_it_answers_like_a_run(tmp_path: Path) -> None:
    make(DQN, "CartPole-v1").save(tmp_path / "policy.zip")
    player = open_run(tmp_path / "policy.zip")
    assert isinstance(player, Player)
    with pytest.raises(Mistake, match=r"policy\.zip does not say where it was trained; name the environment: --env"):
        player.play(1)
    assert descend.play(tmp_path / "policy.zip", env="CartPole-v1")[0]["return"] > 0
