"""The two pre-training losses of BERT: fill in what was hidden, and tell whether a text follows another.

    p_t = softmax(W h_t + b)                      from the corrupted text; M: the chosen positions
    L_MLM = −(1/|M|) Σ_{t ∈ M} log p_t(x_t)       MEAN (MF 32.4, 34.4); this is what training minimises here
    L_MLM = −Σ_{t ∈ M} log p_t(x_t)               SUM (MF 20.2, VOM 13.2)
    G_t = (p_t − y_t) / |M|,  ∂L/∂W = Σ_t G_t h_tᵀ,  ∂L/∂b = Σ_t G_t,  ∂L/∂h_t = Wᵀ G_t        of the mean

    two classes   L_NSP = −log softmax(z)_y       class 0: it follows, class 1: it does not (the released BERT)
    one logit     L_NSP = −[y log q + (1 − y) log(1 − q)],  q = σ(u),  ∂L/∂u = q − y,  y = 1: it follows (MF 32.5)

With u = z_0 − z_1 the two are one. A guess costs log 2. Where no position is chosen, both the mean and its gradient
are 0, never 0/0. Erratum: MF 32.4.3 loses 1/|M| in the gradients of W and h; MF 34.4.3 has it, as here. VOM 13.3 prints
the case of a text that follows only.

Systems: mlm, next-sentence-prediction
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from descend.losses.classification import binary_cross_entropy, cross_entropy


def mean_or_zero(losses: Tensor) -> Tensor:
    """The mean of all values, and 0 (with a gradient of 0) where there are none."""
    return losses.sum() / max(losses.numel(), 1)


def masked_lm_sum(logits: Tensor, y: Tensor, at: Tensor) -> Tensor:
    """−Σ log p_t(y_t) over the positions where `at` is true: logits (b, t, v), y and at (b, t)."""
    return cross_entropy(logits[at], y[at]).sum()


def masked_lm_loss(logits: Tensor, y: Tensor, at: Tensor) -> Tensor:
    """The mean over the positions where `at` is true. Padding is left out in the same way: `at` is then the mask."""
    return mean_or_zero(cross_entropy(logits[at], y[at]))


class Gradients(NamedTuple):
    """Of the mean loss, by the head's matrix, its bias, and the vectors below."""

    w: Tensor
    b: Tensor
    h: Tensor


def masked_lm_gradients(h: Tensor, w: Tensor, b: Tensor, y: Tensor, at: Tensor) -> Gradients:
    """In closed form: h (t, d), w (v, d), b (v), y and at (t)."""
    p = (h @ w.T + b).softmax(dim=-1)
    g = (p - p.new_zeros(p.shape).scatter(-1, y[:, None], 1.0)) * at[:, None] / at.sum().clamp(min=1)
    return Gradients(g.T @ h, g.sum(dim=0), g @ w)


def next_sentence_losses(logits: Tensor, y: Tensor) -> Tensor:
    """Of each pair: logits (b, 2), y (b): 0 where the second text follows, 1 where it does not."""
    return cross_entropy(logits, y)


def next_sentence_losses_one_logit(u: Tensor, follows: Tensor) -> Tensor:
    """Of each pair, MF's form: one logit u (b), `follows` (b) is 1 where the second text follows."""
    return binary_cross_entropy(u, follows.to(u.dtype))
