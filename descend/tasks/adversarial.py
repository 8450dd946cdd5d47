"""Adversarial training: a generator g and a discriminator d move in turn, each with the other held fixed.

    min_G max_D  E log D(x) + E log(1 − D(G(z)))        D(x) = σ(d(x))

A batch holds real examples x (b, ..) and noise z (b, latent): randomness is data, so a resumed run sees the same. The
discriminator may move several times a batch, each time on its own part, and so may the generator, against the
discriminator that has just moved. With one move each, both see the whole batch.

Systems: gan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.adversarial import fake_loss, non_saturating, real_loss

GeneratorLoss = Callable[[Tensor], Tensor]
Quality = Callable[[Tensor], dict[str, Tensor]]


class Adversarial(Task):
    """`quality` scores generated examples, one value for each."""

    players = ("d", "g")

    def __init__(
        self,
        g: nn.Module,
        d: nn.Module,
        quality: Quality,
        generator_loss: GeneratorLoss = non_saturating,
        d_moves: int = 1,
        g_moves: int = 1,
    ):
        super().__init__()
        self.g, self.d = g, d
        self.quality, self.generator_loss = quality, generator_loss
        self.d_moves, self.g_moves = d_moves, g_moves

    def moves(self, batch: Batch) -> Iterator[Move]:
        for x, z in zip(batch["x"].chunk(self.d_moves), batch["z"].chunk(self.d_moves), strict=True):
            yield Move("d", lambda: self.tell_apart(x, z))
        for z in batch["z"].chunk(self.g_moves):
            yield Move("g", lambda: self.generator_loss(self.d(self.g(z))))

    def tell_apart(self, x: Tensor, z: Tensor) -> Loss:
        """The discriminator's loss, with D(x) and D(G(z)), which meet at ½ when it cannot tell them apart."""
        real, fake = self.d(x), self.d(self.g(z).detach())
        scores = {"real_score": real.sigmoid().mean(), "fake_score": fake.sigmoid().mean()}
        return Loss({"real": real_loss(real), "fake": fake_loss(fake)}, scores)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return self.quality(self.g(batch["z"]))
