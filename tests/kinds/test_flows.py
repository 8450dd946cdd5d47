"""Recipes of flows: they learn, show what they learned, and score in the data's own units."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.contracts import Loss
from descend.engine.evaluation import score_set
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.densities import Plane
from descend.kinds.flows import ContinuousPoints, FlowPoints, MatchPoints
from descend.models.cnf import CNFConfig
from descend.models.flow_matching import FlowMatchingConfig
from descend.models.maf import MAFConfig
from descend.models.realnvp import RealNVPConfig
from descend.optim.rules import Adam
from descend.report.exhibits import make_section
from tests.engine.small import training

GAUSSIAN = 1.92  # negative log-likelihood of moons under the best Gaussian
RK4 = CNFConfig(width=24, depth=2, method="rk4", steps=4)


def learn(recipe: Any, steps: int) -> dict[str, float]:
    """Validation scores after some steps."""
    run = training(recipe)
    for _ in range(steps):
        run.advance()
    return run.evaluate()


def short(recipe: Any, lr: float = 1e-2, **loop: Any) -> Any:
    values = {"steps": 1000, "batch": 64, "clip": 1.0, "compile": "off", **loop}
    return replace(recipe, optim=Adam(lr), loop=Loop(**values))


SMALL = [
    FlowPoints(model=RealNVPConfig(couplings=4, width=16, depth=1), data=Plane(valid=200)),
    ContinuousPoints(model=RK4, data=Plane(valid=200)),
    MatchPoints(model=FlowMatchingConfig(width=16, depth=1, method="rk4", steps=4), data=Plane(valid=200)),
]
kinds = pytest.mark.parametrize("recipe", SMALL, ids=lambda recipe: type(recipe).__name__)


@pytest.mark.system("realnvp", "stages")
@pytest.mark.system("flow-matching", "two-moons")
@kinds
def test_exhibits(recipe: Any) -> None:
    """Samples beside the data and the density; the stages of a flow of layers, the velocity of a continuous one."""
    parts = recipe.build()
    shown = parts.exhibits()
    titles = [exhibit.title for exhibit in shown]
    assert titles[:2] == ["Real and generated points", "Density"]
    if isinstance(recipe, FlowPoints):
        assert titles[2:] == ["Noise", *(f"After layer {k} of 4" for k in (1, 2, 3, 4))]
        last, made = shown[-1].content["points"], shown[0].content["generated"]
        assert torch.allclose(torch.tensor(last), torch.tensor(made), atol=1e-5)
    else:
        assert titles[2:] == [f"Velocity at t = {t}" for t in ("0", "0.5", "0.9")]
        at = torch.tensor(shown[2].content["arrows"])
        v = parts.model.velocity(at[:, :2].float(), 0.0).double()
        assert torch.allclose(v / v.norm(dim=1).max() * (at[:, 2:].norm(dim=1).max()), at[:, 2:].double(), atol=1e-5)
    for exhibit in shown:
        assert "could not be drawn" not in str(make_section(exhibit))


@kinds
def test_scores_of_a_file_are_in_its_units(recipe: Any, tmp_path: Path) -> None:
    """The same points, stretched a thousandfold in one column: the likelihood changes by log 1000."""
    moons = Plane().density().sample(400, torch.Generator().manual_seed(0))
    nll = []
    for factor in (1.0, 1000.0):
        path = tmp_path / f"points-{factor:g}.csv"
        path.write_text("".join(f"{a},{factor * b}\n" for a, b in moons.double().tolist()))
        parts = replace(recipe, data=Plane(path=str(path))).build()
        nll.append(score_set(parts.task, parts.valid)["nll"])
    assert nll[1] - nll[0] == pytest.approx(6.9078, abs=1e-3)


@pytest.mark.system("normalizing-flow", "fitted")
def test_a_recipe_learns_and_tells_the_parts_of_its_loss() -> None:
    recipe = short(replace(SMALL[0], model=MAFConfig(layers=3, width=32, depth=1)))
    before, after = learn(recipe, 0), learn(recipe, 150)
    assert after["nll"] < GAUSSIAN - 0.2 < before["nll"]
    assert after["excess"] == pytest.approx(after["nll"] - 1.0076, abs=0.06)
    parts = recipe.build()
    (move,) = list(parts.task.moves(next(parts.stream)))
    loss: Loss = move.value()
    assert set(loss.terms) == {"nll"}
    assert float(loss.total().detach()) == pytest.approx(
        -float((loss.told["prior"] + loss.told["log_det"]).detach()), rel=1e-5
    )


@pytest.mark.system("continuous-normalizing-flow", "trained", "estimator")
@pytest.mark.system("hutchinson-trace", "training")
@pytest.mark.parametrize("trace", ["exact", "signs", "gaussian"])
def test_a_continuous_flow_learns_by_any_trace(trace: Any) -> None:
    """From a nearly Gaussian start to clearly less than a Gaussian; scored with the exact trace each time."""
    recipe = short(ContinuousPoints(model=RK4, data=Plane(valid=200), trace=trace))
    assert learn(recipe, 100)["nll"] < GAUSSIAN - 0.1
    batch = next(recipe.build().stream)
    assert ("eps" in batch) == (trace != "exact")
    if trace == "signs":
        assert batch["eps"].abs().eq(1).all()


@pytest.mark.system("adjoint-sensitivity", "option")
def test_a_continuous_flow_learns_by_the_adjoint_method() -> None:
    recipe = short(replace(SMALL[1], model=replace(RK4, gradient="adjoint")))
    assert learn(recipe, 30)["nll"] < GAUSSIAN + 0.05 < learn(recipe, 0)["nll"]


@pytest.mark.system("flow-matching", "two-moons")
@pytest.mark.system("flow-matching")
def test_flow_matching_learns_the_density() -> None:
    """Its likelihood as a continuous flow falls far below a Gaussian's, though no likelihood is trained."""
    recipe = short(replace(SMALL[2], model=FlowMatchingConfig(width=64, depth=2, rtol=1e-4, atol=1e-4)), batch=256)
    after = learn(recipe, 400)
    assert after["nll"] < GAUSSIAN - 0.25
    assert after["excess"] > 0


@pytest.mark.system("neural-ode", "trained")
@pytest.mark.system("adjoint-sensitivity", "option")
@pytest.mark.parametrize("gradient", ["autograd", "adjoint"])
def test_a_neural_ode_learns_to_classify(gradient: Any) -> None:
    """No line separates moons (0.85); with either gradient the ODE does better."""
    recipe: Any = recipes.get("neural-ode-moons")
    model = replace(recipe.model, gradient=gradient)
    scores = learn(short(replace(recipe, model=model), lr=2e-2), 80)
    assert scores["accuracy"] > 0.9


def test_mistakes() -> None:
    with pytest.raises(Mistake, match=r"--model\.size 3: points in the plane have 2 numbers"):
        replace(SMALL[0], model=RealNVPConfig(size=3)).build()


@pytest.mark.system("normalizing-flow", "named-layer")
def test_a_flow_that_has_run_away_names_the_layer() -> None:
    parts = SMALL[0].build()
    model: Any = parts.model
    with torch.no_grad():
        model.flow.layers[2].conditioner.layers[0].weight.fill_(float("nan"))
    (move,) = list(parts.task.moves(next(parts.stream)))
    with pytest.raises(Mistake, match=r"layer 3 of 4 \(Coupling\) makes NaN"):
        move.value()
