"""Flows as models: density, samples and inverses together, zuko's whole flow as the oracle, masks after loading."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import zuko  # type: ignore[import-untyped]
from torch import Tensor

from descend.contracts import Generates, Wish
from descend.data.toys.densities import Moons
from descend.engine.minimise import minimise
from descend.models import iaf, load, maf, realnvp, spline_flow
from descend.models._flows import Flow
from descend.nn.flow.coupling import Coupling
from descend.nn.flow.transforms import Affine
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.sampling.chance import PerExample
from descend.seeds import generator
from tests.close import close
from tests.nn.flow.jacobians import DOUBLE, check_layer, integrate, points, shake

FAMILIES: dict[str, Flow] = {
    "realnvp": realnvp.RealNVP(realnvp.RealNVPConfig(2, 4, 16, 1)),
    "spline": spline_flow.SplineFlow(spline_flow.SplineFlowConfig(2, 3, 5, 3.0, 16, 1)),
    "maf": maf.MAF(maf.MAFConfig(2, 3, 16, 1)),
    "iaf": iaf.IAF(iaf.IAFConfig(2, 3, 16, 1)),
}


def model(name: str, scale: float = 0.6) -> Flow:
    return shake(FAMILIES[name], scale)


@pytest.mark.system("normalizing-flow")
@pytest.mark.system("normalizing-flow", "density")
@pytest.mark.system("realnvp")
@pytest.mark.system("masked-autoregressive-flow")
@pytest.mark.system("inverse-autoregressive-flow")
@pytest.mark.parametrize("name", FAMILIES)
def test_density_and_samples_belong_together(name: str) -> None:
    """The density integrates to 1, log-determinants are autograd's, and both ways undo each other."""
    flow = model(name)
    assert abs(integrate(flow.log_prob, box=14.0, cells=560) - 1) < 2e-3
    check_layer(flow.flow, points(4, 2), loosen=1000)  # layers with scales far from 1 lose digits
    z, _ = flow.flow.inverse(flow.push(points(2000, 2)))
    close(z, points(2000, 2), loosen=1000)
    x = points(50, 2)
    prior, log_det = flow.terms(x)
    close(flow(x), prior + log_det)


@pytest.mark.system("normalizing-flow", "density")
@pytest.mark.parametrize("name", FAMILIES)
def test_samples_fill_the_cells_as_the_density_says(name: str) -> None:
    """Shares of 40,000 samples in 36 cells of the plane against the density's integral over each."""
    flow, n = model(name, 0.4), 40_000
    x = flow.push(points(n, 2))
    edges = torch.linspace(-3, 3, 7, dtype=DOUBLE)
    counts = torch.histogramdd(x.detach(), [edges, edges]).hist / n
    fine = (torch.arange(240, dtype=DOUBLE) + 0.5) / 240 * 6 - 3
    with torch.no_grad():
        p = flow.log_prob(torch.cartesian_prod(fine, fine)).exp().view(6, 40, 6, 40).sum((1, 3)) * (6 / 240) ** 2
    assert ((counts - p).abs() < 5 * (p / n).sqrt() + 1e-3).all()


@pytest.mark.system("realnvp")
def test_a_whole_flow_is_zukos() -> None:
    """zuko's composed coupling transforms over a standard normal, with the weights of ours."""
    flow = shake(realnvp.RealNVP(realnvp.RealNVPConfig(size=3, couplings=3, width=8, depth=1)), 0.7)
    parts = []
    for layer in reversed(flow.flow.layers):
        assert isinstance(layer, Coupling)

        def meta(kept: Tensor, layer: Coupling = layer) -> torch.distributions.Transform:
            s, b = Affine().read(layer.conditioner(kept))
            own = torch.distributions.AffineTransform(-b * (-s).exp(), (-s).exp())
            return zuko.transforms.DependentTransform(own, 1)

        stays = torch.arange(3) < layer.cut if layer.first else torch.arange(3) >= layer.cut
        parts.append(zuko.transforms.CouplingTransform(meta, stays))
    base = zuko.distributions.DiagNormal(torch.zeros(3).double(), torch.ones(3).double())
    theirs = zuko.distributions.NormalizingFlow(zuko.transforms.ComposedTransform(*parts), base)
    x = points(9, 3)
    close(flow.log_prob(x), theirs.log_prob(x))


@pytest.mark.system("masked-autoregressive-network", "loaded")
@pytest.mark.parametrize("name", ["maf", "iaf"])
def test_masks_are_right_after_loading(name: str, tmp_path: Path) -> None:
    """They are not in the file, and what is read depends only on what comes before it."""
    flow = FAMILIES[name].float()
    flow.save_pretrained(tmp_path)
    assert not any("mask" in key for key in flow.state_dict())
    again: Any = load(tmp_path)
    layer = again.flow.layers[0].made
    assert torch.equal(layer.layers[0].mask, flow.flow.layers[0].made.layers[0].mask)  # type: ignore[index,union-attr]
    x = torch.randn(3, 2)
    assert torch.equal(again.log_prob(x), flow.log_prob(x))
    moved = torch.stack([x[:, 0], x[:, 1] + 1], 1)
    assert torch.equal(layer(x)[:, 0], layer(moved)[:, 0])


@pytest.mark.parametrize("name", FAMILIES)
def test_generates_each_example_by_its_own_numbers(name: str) -> None:
    flow = FAMILIES[name].float()
    assert isinstance(flow, Generates)
    with torch.no_grad():
        batch = flow.generate(PerExample(5, 4), Wish())
        alone = flow.generate(PerExample(5, 1, first=2), Wish())
        stages = flow.stages(PerExample(5, 4).normal(2))
    close(batch[2:3], alone)
    assert len(stages) == len(flow.flow.layers) + 1
    close(stages[-1], batch)
    assert flow.sample(3, generator(1)).shape == (3, 2)


@pytest.mark.system("normalizing-flow", "fitted")
@pytest.mark.system("normalizing-flow")
def test_a_flow_fits_points_better_than_a_gaussian() -> None:
    """300 steps on two moons: held-out points are likelier than under the best Gaussian, and never than is possible."""
    torch.manual_seed(0)
    flow = spline_flow.SplineFlow(spline_flow.SplineFlowConfig(2, 2, 8, 4.0, 32, 1))
    moons, random = Moons(), generator(0)
    minimise(flow, lambda: -flow.log_prob(moons.sample(128, random)).mean(), 300, Adam(5e-3), Cosine(), clip=1.0)
    held, train = moons.sample(2000, generator(1)), moons.sample(5000, generator(2))
    gaussian = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
    with torch.no_grad():
        ours, best = flow.log_prob(held).mean(), moons.log_prob(held).mean()
    assert gaussian.log_prob(held).mean() + 0.4 < ours < best


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: realnvp.RealNVPConfig(size=1), "at least 2 coordinates"),
        (lambda: replace(spline_flow.TINY, pieces=1), "a spline of one piece"),
        (lambda: replace(spline_flow.TINY, size=1), "at least 2 coordinates"),
    ],
)
def test_sizes_that_cannot_be(make: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()
