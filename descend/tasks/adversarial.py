"""Adversarial training: a generator g and a discriminator d move in turn, each with the other held fixed.

    min_G max_D  E log D(x) + E log(1 − D(G(z)))        D(x) = σ(d(x))

A batch holds real examples x (b, ..) and noise z (b, latent): randomness is data, so a resumed run sees the same. The
discriminator may move several times a batch, each time on its own part; the generator moves once, on all of z, against
the discriminator that has just moved.

Systems: gan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.adversarial import discriminator_loss, non_saturating

Loss = Callable[[Tensor], Tensor]
Judge = Callable[[Tensor], dict[str, Tensor]]


class Adversarial(nn.Module):
    """`judge` scores generated examples, one value for each."""

    players = ("d", "g")

    def __init__(
        self, g: nn.Module, d: nn.Module, judge: Judge, generator_loss: Loss = non_saturating, d_moves: int = 1
    ):
        super().__init__()
        self.g, self.d = g, d
        self.judge, self.generator_loss, self.d_moves = judge, generator_loss, d_moves

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        for x, z in zip(batch["x"].chunk(self.d_moves), batch["z"].chunk(self.d_moves), strict=True):
            yield "d", lambda: discriminator_loss(self.d(x), self.d(self.g(z).detach()))
        yield "g", lambda: self.generator_loss(self.d(self.g(batch["z"])))

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.judge(self.g(batch["z"]))
