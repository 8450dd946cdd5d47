"""Policies and adversaries: each check speaks on made-up measurements, and names the number and the flag."""

from __future__ import annotations

from dataclasses import replace

import pytest

from descend.diagnosis.course import read_course
from descend.diagnosis.games import (
    detect_blind_critic,
    detect_clipping,
    detect_entropy_collapse,
    detect_large_kl,
    detect_strong_discriminator,
)
from descend.diagnosis.signs import Curve, Signs

PPO = {"optim.lr": 0.01, "ppo.epochs": 10, "ppo.value": 0.5, "ppo.entropy": 0.0, "data.length": 128}
GAN = {"optim.d.lr": 0.002, "game.d_moves": 3}


def curve(*values: float) -> Curve:
    return tuple(enumerate(values, 1))


def policy(**measured: list[float]) -> Signs:
    return Signs(values=PPO, measured={name: curve(*values) for name, values in measured.items()})


def test_a_kl_that_stays_large() -> None:
    found = detect_large_kl(policy(approximate_kl=[0.01] * 10 + [0.08] * 10))
    assert found
    assert found.name == "kl-too-large"
    assert "median 0.08" in found.evidence
    assert found.change == "--optim.lr 0.003 or --ppo.epochs 5"
    assert detect_large_kl(policy(kl=[0.08] * 20))
    assert detect_large_kl(policy(approximate_kl=[0.2] * 10 + [0.01] * 10)) is None  # it calmed down
    assert detect_large_kl(policy(approximate_kl=[0.01] * 19 + [5.0])) is None  # one jump
    assert detect_large_kl(policy(approximate_kl=[0.08] * 5)) is None  # too short to say
    assert detect_large_kl(policy(approximate_kl=[0.03] * 20)) is None


def test_too_many_clipped_ratios() -> None:
    found = detect_clipping(policy(clip_fraction=[0.45] * 20))
    assert found
    assert "45% of the probability ratios" in found.evidence
    assert "--ppo.epochs 5" in found.change
    assert detect_clipping(policy(clip_fraction=[0.2] * 20)) is None
    once = replace(policy(clip_fraction=[0.45] * 20), values={"optim.lr": 0.01, "ppo.epochs": 1})
    found = detect_clipping(once)
    assert found
    assert "epochs" not in found.change  # there is no fewer than one


def test_a_critic_that_explains_nothing_late() -> None:
    found = detect_blind_critic(policy(explained_variance=[0.4] * 15 + [-0.3] * 5))
    assert found
    assert "median -0.3" in found.evidence
    assert "--ppo.value 1" in found.change
    assert detect_blind_critic(policy(explained_variance=[-0.3] * 10 + [0.6] * 10)) is None  # it began badly
    assert detect_blind_critic(policy(explained_variance=[0.0] * 20))


def test_entropy_that_collapses_early() -> None:
    found = detect_entropy_collapse(policy(entropy=[0.69] * 4 + [0.01] * 16))
    assert found
    assert "fell from 0.69 to 0.01" in found.evidence
    assert found.change.startswith("--ppo.entropy 0.01")
    falls = [0.69 * 0.8**i for i in range(20)]  # sure of itself at the end, as a good policy is
    assert detect_entropy_collapse(policy(entropy=falls)) is None
    assert detect_entropy_collapse(policy(entropy=[0.69] * 4 + [0.01] * 8 + [0.4] * 8)) is None  # it came back
    assert detect_entropy_collapse(policy(entropy=[1.4] * 4 + [-2.0] * 16)) is None  # a density


def game(real: float, fake: float, first: float, last: float) -> Signs:
    measured = {"real_score": curve(*[0.5] * 5, *[real] * 15), "fake_score": curve(*[0.5] * 5, *[fake] * 15)}
    players = {"g": curve(*[first] * 5, *[last] * 15), "d": curve(*[0.1] * 20)}
    return Signs(values=GAN, measured=measured, players=players)


def test_a_discriminator_that_wins() -> None:
    found = detect_strong_discriminator(game(0.99, 0.01, 0.7, 6.0))
    assert found
    assert found.severity == "fault"
    assert "0.99" in found.evidence
    assert "from 0.7 to 6" in found.evidence
    assert found.change.startswith("--optim.d.lr 0.0006, --game.d-moves 2")


FAIR = [game(0.7, 0.01, 0.7, 6.0), game(0.99, 0.3, 0.7, 6.0), game(0.99, 0.01, 0.7, 0.8)]


@pytest.mark.parametrize("signs", FAIR)
def test_a_fair_game(signs: Signs) -> None:
    assert detect_strong_discriminator(signs) is None


def test_what_was_measured_is_read_from_the_lines() -> None:
    recipe = {"values": {"optim": {"class": "Players", "d": {"lr": 0.1}, "g": {"lr": 0.2}}, "loop": {"steps": 9}}}
    lines = [
        {"step": 1, "time": 0.1, "loss_d": 1.0, "loss_g": 2.0, "loss_d_real": 0.5, "real_score": 0.6, "lr": 0.1},
        {"step": 2, "time": 0.2, "loss_d": 1.5, "loss_g": 2.5, "loss_d_real": 0.5, "real_score": 0.7, "lr": 0.1},
        {"step": 2, "valid": {"quality": 0.5}},
    ]
    signs = read_course(recipe, lines)
    assert signs.players == {"d": curve(1.0, 1.5), "g": curve(2.0, 2.5)}
    assert signs.measured == {"real_score": curve(0.6, 0.7)}
