"""Autoencoder recipes: three corruptions, sparsity, layerwise starts, resuming, and what the report shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.kinds.autoencode_images import Spoiling
from descend.models.autoencoder import AutoencoderConfig
from tests.engine.small import train, training, weights

PLAIN: Any = recipes.get("autoencoder-digits")
DENOISE: Any = recipes.get("denoising-ae-digits")


def short(recipe: Any, **changes: Any) -> Any:
    return replace(recipe, loop=replace(recipe.loop, threads=1, compile="off", precision="float32", **changes))


@pytest.mark.system("denoising-autoencoder", "closer")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["gaussian", "masking", "salt-and-pepper"])
def test_outputs_are_nearer_to_the_clean_image(kind: Any, seed: int) -> None:
    run = training(short(replace(DENOISE, corruption=Spoiling(kind, 0.3)), steps=200, seed=seed))
    for _ in range(200):
        run.advance()
    found = run.evaluate()
    assert found["squared_error"] < 0.6 * found["error_of_input"]


@pytest.mark.system("sparse-autoencoder")
@pytest.mark.system("sparse-autoencoder", "sparsity", "reported")
@pytest.mark.parametrize("seed", range(3))
def test_more_lambda_more_zeros(seed: int) -> None:
    """A code of 64 rectified units: the share near zero rises with λ, and is told while training."""
    shares = []
    for sparsity in (0.0, 0.02, 0.2):
        config = AutoencoderConfig(hidden=(), latent=64, code="relu")
        run = training(short(replace(PLAIN, model=config, sparsity=sparsity), steps=150, seed=seed))
        told = [run.advance() for _ in range(150)]
        assert 0 <= told[-1]["near_zero"] <= 1
        shares.append(run.evaluate()["near_zero"])
    assert shares[0] < shares[1] - 0.02
    assert shares[1] < shares[2] - 0.02


@pytest.mark.system("he-init")
@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_with_hes_weights_a_deep_stack_does_not_begin_silent(activation: Any) -> None:
    """At the start, codes of different images are as far apart as the images, and not a hundredth of that."""
    spread = {}
    for start in ("torch", "he"):
        recipe = replace(
            PLAIN, model=AutoencoderConfig(hidden=(64,) * 6, latent=32, activation=activation), start=start
        )
        parts = short(recipe, steps=1).build()
        x = next(parts.stream)["x"]
        with torch.no_grad():
            spread[start] = float(parts.model.encode(x).std(0).mean() / x.std(0).mean())
    assert spread["torch"] < 0.1 < 0.5 < spread["he"] < 20


@pytest.mark.system("denoising-autoencoder", "from-the-stream")
@pytest.mark.system("autoencoder", "recipe")
def test_a_resumed_run_sees_the_same_noise(tmp_path: Path) -> None:
    recipe = replace(DENOISE, model=AutoencoderConfig(hidden=(16,), latent=4))
    changes = {"batch": 8, "eval_every": 3, "save_every": 3}
    whole = train(short(recipe, steps=6, **changes), tmp_path / "whole")
    train(short(recipe, steps=3, **changes), tmp_path / "parts")
    parts = train(short(recipe, steps=6, **changes), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)


@pytest.mark.system("autoencoder", "recipe")
@pytest.mark.system("deep-autoencoder", "end-to-end")
def test_what_the_report_shows() -> None:
    """Reconstructions beside PCA, and a map of the codes; 28 × 28 pixels by the deep recipe."""
    for recipe, pixels in ((PLAIN, 8), (DENOISE, 8), (recipes.get("deep-ae-mnist"), 28)):
        parts = short(recipe, batch=8).build()
        assert parts.exhibits
        with torch.no_grad():
            found = {e.title: e for e in parts.exhibits()}
        assert [e.kind for e in found.values()] == ["sheet", "points"], found
        rows = found["Reconstructions"].content["rows"]
        assert rows.shape == (4 if recipe is DENOISE else 3, 8, pixels, pixels)
        assert sum(map(len, found["Map of the codes"].content.values())) == len(parts.valid.batches.arrays["y"])


@pytest.mark.system("deep-autoencoder")
@pytest.mark.system("deep-autoencoder", "end-to-end")
def test_the_deep_recipe_learns_end_to_end() -> None:
    """Twenty steps on digits of 28 × 28: every layer moves, and the error falls."""
    run = training(short(recipes.get("deep-ae-mnist"), batch=32, steps=20))
    before = {name: p.detach().clone() for name, p in run.task.named_parameters()}
    start = run.evaluate()["squared_error"]
    for _ in range(20):
        run.advance()
    assert run.evaluate()["squared_error"] < start
    for name, p in run.task.named_parameters():
        assert not torch.equal(before[name], p), name


@pytest.mark.system("greedy-layerwise-training", "initial-weights")
def test_a_recipe_may_begin_layer_by_layer() -> None:
    config = AutoencoderConfig(hidden=(32, 16), latent=8, activation="sigmoid")
    plain, stacked = (training(short(replace(PLAIN, model=config, layerwise=n), steps=5)) for n in (0, 300))
    assert stacked.evaluate()["squared_error"] < 0.8 * plain.evaluate()["squared_error"]
