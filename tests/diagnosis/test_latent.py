"""Posterior collapse is named with its number and the flags that help, and only where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend import recipes
from descend.diagnosis.latent import detect_posterior_collapse
from descend.diagnosis.signs import Curve, Signs
from descend.kinds.variational_images import EvidenceBound
from tests.engine.small import training

VALUES = {"bound.beta": 8.0, "model.decoder": "gaussian", "model.variance": 0.2}


def curve(*values: float) -> Curve:
    return tuple(enumerate(values, 1))


@pytest.mark.system("beta-vae", "monitor")
def test_a_collapsed_posterior_is_named() -> None:
    signs = Signs(values=VALUES, steps=2000, measured={"posterior_kl": curve(*[2.0] * 5, *[0.01] * 15)})
    found = detect_posterior_collapse(signs)
    assert found
    assert found.name == "posterior-collapse"
    assert "median 0.01 nats" in found.evidence
    assert found.change == "--bound.beta 2, or --model.variance 0.05, or --bound.warmup 500"
    plain = replace(signs, values={"bound.beta": 1.0, "model.decoder": "bernoulli"})
    found = detect_posterior_collapse(plain)
    assert found
    assert found.change == "--bound.warmup 500"


def test_what_is_no_collapse() -> None:
    for values in ([5.0] * 20, [0.01] * 5, [0.0] * 10 + [3.0] * 10):
        assert detect_posterior_collapse(Signs(values=VALUES, measured={"posterior_kl": curve(*values)})) is None
    assert detect_posterior_collapse(Signs()) is None


@pytest.mark.system("beta-vae", "monitor")
def test_a_run_with_too_much_beta_shows_it() -> None:
    """β s² far above every variance of the digits: the KL goes to 0, no unit is active, and the doctor says so."""
    recipe: Any = recipes.get("beta-vae-digits")
    recipe = replace(recipe, bound=EvidenceBound(beta=200.0))
    run = training(replace(recipe, loop=replace(recipe.loop, steps=60, threads=1, compile="off")))
    kl = [run.advance()["posterior_kl"] for _ in range(60)]
    assert run.evaluate()["active_units"] == 0
    assert detect_posterior_collapse(Signs(values=VALUES, steps=60, measured={"posterior_kl": curve(*kl)}))
