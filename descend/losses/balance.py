"""The load-balancing loss: without it a router may come to use the same few experts for every token.

    f_e = mean over tokens of p_e(x)                     the mean gate, through which the gradient flows
    P_e = share of the tokens with e in T_k              no gradient
    L = α N Σ_e f_e P_e

Even use gives α k, since Σ P_e = k (not α, as for the Switch layer with k = 1); all tokens on k experts give up to α N.
f and P are MF's letters; the Switch paper exchanges them. α is 0.01 for Switch and 0.02 for the released Mixtral.

Systems: load-balancing-loss
"""

from __future__ import annotations

import torch
from torch import Tensor


def balance_loss(p: Tensor, index: Tensor) -> Tensor:
    """N Σ_e f_e P_e of n tokens: gates p (n, N), experts chosen (n, k). Times α it joins the loss.

    The tokens of several layers one after another give the value that transformers reports for the whole model.
    """
    return balance_value(p.mean(0), shares(index, p.shape[1]).to(p.dtype))


def balance_value(f: Tensor, share: Tensor) -> Tensor:
    """N Σ_e f_e P_e"""
    return len(f) * (f * share).sum()


def shares(index: Tensor, experts: int) -> Tensor:
    """P (N,): which share of the tokens chose each expert; index (n, k)."""
    return index.flatten().bincount(minlength=experts) / len(index)


def load_entropy(share: Tensor) -> Tensor:
    """Entropy of the experts' use, as a share of that of even use: 1 when balanced, 0 when one expert has all."""
    return torch.special.entr(share / share.sum()).sum() / torch.tensor(float(len(share))).log()
