"""Recipes for energies and scores: what they build and show, and flags that do not fit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.errors import Mistake
from descend.kinds.energies import integrate_plane
from descend.kinds.scores import TwoGaussians, judge_weights
from descend.models.energy_network import EnergyNetwork
from descend.models.rbm import RBM
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.report.exhibits import make_section
from descend.seeds import generator
from tests.close import close


def get(name: str) -> Any:
    return recipes.get(name)


@pytest.mark.system("gibbs-distribution", "grid")
def test_z_is_integrated_beyond_the_data() -> None:
    """The energy of N((0.5, 0.25), 0.3²): the grid of the moons finds log 2πσ²."""
    points = get("ebm-moons").data.read()
    log_z = integrate_plane(points)
    centre = torch.tensor([0.5, 0.25])
    found = log_z(lambda x: (x - centre).square().sum(1) / (2 * 0.09))
    close(found.float(), torch.tensor(math.log(2 * math.pi * 0.09)), loosen=100)


@pytest.mark.parametrize("name", ["ebm-moons", "nce-moons"])
def test_energies_show_their_landscape_field_and_descents(name: str) -> None:
    recipe = get(name)
    recipe = replace(recipe, model=replace(recipe.model, width=8, depth=1, steps=5))
    parts = recipe.build()
    shown = parts.exhibits()
    titles = ["Real and generated points", "Density", "Energy landscape", "Score −∇E", "Inference by descent"]
    assert [one.title for one in shown] == titles
    assert not any("could not be drawn" in str(make_section(one)) for one in shown)
    heights = torch.tensor(shown[2].content["values"])
    assert heights.min() == 0
    assert heights.max() <= 1


@pytest.mark.system("persistent-contrastive-divergence", "buffer", "anew")
def test_chains_come_once_in_a_step_and_some_begin_anew() -> None:
    recipe = get("ebm-moons")
    recipe = replace(recipe, divergence=replace(recipe.divergence, chains=1024, anew=0.25))
    parts = recipe.build()
    assert parts.task.state_dict()["chains"].shape == (1024, 2)
    seen, anew = [], []
    for _ in range(40):
        batch = next(parts.stream)
        assert len(batch["chain"].unique()) == 512
        seen.append(batch["chain"])
        anew.append(batch["anew"])
    assert len(torch.cat(seen).unique()) == 1024
    assert abs(float(torch.cat(anew).float().mean()) - 0.25) < 0.02


@pytest.mark.parametrize("chains", [500, 256])
def test_chains_are_a_power_of_two_and_no_fewer_than_the_batch(chains: int) -> None:
    recipe = get("ebm-moons")
    recipe = replace(recipe, divergence=replace(recipe.divergence, chains=chains))
    with pytest.raises(Mistake, match=rf"--divergence.chains {chains}: give a power of two, at least --batch 512"):
        recipe.build()
    machine = get("rbm-digits")
    with pytest.raises(Mistake, match=r"--gibbs.chains 48: give a power of two, at least --batch 64"):
        replace(machine, gibbs=replace(machine.gibbs, chains=48)).build()


def test_a_file_of_points_is_learned_too(tmp_path: Path) -> None:
    x = torch.randn(60, 2, generator=generator(0)) * torch.tensor([3.0, 0.1]) + 7
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["a,b", *(f"{p[0]:.4f},{p[1]:.4f}" for p in x.tolist())]), encoding="utf-8")
    for name in ("ebm-moons", "nce-moons"):
        recipe = get(name)
        changed = replace(recipe, data=replace(recipe.data, path=str(path)), loop=replace(recipe.loop, batch=16))
        parts = changed.build()
        assert next(parts.stream)["x"].shape == (16, 2)
        assert parts.task.score(next(iter(parts.valid)))["nll"].isfinite().all()


@pytest.mark.system("gibbs-contrastive-divergence", "cd-k")
def test_a_machine_of_digits() -> None:
    recipe = get("rbm-digits")
    recipe = replace(recipe, model=replace(recipe.model, hidden=8, steps=3), gibbs=replace(recipe.gibbs, steps=2))
    parts = recipe.build()
    batch = next(parts.stream)
    assert batch["for_hidden"].shape == (64, 2, 8)
    assert batch["for_visible"].shape == (64, 2, 64)
    assert batch["x"].min() >= 0
    assert batch["x"].max() <= 1
    assert isinstance(parts.model, RBM)
    titles = [one.title for one in parts.exhibits()]
    assert titles == ["Samples", "Nearest training images", "Hidden units"]
    from_data = replace(recipe, gibbs=replace(recipe.gibbs, method="from-data", chains=2)).build()
    assert "chains" not in from_data.task.state_dict()


def test_scores_show_their_fields() -> None:
    recipe = get("score-mixture")
    recipe = replace(recipe, model=ScoreNetworkConfig(width=8, depth=1, levels=3, steps=2))
    shown = recipe.build().exhibits()
    assert [one.title for one in shown][1:] == [
        f"Score at {n} level" for n in ("the noisiest", "a middle", "the least noisy")
    ]
    assert not any("could not be drawn" in str(make_section(one)) for one in shown)


@pytest.mark.system("score-function", "field")
def test_the_shares_are_counted() -> None:
    """A network that says nothing leaves N(0, σ₁² + ρ²) and uniform points: half of them on each side."""
    model = ScoreNetwork(ScoreNetworkConfig(width=4, depth=1, levels=2, steps=1))
    torch.nn.init.zeros_(model.out.weight)
    torch.nn.init.zeros_(model.out.bias)
    found = judge_weights(model, TwoGaussians(valid=2000))
    assert found.keys() == {"weight_error", "plain_weight_error"}
    assert all(abs(error - 0.3) < 0.05 for error in found.values())
    mixture = TwoGaussians(share=0.3, place=2.0).mixture()
    assert mixture.pi.tolist() == pytest.approx([0.3, 0.7])
    assert mixture.mu.tolist() == [[-2.0, -2.0], [2.0, 2.0]]


def test_the_defaults_are_those_of_the_recipes() -> None:
    torch.manual_seed(0)
    model = EnergyNetwork(get("ebm-moons").model)
    assert sum(p.numel() for p in model.parameters()) == get("ebm-moons").parameters
