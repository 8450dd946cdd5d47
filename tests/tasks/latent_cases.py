"""Cases of autoencoding, variational and token tasks, for `tests.tasks.cases`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.losses.variational import bernoulli_nll
from descend.models import autoencoder, dalle, dvae, flow_vae, vq_vae
from descend.nn.corruption import SaltAndPepper
from descend.tasks.autoencode import Autoencode
from descend.tasks.relaxed_tokens import RelaxedTokens
from descend.tasks.variational import Variational
from descend.tasks.visual_tokens import Quantize, VisualTokens

B = 8


def grey(*shape: int) -> Tensor:
    return torch.rand(B, *shape, dtype=torch.float64)


def autoencode() -> tuple[Task, Batch]:
    task = Autoencode(autoencoder.Autoencoder(autoencoder.TINY), SaltAndPepper(0.3), sparsity=0.1)
    return task, {"x": grey(1, 3, 4), "u": grey(1, 3, 4)}


def variational() -> tuple[Task, Batch]:
    batch = {"x": grey(1, 4, 4), "u": grey(1, 4, 4), "beta": grey()}
    noise = torch.randn(B, 2, 3, dtype=torch.float64)
    return Variational(flow_vae.FlowVAE(flow_vae.TINY), bernoulli_nll, 2.0), {**batch, "eps": noise}


def quantize() -> tuple[Task, Batch]:
    return Quantize(vq_vae.VQVAE(vq_vae.TINY)), {"x": grey(3, 8, 8)}


def visual_tokens() -> tuple[Task, Batch]:
    words = torch.randint(dalle.TINY.words, (B, dalle.TINY.caption))
    return VisualTokens(dalle.DallE(dalle.TINY)), {"x": grey(3, 8, 8), "tokens": words}


def relaxed_tokens() -> tuple[Task, Batch]:
    c = dvae.TINY
    return RelaxedTokens(dvae.DVAE(c), 0.1), {"x": grey(3, 8, 8), "u": grey(*c.grid, c.vocab)}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "Autoencode": autoencode,
    "Quantize": quantize,
    "RelaxedTokens": relaxed_tokens,
    "Variational": variational,
    "VisualTokens": visual_tokens,
}
