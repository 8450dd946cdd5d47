"""Sizes of a recipe, their steps, and answers from planted losses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from descend import recipes
from descend.errors import Mistake
from descend.theory.compute_optimal import training_flops
from descend.theory.scaling_laws import PowerLaw
from descend.tuning.ladder import (
    GROWTH,
    Rung,
    answer,
    find_widths,
    plan_factors,
    plan_ladder,
    resize,
    scale_widths,
    weigh,
)
from tests.close import close
from tests.engine.small import small

SLUG = "scaling-law-sweep"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2-chars", ["model.width"]),
        ("mlp-digits", ["model.hidden"]),
        ("resnet-digits", ["model.width"]),
        ("cnn-images", ["model.stem", "model.widths"]),
    ],
)
def test_what_makes_a_model_larger(name: str, expected: list[str]) -> None:
    assert list(find_widths(recipes.get(name))) == expected


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (["model.with"], r"no flag --model.with\. Did you mean 'model.width'"),
        (["optim.lr"], "not a size"),
        (["model.eps"], "not a size"),
    ],
)
def test_what_is_no_width(by: list[str], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        find_widths(recipes.get("gpt2-chars"), by)


def test_a_model_without_widths_is_refused() -> None:
    with pytest.raises(Mistake, match=r"--by model\.NAME"):
        find_widths(recipes.get("lenet-digits"))


def test_widths_stay_what_the_heads_divide() -> None:
    recipe = recipes.get("gpt2-chars")  # 4 heads
    widths = find_widths(recipe)
    assert [scale_widths(recipe, widths, f)["model.width"] for f in (1.0, 0.4, 0.01)] == [128, 52, 4]
    digits = recipes.get("mlp-digits")
    assert scale_widths(digits, find_widths(digits), 0.1) == {"model.hidden": (26, 26)}
    close(plan_factors(3, 16.0), [1 / 16, 1 / 4, 1.0])


@pytest.mark.parametrize(("sizes", "span", "said"), [(2, 8.0, "fewer than 3"), (5, 1.0, "above 1")])
def test_what_is_no_ladder(sizes: int, span: float, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        plan_factors(sizes, span)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> list[Rung]:
    return plan_ladder(small(tmp_path_factory.mktemp("text"), steps=120), 3, 4.0, 0.0)


def test_a_ladder_is_planned_from_measured_steps(ladder: list[Rung]) -> None:
    assert [rung.values for rung in ladder] == [{"model.width": w} for w in (4, 8, 16)]
    assert ladder[-1].steps == 120
    n = [rung.parameters for rung in ladder]
    assert n == sorted(n)
    for rung in ladder:
        assert abs(rung.steps - 120 * (rung.parameters / n[-1]) ** GROWTH) <= 0.5
        assert rung.seconds > 0


def test_flops_are_counted(ladder: list[Rung]) -> None:
    """8 rows of 16 tokens: between 6 N D without the embedding of the input and twice that (attention, output)."""
    inner = 2 * (12 * 16**2)
    least = training_flops(inner + 256 * 16, 8 * 16)
    assert least < ladder[-1].flops < 1.5 * least


def test_too_little_time_is_told(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=120)
    with pytest.raises(Mistake, match=r"would take 0 steps, too few; give at least --budget \d+s and --steps \d+"):
        plan_ladder(recipe, 3, 4.0, 0.001)
    with pytest.raises(Mistake, match=r"too few; give at least --steps \d\d"):
        plan_ladder(small(tmp_path), 3, 2.0, 0.0)
    with pytest.raises(Mistake, match="do not differ"):
        plan_ladder(recipe, 9, 1.5, 0.0)


def test_a_size_has_its_own_schedule(tmp_path: Path) -> None:
    recipe = replace(small(tmp_path, steps=120))
    sized = resize(recipe, {"model.width": 8}, 60)
    assert (sized.model.width, sized.loop.steps, sized.schedule.warmup) == (8, 60, 1)
    assert weigh(recipe, {"model.width": 8}, 0.5).values == {"model.width": 8}


RUNGS = [Rung(1.0, {"model.width": 1}, round(n), 1.0, 0.1, round(0.01 * n**0.5)) for n in np.geomspace(1e6, 1e8, 6)]
RUNGS = [replace(r, flops=6.0 * r.parameters) for r in RUNGS]
LAW = PowerLaw(3e7, 0.3, 1.4)


@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_planted_law_is_answered(seed: int) -> None:
    random = np.random.default_rng(seed)
    losses = [LAW(r.compute) * math.exp(0.002 * random.standard_normal()) for r in RUNGS]
    found = answer(RUNGS, losses, 10.0, 100)
    low, high = found["law"]["floor_interval"]
    assert low <= 1.4 <= high
    at = found["prediction"]
    close(at["compute"], 10 * RUNGS[-1].compute)
    assert at["interval"][0] <= LAW(at["compute"]) <= at["interval"][1]
    spent = 6.0 * at["parameters"] * at["steps"]  # along the ladder's own direction
    assert spent == pytest.approx(at["compute"], rel=0.01)
    assert len(found["curve"]["compute"]) == len(found["curve"]["low"])


def test_warnings_and_no_law() -> None:
    losses = [LAW(r.compute) for r in RUNGS]
    assert any("near a floor" in said for said in answer(RUNGS, losses, 10.0, 20)["warnings"])
    assert any("beyond 10x" in said for said in answer(RUNGS, losses, 100.0, 20)["warnings"])
    rising = answer(RUNGS, losses[::-1], 10.0, 20)
    assert rising["law"] is None
    assert any("no law" in said for said in rising["warnings"])
    with pytest.raises(Mistake, match="--times 0"):
        answer(RUNGS, losses, 0.0)
