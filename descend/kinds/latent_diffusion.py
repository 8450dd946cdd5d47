"""Latent diffusion in stages: what its kinds share (`diffuse_latents`, `diffuse_captions`).

The stages of a run say who learns, at which size, from which examples and with which objective, as the published
recipes of Stable Diffusion do; how long each takes is in the schedule (`--schedule.shares`). A run that is stopped in
any stage continues there. `STABLE_DIFFUSION` has the published stages.

Systems: stable-diffusion-recipes, latent-diffusion
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss
from descend.data.images.labelled import resize
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.beside import Beside
from descend.data.streams.shards import process
from descend.data.streams.stages import StagedStream
from descend.errors import Mistake
from descend.kinds.recipe import micro_batch
from descend.ops.diffusion.prediction import Predicts
from descend.optim.rules import AdamW
from descend.ranges import NonNegative, SideOrAny
from descend.tasks import latent_diffusion
from descend.tasks.denoise import draw_noise
from descend.tasks.latent_diffusion import DENOISER, LatentDiffusion

ENCODED = 256  # images encoded at once


class Published(NamedTuple):
    """A stage of a released model: steps, side of the images, data, objective."""

    steps: int
    size: int
    data: str
    predicts: Predicts = "eps"


STABLE_DIFFUSION = {
    "v1.4": (
        Published(237_000, 256, "LAION-2B-en"),
        Published(194_000, 512, "LAION-high-resolution"),
        Published(225_000, 512, "LAION-aesthetics v2 5+"),
    ),
    "v2": (
        Published(550_000, 256, "LAION-5B, p_unsafe <= 0.1, aesthetic >= 4.5"),
        Published(850_000, 512, "the same, at least 512x512"),
        Published(150_000, 512, "the same", "v"),
        Published(140_000, 768, "the same", "v"),
    ),
}
"""Text dropped in 10% of the examples. LAION-400M, which DLN names too, is the latent-diffusion paper's."""


def count_published(version: str) -> tuple[int, float]:
    """Steps in all, and the share of them at 512 pixels or more."""
    stages = STABLE_DIFFUSION[version]
    total = sum(stage.steps for stage in stages)
    return total, sum(stage.steps for stage in stages if stage.size >= 512) / total


@dataclass(frozen=True)
class DiffusionStage:
    """One stage of a run."""

    learns: Literal["autoencoder", "denoiser", "decoder"] = "denoiser"
    size: SideOrAny = 0
    """Side of the images; 0: that of the data."""
    only: str = ""
    """Keep only examples whose caption has this word (a filter such as "aesthetic"); empty: all."""
    predicts: Predicts = "eps"
    """What the denoiser learns to say: eps, x0 or v."""


TWO_STAGES = (DiffusionStage("autoencoder"), DiffusionStage("denoiser"))


@dataclass(frozen=True)
class FirstStage:
    """How the autoencoder learns."""

    optim: AdamW = field(default_factory=lambda: AdamW(lr=1e-3, weight_decay=0.0))
    kl: NonNegative = 1e-4
    """Weight of the divergence of the code from N(0, 1), for each number of the image."""
    commitment: NonNegative = 0.25
    """Weight of a quantised code's distance from its word."""


@dataclass(frozen=True)
class Examples:
    """n examples: images in −1..1 by their rows, and what comes with them."""

    images: Callable[[Tensor], Tensor]
    beside: dict[str, Tensor]
    rows: Tensor

    def batches(self, size: int) -> Iterator[Tensor]:
        """All images in order."""
        for rows in self.rows.split(ENCODED):
            yield self.take(rows, size)

    def take(self, rows: Tensor, size: int) -> Tensor:
        """The images of some rows, brought to a size."""
        return shrink_images(self.images(rows), size)


def shrink_images(x: Tensor, size: int) -> Tensor:
    """Images in −1..1 of another side; 0: as they are."""
    return 2 * resize((x + 1) / 2, size, size) - 1 if size else x


class WithImages:
    """A stream of rows that brings their images along."""

    def __init__(self, inner: Shuffled, examples: Examples, size: int):
        self.inner, self.examples, self.size = inner, examples, size

    def __next__(self) -> Batch:
        batch = next(self.inner)
        return {**batch, "x": self.examples.take(batch["ids"], self.size)}

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state)


@dataclass(frozen=True)
class ImagesInOrder:
    """Examples for validation or test, with their images."""

    examples: Examples
    batch: int

    def __iter__(self) -> Iterator[Batch]:
        for batch in InOrder({"ids": self.examples.rows, **self.examples.beside}, self.batch):
            yield {**batch, "x": self.examples.take(batch["ids"], 0)}


@dataclass(frozen=True)
class Latents:
    """What both kinds share: streams, task and learners of a pipeline in stages."""

    recipe: Any
    pipeline: Any
    autoencoder: Any
    shape: tuple[int, int, int]
    """Of an image."""

    def code_shape(self, size: int) -> tuple[int, int, int]:
        """Of the code of images of a side."""
        c = self.autoencoder.config
        side = (size or self.shape[1]) // c.factor
        return c.code, side, side

    def stream(self, stages: list[tuple[DiffusionStage, Examples]], batch: int) -> StagedStream:
        """The streams of all stages, each with random numbers of its own."""
        loop, schedule = self.recipe.loop, self.recipe.schedule
        streams = []
        for i, (stage, examples) in enumerate(stages):
            arrays = {"ids": examples.rows, "row": torch.arange(len(examples.rows)), **examples.beside}
            inner: Any = Shuffled(arrays, micro_batch(loop, batch), loop.seed + i, *process())
            if stage.learns != DENOISER:
                inner = WithImages(inner, examples, stage.size)
            streams.append(Beside(inner, self.draw(stage.size), loop.seed + i, *process()))
        return StagedStream(streams, schedule.ends(loop.steps), loop.accumulate)

    def draw(self, size: int = 0) -> Callable[[torch.Generator, int], dict[str, Tensor]]:
        """Noise, times and dropped conditions, of images of a side."""
        shape = self.code_shape(size)
        return lambda random, n: draw_noise(shape, n, random, self.recipe.drop)

    def task(
        self,
        stages: list[tuple[DiffusionStage, Examples]],
        condition: Callable[[Batch], Tensor | None],
        learned: list[nn.Module],
        judge_asked: Callable[[Tensor], dict[str, float]] | None = None,
    ) -> LatentDiffusion:
        """`learned`: what learns in the stages of the denoiser."""
        parts = self.autoencoder
        learners = {
            "autoencoder": parts,
            "decoder": nn.ModuleList([parts.decoder, parts.post_quant_conv]),
            DENOISER: nn.ModuleList(learned),
        }

        def load_images(stage: DiffusionStage, examples: Examples) -> Callable[[], Iterable[Tensor]]:
            return lambda: examples.batches(stage.size)

        listed = [latent_diffusion.Stage(s.learns, s.predicts, load_images(s, e)) for s, e in stages]
        noise = self.pipeline.plan.noise
        return LatentDiffusion(self.pipeline, learners, listed, noise, self.autoencode, condition, judge_asked)

    def autoencode(self, x: Tensor, noise: Tensor) -> Loss:
        """The squared error of a pixel, and the autoencoder's own terms."""
        made, own = self.autoencoder.pass_through(x, noise)
        first = self.recipe.first
        weights = {"kl": first.kl / x[0].numel(), "codebook": 1.0, "commitment": first.commitment}
        terms = {name: weights[name] * value.mean() for name, value in own.items()}
        return Loss({"reconstruction": (made - x).square().mean(), **terms}, tell_kl(own))

    def optims(self, task: LatentDiffusion) -> dict[str, Any]:
        """The denoiser has the recipe's optimizer, the autoencoder that of the first stage."""
        return {name: self.recipe.optim if name == DENOISER else self.recipe.first.optim for name in task.players}


def check_stages(recipe: Any) -> None:
    """As many shares as stages; a denoiser learns after an autoencoder."""
    stages, shares = recipe.stages, recipe.schedule.shares
    if len(stages) != len(shares):
        raise Mistake(f"--schedule.shares {' '.join(map(str, shares))}: this recipe has {len(stages)} stages")
    if not any(stage.learns == DENOISER for stage in stages):
        raise Mistake("a latent diffusion model has at least one stage in which the denoiser learns")


def check_sides(side: int, halvings: int, flag: str = "--data.size") -> None:
    """Sides that can be halved so often."""
    if side % 2**halvings:
        least = 2**halvings
        raise Mistake(f"{flag} {side}: it must be halved {halvings} times; give a multiple of {least}")


def tell_kl(own: dict[str, Tensor]) -> dict[str, Tensor]:
    """The divergence without its weight, in nats."""
    return {"posterior_kl": own["kl"].detach().mean()} if "kl" in own else {}
