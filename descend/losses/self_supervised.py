"""Losses of representations that are learned without labels. One value for each example.

    InfoNCE    −log exp(s₊/τ) / Σ_j exp(s_j/τ)              s = −E: similarities, or energies turned round
    NT-Xent    −log exp(cos(i, j)/τ) / Σ_{k≠i} exp(cos(i, k)/τ)       SimCLR: 2N views, i and j of the same image
    MoCo       InfoNCE of q·k₊ against q·k of a queue       vectors of length 1
    PIRL       −log h(v, m₊) − Σ_j log(1 − h(v, m_j))       h(v, m) = exp(v·m/τ) / (exp(v·m/τ) + Σ_j exp(v·m_j/τ))
    BYOL       ‖p̂ − ẑ‖² = 2 − 2 cos(p, z)                   no negatives
    SimSiam    −cos(p, z)                                   in [−1, 1]

N equal energies give log N. Random embeddings in many dimensions have cosines near 0, so NT-Xent begins near
log(2N − 1). DLN names InfoNCE, SimCLR, MoCo and PIRL without formulas; these are the ones of the papers. In PIRL's h
the sum over the negatives is the same in every factor: h of a negative m_j is exp(v·m_j/τ) over exp(v·m_j/τ) + Σ.

Systems: infonce, simclr, moco, pirl, byol, simsiam
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake
from descend.losses.checks import same_shape
from descend.losses.classification import cross_entropy
from descend.losses.metric_learning import cosine


def check_temperature(tau: float) -> None:
    if tau <= 0:
        raise Mistake(f"temperature {tau}: it must be greater than 0")


def info_nce(scores: Tensor, positive: Tensor, tau: float = 1.0) -> Tensor:
    """Similarities (b, N) and which of the N is the positive (b) -> (b): softmax cross-entropy of s / τ."""
    check_temperature(tau)
    return cross_entropy(scores / tau, positive)


def info_nce_of_energies(energies: Tensor, positive: Tensor, tau: float = 1.0) -> Tensor:
    """The same of energies, low where things fit: s = −E."""
    return info_nce(-energies, positive, tau)


def nt_xent(z1: Tensor, z2: Tensor, tau: float = 0.5) -> Tensor:
    """Embeddings of two views (n, d) each -> the losses of the 2n views (2n), those of z1 first."""
    same_shape(z1, z2, "first and second views")
    check_temperature(tau)
    n = len(z1)
    z = normalize(torch.cat([z1, z2]), dim=-1)
    scores = (z @ z.T / tau).fill_diagonal_(-torch.inf)
    other = torch.arange(2 * n, device=z.device).roll(n)
    return torch.logsumexp(scores, dim=1) - scores.gather(1, other[:, None])[:, 0]


def against_queue(q: Tensor, k: Tensor, queue: Tensor, tau: float = 0.07) -> Tensor:
    """InfoNCE of queries q and their keys k (b, d) against the keys of a queue (K, d): 1 + K candidates -> (b)."""
    same_shape(q, k, "queries and keys")
    q, k = normalize(q, dim=-1), normalize(k, dim=-1)
    scores = torch.cat([(q * k).sum(-1, keepdim=True), q @ queue.T], dim=1)
    return info_nce(scores, torch.zeros(len(q), dtype=torch.long, device=q.device), tau)


def noise_contrastive(v: Tensor, m: Tensor, negatives: Tensor, tau: float = 0.07) -> Tensor:
    """PIRL's −log h(v, m) − Σ_j log(1 − h(v, m_j)): v, m (b, d) and N memories for each (b, N, d) -> (b)."""
    same_shape(v, m, "embeddings and memories")
    check_temperature(tau)
    v, m, negatives = (normalize(x, dim=-1) for x in (v, m, negatives))
    s = (v * m).sum(-1, keepdim=True) / tau
    s_j = torch.einsum("bd,bnd->bn", v, negatives) / tau
    noise = torch.logsumexp(s_j, dim=1, keepdim=True)
    log_h = s - torch.logaddexp(s, noise)
    log_not = noise - torch.logaddexp(s_j, noise)  # log(1 − h_j)
    return -log_h[:, 0] - log_not.sum(1)


def cosine_regression(p: Tensor, z: Tensor) -> Tensor:
    """BYOL's ‖p/‖p‖ − z/‖z‖‖² = 2 − 2 cos: (b, d) twice -> (b), between 0 and 4."""
    return 2 - 2 * cosine(p, z)


def negative_cosine(p: Tensor, z: Tensor) -> Tensor:
    """SimSiam's D(p, z) = −cos(p, z), with no gradient into z: (b, d) twice -> (b)."""
    return -cosine(p, z.detach())


def contrastive_margin(d: Tensor, same: Tensor, margin: float = 1.0) -> Tensor:
    """Verification's y d² + (1 − y) max(0, m − d)² of distances d (b); `same` (b) is true where both are one."""
    same_shape(d, same, "distances and labels")
    return torch.where(same.bool(), d.square(), (margin - d).relu().square())
