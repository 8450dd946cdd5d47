"""Policies act greedily and play whole episodes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
import torch

from descend.data.control.environments import episode_seed
from descend.errors import Mistake
from descend.inference.player import PLAYED, Player
from descend.inference.trained import Trained
from descend.models.gaussian_actor_critic import TINY as GAUSSIAN_TINY
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.models.q_table import QTable, QTableConfig
from tests.close import close

RUN = Path(__file__).parents[1] / "verbs" / "data" / "last_release" / "ppo-cartpole"


def test_an_actor_takes_its_likeliest_action() -> None:
    player = Player.open(RUN)
    assert player.env == "CartPole-v1"
    observation = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    logits, _ = player.trained.model(observation)
    assert torch.equal(player.act(observation), logits.argmax(dim=-1))
    assert player.act(observation[0]).shape == ()


def test_a_q_network_takes_the_action_of_most_value(tmp_path: Path) -> None:
    torch.manual_seed(0)
    QNetwork(QNetworkConfig(width=8)).save_pretrained(tmp_path)
    player = Player.open(tmp_path)
    observation = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    q = player.trained.model(observation)
    chosen = q.gather(1, player.act(observation)[:, None])[:, 0]
    assert torch.equal(chosen, q.amax(dim=1))


def test_an_action_that_is_a_vector_is_the_mean(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = GaussianActorCritic(GAUSSIAN_TINY).eval()
    player = Player(Trained(model, tmp_path))
    observation = torch.randn(5, GAUSSIAN_TINY.observations)
    close(player.act(observation), model(observation)[0][:, : GAUSSIAN_TINY.actions].detach())


def test_an_episode_is_what_gymnasium_plays() -> None:
    player = Player.open(RUN)
    returns = player.play(episodes=2, seed=5)
    env = gymnasium.make("CartPole-v1")
    seen, _ = env.reset(seed=episode_seed(PLAYED, 5, 1))
    total, ended = 0.0, False
    while not ended:
        seen, reward, terminated, truncated, _ = env.step(int(player.act(torch.as_tensor(seen))))
        total, ended = total + float(reward), terminated or truncated
    assert returns[1] == total
    assert player.play(episodes=2, seed=5) == returns
    assert player.play(episodes=20, seed=5) != player.play(episodes=20, seed=6)


def test_mistakes(tmp_path: Path) -> None:
    folder = shutil.copytree(RUN / "checkpoints" / "step-000003", tmp_path / "model")
    alone = Player.open(folder)
    with pytest.raises(Mistake, match="name the environment"):
        alone.play(1)
    with pytest.raises(Mistake, match="Acrobot-v1 has 6 observations and 3 actions"):
        alone.play(1, env="Acrobot-v1")
    with pytest.raises(Mistake, match="at least 1"):
        replace(alone, env="CartPole-v1").play(0)
    with pytest.raises(Mistake, match="GPT2, which does not play"):
        Player.open(RUN.parent / "gpt2-pydoc")


def test_a_table_plays_too(tmp_path: Path) -> None:
    """States come one-hot, as networks see them."""
    model = QTable(QTableConfig(16, 4))
    with torch.no_grad():
        model.values.copy_(torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
    model.save_pretrained(tmp_path)
    player = Player.open(tmp_path)
    assert player.act(torch.eye(16)).tolist() == model.values.argmax(1).tolist()
    assert set(player.play(5, env="FrozenLake-v1")) <= {0.0, 1.0}


def test_an_environment_that_never_ends_takes_the_runs_limit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = QNetwork(QNetworkConfig(48, 4, 8)).eval()
    found = Player(Trained(model, tmp_path), "CliffWalking-v1", longest=30).outcome(2)
    assert max(found.lengths.tolist()) <= 30


def test_vectors_are_not_played_where_one_of_several_is_asked_for(tmp_path: Path) -> None:
    model = GaussianActorCritic(GaussianActorCriticConfig(4, 2, 8, 1)).eval()
    with pytest.raises(Mistake, match="CartPole-v1 takes one of its actions; GaussianActorCritic does not"):
        Player(Trained(model, tmp_path)).play(1, env="CartPole-v1")


def test_films_are_of_the_same_episodes() -> None:
    player = Player.open(RUN)
    found = player.outcome(2, 5)
    filmed = [film for film, _ in player.film(2, 5)]
    assert [film.total for film in filmed] == found.returns.tolist()
    assert [film.steps for film in filmed] == found.lengths.tolist()
