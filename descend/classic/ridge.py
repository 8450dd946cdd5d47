"""Ridge regression: least squares with an L2 penalty, in closed form and along the singular directions.

    w = argmin ½ ‖Xw − y‖² + λ/2 ‖w‖² = (XᵀX + λI)⁻¹ Xᵀy
    X = U Σ Vᵀ        w = Σ_j v_j (σ_j² / (σ_j² + λ)) (u_jᵀ y / σ_j)        each direction shrinks by σ_j²/(σ_j² + λ)

Erratum: DLD 9.2 prints this closed form for an objective with (1/n). It belongs to the ½ sum. For the means it is

    (1/n) Σ (x_iᵀw − y_i)² + λ/2 ‖w‖²        (XᵀX + (nλ/2) I)⁻¹ Xᵀy        `ridge_of_mean_square`
    (1/2n) Σ (x_iᵀw − y_i)² + λ/2 ‖w‖²       (XᵀX + nλ I)⁻¹ Xᵀy            `ridge_of_half_mean_square`

The factor lies strictly between 0 and 1 only for σ_j > 0 and λ > 0. scikit-learn's `Ridge(alpha=λ)` has the ½ sum's λ.
There is no bias here: centre the columns of X and y first, then b = ȳ − x̄ᵀw is not penalised.

Systems: ridge-regression
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def ridge(x: Tensor, y: Tensor, lam: float | Tensor) -> Tensor:
    """(XᵀX + λI)⁻¹ Xᵀy for x (.., n, d), y (.., n) and λ, a number or a tensor (..): weights (.., d)."""
    lam = torch.as_tensor(lam, dtype=x.dtype)
    if bool((lam < 0).any()):
        raise Mistake("ridge: lam is negative; give 0 or more")
    gram = x.mT @ x + lam[..., None, None] * torch.eye(x.shape[-1], dtype=x.dtype)
    factor, wrong = torch.linalg.cholesky_ex(gram)
    least = factor.diagonal(dim1=-2, dim2=-1).square().amin(-1)
    most = gram.diagonal(dim1=-2, dim2=-1).amax(-1)
    if bool((wrong > 0).any() or (least <= x.shape[-1] * torch.finfo(x.dtype).eps * most).any()):
        raise Mistake(f"ridge: the {x.shape[-1]} columns are dependent and lam is too small; give lam > 0")
    return torch.cholesky_solve(x.mT @ y[..., None], factor).squeeze(-1)


def shrinkage(x: Tensor, lam: float) -> tuple[Tensor, Tensor]:
    """The singular values σ of X, largest first, and the factors σ²/(σ² + λ)."""
    sigma = torch.linalg.svdvals(x)
    return sigma, sigma.square() / (sigma.square() + lam)


def ridge_by_svd(x: Tensor, y: Tensor, lam: float) -> Tensor:
    """Σ_j v_j (σ_j / (σ_j² + λ)) u_jᵀ y; it stays accurate where XᵀX is nearly singular."""
    u, sigma, vt = torch.linalg.svd(x, full_matrices=False)
    return vt.T @ (sigma / (sigma.square() + lam) * (u.T @ y))


def ridge_of_mean_square(x: Tensor, y: Tensor, lam: float) -> Tensor:
    """argmin (1/n) ‖Xw − y‖² + λ/2 ‖w‖²"""
    return ridge(x, y, len(x) * lam / 2)


def ridge_of_half_mean_square(x: Tensor, y: Tensor, lam: float) -> Tensor:
    """argmin (1/2n) ‖Xw − y‖² + λ/2 ‖w‖²"""
    return ridge(x, y, len(x) * lam)
