"""What the adversarial family's labs and trainings recorded, on three seeds each: demands that only time can show."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_labs import read_verdict
from tests.proofs.test_recorded_results import read

LABS = [
    pytest.param(
        "mode-collapse",
        marks=[
            pytest.mark.system("mode-collapse", "losses", "remedies"),
            pytest.mark.system("minibatch-discrimination", "plugged"),
        ],
    ),
    pytest.param("gan-balance", marks=pytest.mark.system("mode-collapse", "instability")),
    pytest.param(
        "oracle-discriminator",
        marks=pytest.mark.system("optimal-discriminator", "moving", "trained"),
    ),
    pytest.param(
        "shifted-distributions",
        marks=[pytest.mark.system("js-versus-wasserstein", "shift"), pytest.mark.system("wgan", "tracks")],
    ),
]


@pytest.mark.parametrize("lab", LABS)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    assert read_verdict(lab) == "supported"


RESULTS = [
    pytest.param(
        ("wgan-gp-ring quality", "wgan-gp-ring modes", "wgan-gp-grid quality", "wgan-gp-grid modes"),
        (0.9, 8, 0.9, 25),
        marks=pytest.mark.system("wgan-gp", "trained"),
    ),
    pytest.param(
        ("spectral-ring quality", "spectral-ring modes", "spectral-grid quality", "spectral-grid modes"),
        (0.9, 8, 0.9, 25),
        marks=pytest.mark.system("spectral-normalization", "trained"),
    ),
    pytest.param(("dcgan-digits classes",), (10,), marks=pytest.mark.system("dcgan", "trained")),
    pytest.param(("conditional-gan-digits right",), (0.95,), marks=pytest.mark.system("conditional-gan", "trained")),
    pytest.param(("pix2pix-scenes recovered",), (0.95,), marks=pytest.mark.system("pix2pix", "trained")),
    pytest.param(("cyclegan-scenes recovered",), (0.95,), marks=pytest.mark.system("cyclegan", "trained")),
    pytest.param(("progressive-gan-digits classes",), (9,), marks=pytest.mark.system("progressive-gan", "trained")),
    pytest.param(("stylegan-digits classes",), (9,), marks=pytest.mark.system("stylegan", "trained")),
]


@pytest.mark.parametrize(("claims", "bars"), RESULTS)
def test_the_recorded_figures_reach_their_bars(claims: tuple[str, ...], bars: tuple[float, ...]) -> None:
    for claim, bar in zip(claims, bars, strict=True):
        assert min(read(claim)) >= bar
