"""What every variational autoencoder does with its three parts, written once: encode, infer, decode, generate.

    h = encoder(x)        q(z|x) = posterior(h)        p(x|z): out = decoder(z)
    generate: z ~ N(0, I), decode; the encoder is not needed any more

`out` are logits of a Bernoulli decoder, or the means of a Gaussian one. Shapes: z (b, s, k) for s samples an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.nn.posterior import GaussianPosterior, Posterior
from descend.weights.pretrained import Pretrained

Decoder = Literal["bernoulli", "gaussian"]
MEANS: dict[Decoder, Callable[[Tensor], Tensor]] = {"bernoulli": torch.sigmoid, "gaussian": lambda out: out}


class LatentModel(Pretrained):
    """images (b, *image), noise (b, s, k) -> what the decoder says (b, s, *image), and KL (b)"""

    encoder: nn.Module
    posterior: GaussianPosterior
    decoder: nn.Module
    offers: ClassVar[frozenset[str]] = frozenset()

    def forward(self, x: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
        found = self.infer(x, eps)
        return self.decode(found.z), found.kl

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """μ and log σ² of (the Gaussian part of) q(z|x): (b, k)"""
        return self.posterior.moments(self.encoder(x))

    def infer(self, x: Tensor, eps: Tensor) -> Posterior:
        """Samples of q(z|x), one for each ε."""
        found: Posterior = self.posterior(self.encoder(x), eps)
        return found

    def decode(self, z: Tensor) -> Tensor:
        """What the decoder says of codes (.., k): (.., *image)"""
        out = self.decoder(z.flatten(0, -2))
        return out.unflatten(0, z.shape[:-1])

    def mean(self, out: Tensor) -> Tensor:
        """E p(x|z) from what the decoder says: pixels."""
        return MEANS[self.config.decoder](out)

    def reconstruct(self, x: Tensor) -> Tensor:
        """Decoded from one code for each image, the mean of q (for a flow: what becomes of the mean): (b, *image)"""
        k = self.config.latent
        return self.mean(self.decode(self.infer(x, x.new_zeros(len(x), 1, k)).z[:, 0]))

    def features(self, x: Tensor) -> Tensor:
        """The means μ (b, k)."""
        return self.encode(x)[0]

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images (count, *image): z ~ N(0, I), decoded."""
        return self.mean(self.decode(chance.normal(self.config.latent)))
