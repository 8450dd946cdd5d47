"""Hand-built networks, and what training finds in their place."""

from __future__ import annotations

import pytest
import torch

from descend.data.toys.plane import factory, xor
from descend.models.mlp import MLP, MLPConfig
from descend.ops.lifting import XOR_CORNERS, density_scores, feature_map, xor_of_relus, xor_of_steps
from descend.theory.perceptron import separable
from tests.close import close

CORNERS = torch.tensor(XOR_CORNERS, dtype=torch.float64)


def trained(x: torch.Tensor, y: torch.Tensor, hidden: tuple[int, ...], steps: int) -> MLP:
    torch.manual_seed(0)
    model = MLP(MLPConfig(2, hidden, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("xor-and-inseparability", "hand-built")
def test_both_forms_compute_xor() -> None:
    expected = (CORNERS[:, 0] - CORNERS[:, 1]).abs()
    close(xor_of_steps(CORNERS), expected)
    close(xor_of_relus(CORNERS), expected)


@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("xor-and-inseparability", "learned")
def test_a_hidden_layer_learns_xor() -> None:
    x, y = CORNERS.float(), torch.tensor([0, 1, 1, 0])
    assert (trained(x, y, (8,), 300)(x).argmax(-1) == y).all()
    assert not separable(*(v for v in (x, 2.0 * y - 1)))
    clouds, classes = xor(40)
    assert not separable(clouds, 2.0 * classes - 1)


@pytest.mark.system("feature-lifting-factory")
@pytest.mark.system("feature-lifting-factory", "inseparable", "trained")
def test_no_line_separates_the_parts_but_the_trained_features_do() -> None:
    """A 2-k-2 network: its outputs are points of a plane in which a line separates defects from good parts."""
    x, y = factory(200)
    signs = 2.0 * y - 1
    assert not separable(x, signs)
    model = trained((x - x.mean(0)) / x.std(0), y, (16,), 400)
    with torch.no_grad():
        z = model((x - x.mean(0)) / x.std(0))
    assert separable(z, signs)
    assert (z.argmax(-1) == y).all()


@pytest.mark.system("feature-lifting-factory")
@pytest.mark.system("feature-lifting-factory", "fixed-weights")
def test_recomputed_points_and_scores() -> None:
    parts = torch.tensor([[1.0, 1.0], [2.5, 1.0], [1.0, 2.5]], dtype=torch.float64)
    close(feature_map(parts), torch.tensor([[0.65, 1.4], [1.025, 0.95], [1.025, 2.15]], dtype=torch.float64))
    quality, defect = density_scores(parts).T
    assert defect[0] < 0 < defect[2]  # the defect on the diagonal scores below the good heavy part
    assert quality[0] < quality[2]
