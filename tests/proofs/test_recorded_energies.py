"""Experiments on energies and scores, and figures of their recipes: what labs and trainings recorded on three seeds."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_labs import read_verdict
from tests.proofs.test_recorded_results import read

RECORDED = [
    pytest.param("direct-generator", marks=pytest.mark.system("push-forward-generator", "direct")),
    pytest.param("generative-classifiers", marks=pytest.mark.system("generative-versus-discriminative", "compared")),
    pytest.param(
        "energy-collapse", marks=pytest.mark.system("energy-collapse", "no-contrast", "switches", "limited-latent")
    ),
    pytest.param("energy-descent", marks=pytest.mark.system("energy-function-inference", "trained")),
    pytest.param("langevin-modes", marks=pytest.mark.system("langevin-sampler", "learned")),
    pytest.param(
        "persistent-chains",
        marks=[
            pytest.mark.system("contrastive-divergence", "trained"),
            pytest.mark.system("persistent-contrastive-divergence", "two-modes"),
        ],
    ),
    pytest.param("autoencoder-energies", marks=pytest.mark.system("autoencoders-as-ebm", "gap", "map")),
    pytest.param("noise-levels", marks=pytest.mark.system("multi-scale-score-model", "plane", "images", "problems")),
    pytest.param("annealed-levels", marks=pytest.mark.system("annealed-langevin", "weights")),
]


@pytest.mark.parametrize("lab", RECORDED)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    assert read_verdict(lab) == "supported"


@pytest.mark.system("persistent-contrastive-divergence", "moons")
def test_ebm_moons_is_near_the_exact_likelihood() -> None:
    """1.000 nats is the entropy of the moons, by quadrature; never significantly below it."""
    values = read("ebm-moons nll")
    assert min(values) > 0.97
    assert max(values) <= 1.15


@pytest.mark.system("noise-contrastive-estimation", "moons")
def test_nce_moons_learns_its_normaliser() -> None:
    values, claimed = read("nce-moons nll"), read("nce-moons claimed_nll")
    assert max(values) <= 1.05
    assert max(abs(a - b) for a, b in zip(values, claimed, strict=True)) < 0.05


@pytest.mark.system("gibbs-contrastive-divergence", "digits")
def test_rbm_digits_is_ahead_of_scikit_learns() -> None:
    """BernoulliRBM with as many hidden units and epochs on the same bits: −12.98 at its best (rate 0.02)."""
    assert min(read("rbm-digits pseudo_likelihood")) >= -12.98


@pytest.mark.system("multi-scale-score-model", "trained")
def test_score_mixture_has_the_shares() -> None:
    assert max(read("score-mixture weight_error")) <= 0.02
    assert min(read("score-mixture plain_weight_error")) > 0.1
