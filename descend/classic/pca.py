"""Principal component analysis: the linear projection that loses least, in three forms.

    PCA         cov = V Λ Vᵀ (1/n), λ_1 ≥ λ_2 ≥ ..      z = Vᵏᵀ (x − μ)      x̂ = Vᵏ z + μ
                (1/n) Σ_i ‖x_i − x̂_i‖² = Σ_{j>k} λ_j: what is lost is the sum of the dropped eigenvalues
    kernel      K_ij = κ(x_i, x_j), centred K̃ = K − 1K − K1 + 1K1 (1 = all 1/n);  K̃ a = n λ a,  ‖a‖ = 1/√(nλ)
                z_j(x) = Σ_i a_ij κ̃(x_i, x); with the linear kernel these are the scores of PCA, up to their signs
    logistic    x ∈ 0..1,  p(x_d = 1) = σ(θ_d),  θ = z Vᵀ + m;  z, V, m minimise the cross-entropy

The kernel's formula is not printed in the book, which only says "PCA in the space of a predefined kernel"; logistic PCA
is named only. Both follow the usual definitions (Schölkopf and others 1998; Collins and others 2001). Signs are fixed
so that the entry of largest size in every component is positive.

Systems: pca, kernel-pca, logistic-pca
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from descend.errors import Mistake

Kernel = Callable[[Tensor, Tensor], Tensor]
"""(n, d), (m, d) -> (n, m)"""


def check_rows(x: Tensor, keep: int, most: int) -> None:
    """Rows of finite numbers, and no more components than there can be."""
    if x.dim() != 2 or len(x) < 2 or not x.isfinite().all():
        raise Mistake(f"principal components need at least 2 rows of finite numbers, not shape {tuple(x.shape)}")
    if not 1 <= keep <= most:
        raise Mistake(f"{keep} components: these rows have 1 to {most}")


def fix_signs(columns: Tensor) -> Tensor:
    """Each column times ±1, so that its entry of largest size is positive."""
    top = columns.gather(0, columns.abs().argmax(0, keepdim=True))
    return columns * torch.where(top < 0, -1.0, 1.0).to(columns.dtype)


@dataclass(frozen=True)
class PCA:
    """μ (d), components V (d, k) and all eigenvalues λ, largest first."""

    mean: Tensor
    components: Tensor
    eigenvalues: Tensor

    @classmethod
    def fit(cls, x: Tensor, keep: int) -> PCA:
        """The leading components of rows x (n, d)."""
        check_rows(x, keep, min(x.shape))
        mean = x.mean(0)
        _, s, vt = torch.linalg.svd(x - mean, full_matrices=False)
        return cls(mean, fix_signs(vt[:keep].T), s.square() / len(x))

    def transform(self, x: Tensor) -> Tensor:
        """z = Vᵀ (x − μ): (n, d) -> (n, k)"""
        return (x - self.mean) @ self.components

    def inverse(self, z: Tensor) -> Tensor:
        """x̂ = V z + μ: (n, k) -> (n, d)"""
        return z @ self.components.T + self.mean

    @property
    def residual(self) -> Tensor:
        """Σ_{j>k} λ_j: the mean squared distance of the fitted rows from their reconstructions."""
        return self.eigenvalues[self.components.shape[1] :].sum()


def linear_kernel(x: Tensor, y: Tensor) -> Tensor:
    """x · y"""
    return x @ y.T


def polynomial_kernel(degree: int, offset: float = 1.0) -> Kernel:
    """(x · y + c)^p"""
    return lambda x, y: (x @ y.T + offset) ** degree


def gaussian_kernel(gamma: float) -> Kernel:
    """exp(−γ ‖x − y‖²)"""
    return lambda x, y: (-gamma * torch.cdist(x, y).square()).exp()


@dataclass(frozen=True)
class KernelPCA:
    """The fitted rows (n, d), coefficients a (n, k), eigenvalues of K̃, and what centring needs."""

    rows: Tensor
    kernel: Kernel
    coefficients: Tensor
    eigenvalues: Tensor
    column_means: Tensor
    mean: Tensor

    @classmethod
    def fit(cls, x: Tensor, keep: int, kernel: Kernel) -> KernelPCA:
        """The leading components of rows x (n, d) in the space of the kernel."""
        check_rows(x, keep, len(x) - 1)
        k = kernel(x, x)
        columns, mean = k.mean(0), k.mean()
        values, vectors = torch.linalg.eigh(k - columns - columns[:, None] + mean)
        values, vectors = values.flip(0)[:keep], fix_signs(vectors.flip(1)[:, :keep])
        if values[-1] <= values[0] * len(x) * torch.finfo(x.dtype).eps:
            raise Mistake(f"{keep} components: in the space of this kernel the rows vary in fewer directions")
        return cls(x, kernel, vectors / values.sqrt(), values, columns, mean)

    def transform(self, x: Tensor) -> Tensor:
        """z_j = Σ_i a_ij κ̃(x_i, x): (m, d) -> (m, k)"""
        k = self.kernel(x, self.rows)
        return (k - k.mean(1, keepdim=True) - self.column_means + self.mean) @ self.coefficients


@dataclass(frozen=True)
class LogisticPCA:
    """Loadings V (d, k), orthonormal, and offsets m (d) of the logits."""

    loadings: Tensor
    offset: Tensor

    @classmethod
    def fit(cls, x: Tensor, keep: int, steps: int = 200, ridge: float = 1e-3) -> LogisticPCA:
        """Rows x (n, d) in 0..1, by alternating majorisation: σ'(θ) ≤ ¼, so each half is a least-squares problem.

        `ridge` is a small penalty on the codes: without it codes of separable rows grow without bound.
        """
        check_rows(x, keep, min(x.shape))
        if x.min() < 0 or x.max() > 1:
            raise Mistake("logistic PCA needs values in 0..1; scale them")
        share = x.mean(0).clamp(1e-3, 1 - 1e-3)
        m, start = share.logit(), PCA.fit(x, keep)
        v, z = start.components, 4 * start.transform(x)
        for _ in range(steps):
            target = working_response(x, z @ v.T + m) - m
            z = solve_ridge(target, v, ridge)
            target = working_response(x, z @ v.T + m)
            m = (target - z @ v.T).mean(0)
            v = solve_ridge((working_response(x, z @ v.T + m) - m).T, z, ridge)
        q, r = torch.linalg.qr(v)
        u = torch.linalg.svd(r @ (z.T @ z) @ r.T).U
        return cls(fix_signs(q @ u), m)

    def transform(self, x: Tensor, steps: int = 200, ridge: float = 1e-3) -> Tensor:
        """The codes of rows (n, d) that explain them best: (n, k)"""
        z = x.new_zeros(len(x), self.loadings.shape[1])
        for _ in range(steps):
            z = solve_ridge(working_response(x, z @ self.loadings.T + self.offset) - self.offset, self.loadings, ridge)
        return z

    def logits(self, z: Tensor) -> Tensor:
        """θ = V z + m"""
        return z @ self.loadings.T + self.offset

    def inverse(self, z: Tensor) -> Tensor:
        """σ(V z + m), strictly inside 0..1: (n, k) -> (n, d)"""
        return self.logits(z).sigmoid()

    def cross_entropy(self, x: Tensor) -> Tensor:
        """−Σ_d x log p + (1 − x) log(1 − p) of each row's reconstruction: (n, d) -> (n)"""
        theta = self.logits(self.transform(x))
        return (softplus(theta) - x * theta).sum(1)


def working_response(x: Tensor, theta: Tensor) -> Tensor:
    """θ + 4 (x − σ(θ)): the least-squares target of the quadratic that lies above the cross-entropy at θ."""
    return theta + 4 * (x - theta.sigmoid())


def solve_ridge(y: Tensor, v: Tensor, ridge: float) -> Tensor:
    """Z minimising ‖Y − Z Vᵀ‖² + λ ‖Z‖²: Y (n, d), V (d, k) -> (n, k)"""
    gram = v.T @ v + ridge * torch.eye(v.shape[1], dtype=v.dtype)
    return torch.linalg.solve(gram, v.T @ y.T).T
