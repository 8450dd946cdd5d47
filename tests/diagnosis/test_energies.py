"""Energies that explode: found by what the task measured, and only then."""

from __future__ import annotations

import pytest

from descend.diagnosis.energies import detect_exploding_energies
from descend.diagnosis.examine import order_findings
from descend.diagnosis.signs import Signs
from tests.diagnosis.test_games import curve

VALUES = {"optim.lr": 0.002, "divergence.eta": 0.004, "divergence.size": 0.0005}


def energies(data: list[float], samples: list[float], **values: float) -> Signs:
    return Signs(values=values or VALUES, measured={"data_energy": curve(*data), "sample_energy": curve(*samples)})


BAD = energies([0.0] * 10 + [2860.0] * 10, [0.1] * 10 + [239_328.0] * 10)


@pytest.mark.system("persistent-contrastive-divergence", "doctor")
def test_a_gap_that_grows() -> None:
    """The numbers of a run of ebm-moons with lr 0.002 and steps of 0.004, which exploded."""
    found = detect_exploding_energies(BAD)
    assert found
    assert found.severity == "fault"
    assert "2.36e+05" in found.evidence
    assert found.change == "--optim.lr 0.0006, --divergence.eta 0.002, --divergence.size 0.005, and --clip 1"
    assert "exploding-energies" in [finding.name for finding in order_findings(BAD, None).findings]


@pytest.mark.parametrize(
    "signs",
    [
        energies([-2.0] * 20, [-1.9] * 20),
        energies([-70.0] * 20, [-71.0] * 20),  # a Boltzmann machine: low, but together
        energies([0.0] * 20, [30.0] * 20),  # apart from the beginning, and no farther
        energies([0.0] * 15 + [500.0] + [0.0] * 4, [0.0] * 20),  # one jump
        energies([0.0] * 3, [1e5] * 3),  # too short to say
        Signs(),
    ],
)
def test_a_sound_run(signs: Signs) -> None:
    assert detect_exploding_energies(signs) is None


def test_flags_that_a_recipe_does_not_have_are_not_named() -> None:
    machine = energies([0.0] * 20, [0.0] * 10 + [1000.0] * 10, **{"optim.lr": 0.2})
    found = detect_exploding_energies(machine)
    assert found
    assert found.change == "--optim.lr 0.06, and --clip 1"
