"""Determinants as volumes, eigenvalues and powers, orthogonal matrices: torch, numpy, and areas measured otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from torch import Tensor

from descend.ops.math.transforms import (
    characteristic,
    determinant,
    eigen,
    image,
    is_orthogonal,
    orientation,
    power_by_eigen,
    random_orthogonal,
    reflection,
    rotation,
    signed_area,
    spectrum,
)
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit_square() -> Tensor:
    return t([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


# Volume


@pytest.mark.system("determinant-as-volume")
@pytest.mark.system("determinant-as-volume", "determinant")
@given(n=st.integers(1, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=15, derandomize=True)
def test_determinant_equals_torch(n: int, seed: int) -> None:
    a, b = noise(n, n, seed=seed), noise(n, n, seed=seed + 1)
    close(determinant(a), torch.linalg.det(a))
    close(determinant(a @ b), determinant(a) * determinant(b), loosen=10)
    close(determinant(a.mT), determinant(a))


@pytest.mark.system("determinant-as-volume")
@pytest.mark.system("determinant-as-volume", "determinant")
def test_determinants_of_the_book() -> None:
    assert determinant(torch.tensor([[2, 0], [0, 3]])) == 6
    assert determinant(torch.tensor([[1, 2], [2, 4]])) == 0
    assert determinant(torch.tensor([[1, 0], [0, -1]])) == -1
    assert determinant(torch.tensor([[2, 0, 0], [0, 3, 0], [0, 0, 1]])) == 6
    whole = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 10]])
    a, b, c, d, e, f, g, h, i = whole.flatten().tolist()
    assert determinant(whole) == a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) == -3
    assert torch.autograd.gradcheck(determinant, noise(3, 3).requires_grad_())
    for wrong, word in ((noise(2, 3), "square"), (noise(9, 9), "linalg")):
        with pytest.raises(ValueError, match=word):
            determinant(wrong)


@pytest.mark.system("determinant-as-volume")
@pytest.mark.system("determinant-as-volume", "area-and-volume", "orientation")
@given(seed=st.integers(0, 99), corners=st.integers(3, 8))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_areas_are_scaled_by_the_determinant(seed: int, corners: int) -> None:
    hull = ConvexHull(noise(corners, 2, seed=seed).numpy())
    polygon = t(hull.points[hull.vertices].tolist())  # scipy lists them counterclockwise
    close(signed_area(polygon), t(hull.volume))
    assert orientation(polygon) == "counterclockwise"
    a = noise(2, 2, seed=seed + 1)
    moved = image(a, polygon)
    close(signed_area(moved), determinant(a) * signed_area(polygon))
    close(t(ConvexHull(moved.numpy()).volume), determinant(a).abs() * hull.volume)
    assert orientation(moved) == ("counterclockwise" if determinant(a) > 0 else "clockwise")


@pytest.mark.system("determinant-as-volume")
@pytest.mark.system("determinant-as-volume", "area-and-volume")
def test_volumes_are_scaled_by_the_determinant() -> None:
    cube = torch.cartesian_prod(*[t([0.0, 1.0])] * 3)
    a = noise(3, 3)
    close(t(ConvexHull(image(a, cube).numpy()).volume), determinant(a).abs())


@pytest.mark.system("determinant-as-volume")
@pytest.mark.system("determinant-as-volume", "orientation")
def test_the_unit_square_runs_counterclockwise() -> None:
    """Erratum VOM 1.5.2: the two words are swapped there; the reversal itself is right."""
    square = unit_square()
    assert orientation(square) == "counterclockwise"
    middle = square.mean(0)
    turns = torch.atan2(*(square - middle).flip(-1).unbind(-1)).numpy()
    assert (np.diff(np.unwrap(turns)) > 0).all()  # the angle grows: counterclockwise with y upward
    assert orientation(image(t([[1.0, 0.0], [0.0, -1.0]]), square)) == "clockwise"
    assert orientation(image(t([[1.0, 2.0], [2.0, 4.0]]), square)) == "flat"


# Eigenvalues


@pytest.mark.system("eigendecomposition-and-powers")
@pytest.mark.system("eigendecomposition-and-powers", "eigenpairs", "powers")
@given(n=st.integers(1, 6), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_eigenvalues_solve_the_equation(n: int, seed: int) -> None:
    a, x = noise(n, n, seed=seed), noise(n, seed=seed + 1)
    values, vectors = eigen(a)
    close((a.to(vectors.dtype) @ vectors - vectors * values).abs() + 1, torch.ones(n, n, dtype=torch.float64))
    close(values.sum().real, a.trace())
    close(values.prod().real, torch.linalg.det(a), loosen=10)
    close(characteristic(a), t(np.poly(a.numpy()).tolist()))  # numpy builds it from the eigenvalues
    assert bool((values.abs().diff() <= 1e-9).all())
    for k in (0, 1, 5):
        close(power_by_eigen(a, x, k), torch.linalg.matrix_power(a, k) @ x, loosen=100)  # ill-conditioned eigenbases


@pytest.mark.system("eigendecomposition-and-powers")
@pytest.mark.system("eigendecomposition-and-powers", "eigenpairs")
def test_eigenpairs_of_the_book() -> None:
    a = t([[4.0, 1.0], [2.0, 3.0]])
    assert characteristic(a).tolist() == [1.0, -7.0, 10.0]
    values, vectors = eigen(a)
    close(values.real, t([5.0, 2.0]))
    close((vectors / vectors[:1]).real, t([[1.0, 1.0], [1.0, -2.0]]))  # columns [1, 1] and [1, −2]
    close(power_by_eigen(a, t([3.0, 1.0]), 1), t([13.0, 9.0]))
    exact = (7 * 5**100 + 2 * 2**100) // 3
    close(power_by_eigen(a, t([3.0, 1.0]), 100)[0], t(float(exact)))
    with pytest.raises(ValueError, match="defective"):
        power_by_eigen(t([[1.0, 1.0], [0.0, 1.0]]), t([1.0, 1.0]), 2)


@pytest.mark.system("eigendecomposition-and-powers")
@pytest.mark.system("eigendecomposition-and-powers", "complex-pairs")
@pytest.mark.parametrize("theta", [0.3, math.pi / 3, 2.0, 3.1])
def test_a_rotation_has_a_complex_pair(theta: float) -> None:
    values, _ = eigen(rotation(t(theta)))
    close(values.real, t([math.cos(theta)] * 2))
    close(values.imag, t([math.sin(theta), -math.sin(theta)]))
    report = spectrum(rotation(t(theta)))
    assert (report.complex_pairs, round(report.radius, 12)) == (1, 1.0)
    assert spectrum(rotation(t(0.0))).complex_pairs == 0


@pytest.mark.system("eigendecomposition-and-powers")
@pytest.mark.system("eigendecomposition-and-powers", "spectrum-report")
def test_spectrum_of_weights_and_of_attention() -> None:
    w = noise(60, 60) / math.sqrt(60)
    report = spectrum(w)
    theirs = np.linalg.eigvals(w.numpy())
    close(t(report.radius), t(float(np.abs(theirs).max())))
    assert report.complex_pairs == int((theirs.imag > 1e-9).sum()) > 10
    x = noise(60, seed=1)
    growth = [(torch.linalg.matrix_power(c * w, 60) @ x).norm().item() for c in (0.5, 2.0)]
    assert spectrum(0.5 * w).radius < 1 < spectrum(2 * w).radius
    assert growth[0] < 1e-9 < 1e9 < growth[1]  # below 1 the signal vanishes, above 1 it explodes
    attention = spectrum(noise(20, 20, seed=2).softmax(-1))
    close(t(attention.radius), t(1.0))  # rows sum to 1
    close(attention.values[0].real, t(1.0))
    tiny, _ = eigen(1e-12 * w)  # the order does not depend on the scale
    assert bool((tiny.abs().diff() <= 1e-21).all())
    symmetric = noise(8, 8, seed=3)
    assert spectrum(symmetric + symmetric.mT).complex_pairs == 0


# Orthogonal matrices


@pytest.mark.system("orthogonal-matrices")
@pytest.mark.system("orthogonal-matrices", "builders", "signs")
@given(n=st.integers(1, 7), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_builders_keep_lengths_and_angles(n: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    q, mirror = random_orthogonal(n, random), reflection(noise(n, seed=seed))
    u, v = noise(2, n, seed=seed + 1)
    for matrix in (q, mirror, q @ mirror):
        assert is_orthogonal(matrix)
        close((matrix @ u) @ (matrix @ v), u @ v)
        close((matrix @ v).norm(), v.norm())
        close(determinant(matrix).abs(), t(1.0))
        close(torch.linalg.inv(matrix), matrix.mT)
    close(determinant(mirror), t(-1.0))
    close(mirror @ mirror, torch.eye(n, dtype=torch.float64))


@pytest.mark.system("orthogonal-matrices")
@pytest.mark.system("orthogonal-matrices", "builders", "signs")
def test_rotations_and_mirrors() -> None:
    a, b = t(0.7), t(1.9)
    close(rotation(a) @ rotation(b), rotation(a + b))
    close(determinant(rotation(a)), t(1.0))
    close(rotation(t(math.pi / 2)) @ t([1.0, 0.0]), t([0.0, 1.0]))  # counterclockwise
    assert reflection(t([0.0, 3.0])).tolist() == [[1.0, 0.0], [0.0, -1.0]]
    close(determinant(reflection(t([1.0, 2.0])) @ reflection(t([3.0, -1.0]))), t(1.0))  # two mirrors are a rotation
    with pytest.raises(ValueError, match="zero"):
        reflection(t([0.0, 0.0]))


@pytest.mark.system("orthogonal-matrices")
@pytest.mark.system("orthogonal-matrices", "test")
def test_the_test_rejects() -> None:
    for wrong in (2 * torch.eye(3), torch.eye(3)[:2], torch.eye(3) + 1e-3, t([[1.0, 1.0], [0.0, 1.0]])):
        assert not is_orthogonal(wrong)
    assert is_orthogonal(torch.eye(3))
    assert not is_orthogonal(t([[1.0, 1.0], [0.0, 1.0]]))  # determinant 1 is not enough


@pytest.mark.system("orthogonal-matrices")
@pytest.mark.system("orthogonal-matrices", "builders")
def test_random_orthogonal_matrices_have_no_favourite() -> None:
    """Both signs of the determinant occur, and each entry has mean 0: the QR signs alone would be biased."""
    random = torch.Generator().manual_seed(0)
    drawn = torch.stack([random_orthogonal(3, random) for _ in range(600)])
    assert 0.4 < (torch.linalg.det(drawn) > 0).double().mean() < 0.6
    assert drawn.mean(0).abs().max() < 4 * math.sqrt(1 / 3 / 600)
