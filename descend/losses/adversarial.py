"""The losses of a generative adversarial network, from the discriminator's logits s, D = σ(s).

    min_G max_D  V = E log D(x) + E log(1 − D(G(z)))
    L_D                −E log D(x) − E log(1 − D(G(z)))                  = −V; 2 log 2 when D = ½ everywhere
    L_G saturating      E log(1 − D(G(z)))        ∂/∂s = −D              vanishes where D rejects: nothing to learn from
    L_G non-saturating  −E log D(G(z))            ∂/∂s = −(1 − D)        strongest there; the same fixed point

log σ(s) and log(1 − σ(s)) = log σ(−s) are taken in the log domain, finite for logits of ±1e4.
Errata: DLN-C.42 prints max_G −log D, which drives D(G(z)) to 0; right is max_G log D. DLN-C.39's first form has the
order min_D max_G; the order of the original is taken here.

Systems: gan, generator-loss-variants
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def real_loss(real: Tensor) -> Tensor:
    """−E log D(x)"""
    return -logsigmoid(real).mean()


def fake_loss(fake: Tensor) -> Tensor:
    """−E log(1 − D(G(z)))"""
    return -logsigmoid(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """−E log D(x) − E log(1 − D(G(z))): two binary cross-entropies, real is 1 and generated is 0."""
    return real_loss(real) + fake_loss(fake)


def game_values(v: Tensor) -> tuple[Tensor, Tensor]:
    """min_G max_D V and max_D min_G V of a game v[d, g]. The first is never smaller; both are one at a saddle point."""
    return v.amax(0).min(), v.amin(1).max()


def non_saturating(fake: Tensor) -> Tensor:
    """−E log D(G(z))"""
    return -logsigmoid(fake).mean()


def saturating(fake: Tensor) -> Tensor:
    """E log(1 − D(G(z))), the generator's part of V."""
    return logsigmoid(-fake).mean()
