"""Image-to-image translation by adversaries: with pairs (pix2pix), and without (CycleGAN).

    pairs     min_G max_D  E log D(y, x) + E log(1 − D(G(x), x)) + λ E ‖y − G(x)‖₁          x source, y target

    unpaired  G_Y: X -> Y,  G_X: Y -> X;  D_Y judges Y, D_X judges X
              L_GAN(G_Y, D_Y) + L_GAN(G_X, D_X) + λ (E ‖G_X(G_Y(x)) − x‖₁ + E ‖G_Y(G_X(y)) − y‖₁)
              + λ_id (E ‖G_Y(y) − y‖₁ + E ‖G_X(x) − x‖₁)
              discriminators, if asked:  + γ/2 (E ‖∇D_Y(y)‖² + E ‖∇D_X(x)‖²)              D: the mean of its patches

‖·‖₁ is a mean over pixels. Erratum: DLN prints the GAN pairs crosswise, L_GAN(G_X, D_Y) + L_GAN(G_Y, D_X), where a
discriminator would judge images of the other domain; here each judges the domain that its generator makes. λ is a
fill-in: 100 and 10 in the papers. Left out: CycleGAN's buffer of 50 earlier images. Beyond the papers is R1, the slope
at real images: between a wrong image and the right one a steep discriminator has a valley, which G does not cross.

Systems: pix2pix, cyclegan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.adversarial import GameLoss
from descend.losses.cycle import l1_distance
from descend.losses.gradient_penalty import r1_penalty
from descend.tasks.adversarial import Adversarial, GameRules, Quality, run_still

Judge = Callable[[Tensor, Batch], dict[str, Tensor]]


class TranslatePairs(Adversarial):
    """pix2pix: the generator reads a source image, the discriminator sees both. Batch: source and x, its target."""

    def __init__(self, g: nn.Module, d: nn.Module, quality: Quality, rules: GameRules, l1: float = 100.0):
        super().__init__(g, d, quality, rules, inputs=(), given=("source",))
        self.l1 = l1

    def beside(self, part: Batch, made: Tensor) -> dict[str, Tensor]:
        return {"l1": self.l1 * l1_distance(made, part["x"])}

    def score(self, batch: Batch) -> dict[str, Tensor]:
        made = self.make(batch)
        return {"l1": (made - batch["x"]).abs().flatten(1).mean(1), **self.quality(made, batch)}


class TwoWays(nn.Module):
    """Two networks of one kind, as one player: `x` for what is or becomes X, `y` for Y."""

    def __init__(self, x: nn.Module, y: nn.Module):
        super().__init__()
        self.x, self.y = x, y


class TranslateUnpaired(Task):
    """CycleGAN: batches of x and y that do not belong together."""

    players = ("d", "g")

    def __init__(
        self,
        g: TwoWays,
        d: TwoWays,
        quality: Judge,
        loss: GameLoss,
        cycle: float = 10.0,
        identity: float = 0.0,
        r1: float = 0.0,
    ):
        super().__init__()
        self.g, self.d, self.quality, self.loss = g, d, quality, loss
        self.cycle, self.identity, self.r1 = cycle, identity, r1
        if loss.compares != "nothing":
            raise ValueError("unpaired images have no pairs to compare; choose another loss")

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("d", lambda: self.tell_apart(batch))
        yield Move("g", lambda: self.translate(batch))

    def tell_apart(self, batch: Batch) -> Loss:
        """Both discriminators: D_Y on y and G_Y(x), D_X on x and G_X(y)."""
        terms: dict[str, Tensor] = {}
        told: dict[str, Tensor] = {}
        for way, other in (("y", "x"), ("x", "y")):
            judge, maker = self.d.get_submodule(way), self.g.get_submodule(way)
            with torch.no_grad():
                made = run_still(maker, batch[other])
            real, fake = judge(batch[way]), judge(made)
            terms |= {f"{name}_{way}": value for name, value in self.loss.of_discriminator(real, fake).items()}
            told |= {f"{name}_{way}": value for name, value in self.loss.tell(real, fake).items()}
            if self.r1:
                terms[f"r1_{way}"] = self.r1 * r1_penalty(average_patches(judge), batch[way])
        return Loss(terms, told)

    def translate(self, batch: Batch) -> Loss:
        """Both generators: convince the discriminator of the domain they make, and come back."""
        x, y = batch["x"], batch["y"]
        made_y, made_x = self.g.y(x), self.g.x(y)
        terms: dict[str, Tensor] = {}
        for way, made in (("y", made_y), ("x", made_x)):
            fake = run_still(self.d.get_submodule(way), made)
            found = self.loss.of_generator(fake.new_empty(0), fake)
            terms |= {f"{name}_{way}": value for name, value in found.items()}
        terms["cycle"] = self.cycle * (l1_distance(self.g.x(made_y), x) + l1_distance(self.g.y(made_x), y))
        if self.identity:
            terms["identity"] = self.identity * (l1_distance(self.g.y(y), y) + l1_distance(self.g.x(x), x))
        return Loss(terms)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """How far x is from itself after going there and back, and what `quality` says of G_Y(x)."""
        made = self.g.y(batch["x"])
        back = (self.g.x(made) - batch["x"]).abs().flatten(1).mean(1)
        return {"cycle": back, **self.quality(made, batch)}


def average_patches(judge: nn.Module) -> Callable[[Tensor], Tensor]:
    """images -> the mean of the scores of each (b)"""
    return lambda x: judge(x).flatten(1).mean(1)
