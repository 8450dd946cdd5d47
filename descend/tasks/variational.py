"""Variational autoencoding: maximise the ELBO, the reconstruction's log-likelihood less β times the KL of the code.

    L = mean_i [ (1/s) Σ_l −log p(x_i | z_il) + β KL_i ]        s = 1 is usual

A batch holds x, noise eps (b, s, k) and, where they are wanted, u (uniform, of x's shape), which makes black and white
pixels of grey ones, x ← 1[u < x], anew each time that an image comes; and beta (b), which grows in a warm-up.

To score, the samples that come with the batch also give the importance-weighted bound:
−log (1/s) Σ_l p(x, z_l)/q(z_l|x); with s = 1 it is minus the ELBO, with a few hundred nearly −log p(x).

Systems: vae, beta-vae, flow-posterior-vae
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.variational import importance_bound
from descend.metrics.latent_space import active_units
from descend.ops.latent import gaussian_kl_units, standard_normal_log_prob

Error = Callable[[Tensor, Tensor], Tensor]
"""−log p(x|z) of each example from x (n, ..) and what the decoder says (n, ..)."""
ROWS = 8192  # decoded at once when scoring: bounds the memory


class Variational(Task):
    """`model(x, eps)` gives what its decoder says (b, s, ..) and KL (b); `error` is −log p(x|z) of it."""

    evidence = ("kl_units",)

    def __init__(self, model: nn.Module, error: Error, beta: float = 1.0):
        super().__init__()
        self.model: Any = model
        self.error, self.beta = error, beta

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.negative_elbo(batch))

    def negative_elbo(self, batch: Batch) -> Loss:
        """Both terms; told: KL without its weight, in nats."""
        x = choose_pixels(batch)
        out, kl = self.model(x, batch["eps"])
        beta = batch.get("beta", self.beta)
        terms = {"reconstruction": self.errors(x, out).mean(), "weighted_kl": (beta * kl).mean()}
        return Loss(terms, {"posterior_kl": kl.detach().mean()})

    def errors(self, x: Tensor, out: Tensor) -> Tensor:
        """−log p(x|z) of every sample: x (b, ..), out (b, s, ..) -> (b, s)"""
        b, s = out.shape[:2]
        return self.error(x[:, None].expand(b, s, *x.shape[1:]).flatten(0, 1), out.flatten(0, 1)).view(b, s)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Loss, its parts, and the bound by as many importance samples as the batch has noise for."""
        x, eps = choose_pixels(batch), batch["eps"]
        error, log_weight, kl = [], [], []
        for part in eps.split(max(1, ROWS // len(x)), dim=1):
            found = self.model.infer(x, part)
            error.append(self.errors(x, self.model.decode(found.z)))
            log_weight.append(standard_normal_log_prob(found.z) - error[-1] - found.log_q)
            kl.append(found.kl[:, None].expand(-1, part.shape[1]))
        reconstruction, rate = torch.cat(error, 1).mean(1), torch.cat(kl, 1).mean(1)
        return {
            "loss": reconstruction + self.beta * rate,
            "reconstruction": reconstruction,
            "kl": rate,
            "nll": -importance_bound(torch.cat(log_weight, 1)),
            "kl_units": gaussian_kl_units(*self.model.encode(x)),
        }

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """With the number of latent units that carry something."""
        return {**means, "active_units": float(active_units(evidence["kl_units"]).sum())}


def choose_pixels(batch: Batch) -> Tensor:
    """x, or black and white pixels drawn with its grey values as probabilities."""
    x = batch["x"]
    return (batch["u"] < x).to(x.dtype) if "u" in batch else x
