"""VAE recipes: bounds, warm-up, binarisation, importance samples at test, resuming, and what the report shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend.models as models
from descend import recipes
from descend.errors import Mistake
from descend.inference.sampler import Sampler
from descend.kinds.variational_images import EvidenceBound, grow_weight
from descend.metrics.latent_space import walk_evenness
from descend.models.flow_vae import FlowVAEConfig
from descend.models.vae import VAEConfig
from descend.ops.latent import interpolate, move_along
from tests.close import close
from tests.engine.small import train, training, weights

DIGITS: Any = recipes.get("vae-digits")
BETA: Any = recipes.get("beta-vae-digits")
MNIST: Any = recipes.get("vae-mnist")
SMALL = VAEConfig(hidden=(16,), latent=3)


def short(recipe: Any, **changes: Any) -> Any:
    return replace(recipe, loop=replace(recipe.loop, threads=1, compile="off", precision="float32", **changes))


@pytest.mark.system("beta-vae", "schedule")
def test_the_weight_grows_with_the_examples() -> None:
    recipe = replace(short(BETA, batch=8), bound=EvidenceBound(beta=4.0, warmup=2))
    whole = training(recipe).parts.stream
    halves = training(short(recipe, batch=8, accumulate=2)).parts.stream
    for _ in range(4):
        batch = next(whole)
        parts = [next(halves), next(halves)]
        close(torch.cat([part["beta"] for part in parts]), batch["beta"])  # however the step is cut
        close(torch.cat([part["eps"] for part in parts]), batch["eps"])
    close(grow_weight(torch.tensor([0, 8, 16, 99]), 4.0, 16), torch.tensor([0.0, 2.0, 4.0, 4.0]))
    assert batch["beta"].tolist() == [4.0] * 8


@pytest.mark.system("beta-vae", "schedule")
@pytest.mark.system("vae", "recipes")
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe = replace(BETA, model=SMALL, bound=EvidenceBound(beta=4.0, warmup=5, binarise="dynamic"))
    changes = {"batch": 8, "eval_every": 3, "save_every": 3}
    whole = train(short(recipe, steps=6, **changes), tmp_path / "whole")
    train(short(recipe, steps=3, **changes), tmp_path / "parts")
    parts = train(short(recipe, steps=6, **changes), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)
    assert type(models.load(whole.folder)).__name__ == "VAE"
    sampler = Sampler.open(whole.folder)
    images = sampler.sample(5, seed=1)
    assert images.shape == (5, 1, 8, 8)
    assert 0 <= images.min() <= images.max() <= 1
    close(sampler.sample(1, seed=1, first=3)[0], images[3])


@pytest.mark.system("vae", "importance", "recipes")
def test_the_test_has_many_importance_samples() -> None:
    recipe = replace(short(MNIST, batch=8), model=SMALL, bound=EvidenceBound(importance=20, binarise="dynamic"))
    run = training(recipe)
    batch = next(iter(recipe.test()))
    assert batch["eps"].shape[1:] == (20, 3)
    again = next(iter(recipe.test()))
    assert torch.equal(batch["eps"], again["eps"])
    assert torch.equal(batch["u"], again["u"])  # one binarisation of the test images
    assert set(next(run.parts.stream)) == {"x", "y", "ids", "eps", "u"}
    found = run.task.score({name: v[:32] for name, v in batch.items()})
    assert (found["nll"] <= found["reconstruction"] + found["kl"] + 5).all()
    assert "drawn anew" in run.parts.facts["pixels"]
    assert MNIST.bound.importance >= 200


def test_threshold_and_mistakes() -> None:
    recipe = replace(short(BETA, batch=8), model=SMALL, bound=EvidenceBound(binarise="threshold"))
    assert (next(training(recipe).parts.stream)["u"] == 0.5).all()
    with pytest.raises(Mistake, match=r"--bound\.binarise needs --model\.decoder bernoulli"):
        replace(recipe, model=replace(SMALL, decoder="gaussian")).build()
    with pytest.raises(Mistake, match="cannot be halved"):
        replace(DIGITS, model=replace(DIGITS.model, maps=(4, 4, 4, 4))).build()


@pytest.mark.system("vae", "recipes")
@pytest.mark.system("latent-traversals", "grid")
@pytest.mark.parametrize(
    "model", [SMALL, VAEConfig(hidden=(16,), latent=2), FlowVAEConfig(hidden=(16,), latent=3, steps=2)]
)
def test_what_the_report_shows(model: Any) -> None:
    parts = replace(short(BETA, batch=8), model=model, bound=EvidenceBound()).build()
    assert parts.exhibits
    with torch.no_grad():
        found = {e.title: e for e in parts.exhibits()}
    assert not [e for e in found.values() if e.kind == "missing"], found
    last = "The latent plane, decoded" if model.latent == 2 else "One unit moved, the others held"
    expected = ["Samples", "Reconstructions", "Map of the codes", "Walks through the latent space", last]
    assert set(expected) <= set(found)
    walks = found["Walks through the latent space"].content["rows"]
    assert walks.shape == (4, 11, 8, 8)
    plane = found[last].content["rows"]
    assert plane.shape == ((10, 10, 8, 8) if model.latent == 2 else (3, 9, 8, 8))


@pytest.mark.system("latent-traversals", "edits", "smooth")
def test_walks_begin_with_the_reconstruction_and_are_even() -> None:
    """After some training: the ends of a walk are the reconstructions, and no step jumps."""
    run = training(short(DIGITS, steps=120, ema=0.0))
    for _ in range(120):
        run.advance()
    model: Any = run.parts.model
    x = next(iter(run.parts.valid))["x"][:8]
    with torch.no_grad():
        z = model.features(x)
        path = model.mean(model.decode(interpolate(z[:4], z[4:], 9)))
        close(path[0], model.reconstruct(x[:4]))
        close(path[-1], model.reconstruct(x[4:]), loosen=10)
        nothing = move_along(z, torch.ones(z.shape[1]), torch.zeros(1))[0]
        close(model.mean(model.decode(nothing)), model.reconstruct(x))
        assert max(walk_evenness(path[:, i]) for i in range(4)) < 3
