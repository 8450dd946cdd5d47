"""Kaplan's laws, the joint law and floors: limits, inverses, units, and the refitted constants."""

from __future__ import annotations

import math

import pytest

from descend.errors import Mistake
from descend.theory.scaling_laws import (
    HOFFMANN,
    KAPLAN_C,
    KAPLAN_D,
    KAPLAN_JOINED,
    KAPLAN_N,
    KAPLAN_REFITTED,
    PF_DAY,
    AdditiveLaw,
    PowerLaw,
    compute_loss,
    loss_factor,
)
from tests.close import close


@pytest.mark.system("kaplan-power-laws", "predict-and-invert")
@pytest.mark.parametrize("law", [KAPLAN_N, KAPLAN_D, KAPLAN_C, PowerLaw(2e5, 0.3, 1.5)])
def test_the_size_of_a_loss_is_the_inverse(law: PowerLaw) -> None:
    for x in (1e6, 1e9, 1e21):
        close(math.log(law.invert(law(x))), math.log(x))
        close(law(x), law.floor + law.prefactor * x**-law.alpha)


@pytest.mark.system("kaplan-power-laws", "one-nat")
def test_at_its_scale_a_law_gives_one_nat_and_never_nothing() -> None:
    assert KAPLAN_N(8.8e13) == pytest.approx(1.0)
    assert KAPLAN_D(5.4e13) == pytest.approx(1.0)
    assert KAPLAN_N(1e30) > 0


@pytest.mark.system("kaplan-power-laws", "units")
def test_compute_in_either_unit() -> None:
    close(compute_loss(3.1e8, "pf-day"), 1.0)
    close(compute_loss(PF_DAY), compute_loss(1.0, "pf-day"))
    with pytest.raises(Mistake, match="flop, pf-day"):
        compute_loss(1.0, "petaflop")


@pytest.mark.system("kaplan-power-laws", "ten-times")
def test_ten_times_the_compute() -> None:
    close(compute_loss(1e22) / compute_loss(1e21), loss_factor(10, 0.05))
    assert 100 * (1 - loss_factor(10, 0.05)) == pytest.approx(10.9, abs=0.05)


@pytest.mark.system("unified-scaling-law", "limits")
@pytest.mark.parametrize("law", [KAPLAN_JOINED, KAPLAN_REFITTED])
def test_endless_data_or_parameters_leave_one_law(law: object) -> None:
    close(law(1e9, 1e40), law.of_parameters(1e9))  # type: ignore[operator, attr-defined]
    close(law(1e50, 1e10), law.of_tokens(1e10))  # type: ignore[operator, attr-defined]


@pytest.mark.system("unified-scaling-law", "refitted")
def test_both_sets_of_constants() -> None:
    assert KAPLAN_JOINED.ratio == pytest.approx(0.8)
    assert (KAPLAN_REFITTED.d_alpha, KAPLAN_REFITTED.n_scale, KAPLAN_REFITTED.d_scale) == (0.103, 6.4e13, 1.8e13)
    assert KAPLAN_REFITTED(175e9, 300e9) != pytest.approx(KAPLAN_JOINED(175e9, 300e9), rel=0.01)
    # With the single laws' constants, 70B on 1.4T tokens is no better than 175B on 0.3T: VOM-B.115.
    assert KAPLAN_JOINED(70e9, 1.4e12) > KAPLAN_JOINED(175e9, 300e9)


@pytest.mark.system("irreducible-loss", "additive")
def test_the_additive_law_needs_constants_of_its_own() -> None:
    joined = AdditiveLaw.join(1.5, KAPLAN_N, KAPLAN_D)
    close(joined(175e9, 300e9), 1.5 + KAPLAN_N(175e9) + KAPLAN_D(300e9))
    assert joined(175e9, 300e9) > 2 * HOFFMANN(175e9, 300e9)


@pytest.mark.system("irreducible-loss")
def test_a_law_ends_at_its_floor() -> None:
    law = PowerLaw(1e5, 0.3, 1.5)
    assert law(1e60) == pytest.approx(1.5)
    with pytest.raises(Mistake, match=r"ends at its floor of 1\.5"):
        law.invert(1.5)
    with pytest.raises(Mistake, match="above 0"):
        law(0)
