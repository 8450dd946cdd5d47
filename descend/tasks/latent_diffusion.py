"""Latent diffusion in stages: first the autoencoder learns from images, then the denoiser from their codes.

    autoencoder   x̂ = D(z), z ~ E(x)           L = mean |x − x̂|² + the autoencoder's own term (KL, or codebook)
    denoiser      z_t = √ᾱ_t s z + √(1 − ᾱ_t) ε  L = mean |target − f_θ(z_t, t, c)|²,   target ε or v, as the stage says
    decoder       as the first, but only D learns: codes and denoiser stay as they are, bit for bit

A batch says its stage. When a stage of the denoiser begins, all its images are encoded once, by their mean codes, and
the scale s = 1/std is measured where it is not known yet; it goes to the autoencoder's config. The codes stay in memory
with a checksum of what they were made of: a resumed run, whose weights have checksums of their own, encodes the images
again and refuses others. The diffusion loss is that of pixels (`tasks/denoise.py`): codes are images to it. Conditions
c are dropped where the batch says so.

Systems: latent-diffusion, stable-diffusion-recipes, clip-text-encoder
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
import xxhash
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.errors import Mistake
from descend.losses.diffusion import noise_prediction_loss
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.prediction import Predicts, target_of
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.weights.tensor_file import raw_bytes

DENOISER = "denoiser"
HALF = 2**32


class LatentModel(Protocol):
    """A pipeline with an autoencoder and a denoiser of its codes."""

    @property
    def unet(self) -> nn.Module: ...

    @property
    def scale(self) -> float: ...

    def to_latent(self, x: Tensor) -> Tensor: ...

    def from_latent(self, z: Tensor) -> Tensor: ...

    def set_scale(self, scale: float) -> None: ...

    def set_prediction(self, predicts: Predicts) -> None: ...


class Stage(NamedTuple):
    """Who learns, what the denoiser predicts, and the images whose codes it learns from, batch by batch."""

    player: str
    predicts: Predicts
    images: Callable[[], Iterable[Tensor]]


class LatentDiffusion(Task):
    """Players are parts of one model; each stage has one of them."""

    evidence = ("asked",)
    cached: Tensor
    scale: Tensor
    learners: dict[str, nn.Module]

    def __init__(
        self,
        model: LatentModel,
        learners: dict[str, nn.Module],
        stages: Sequence[Stage],
        noise: NoiseSchedule,
        autoencode: Callable[[Tensor, Tensor], Loss],
        condition: Callable[[Batch], Tensor | None],
        judge_asked: Callable[[Tensor], dict[str, float]] | None = None,
    ):
        """`autoencode(x, noise)`: loss of the autoencoder's stages; `condition(batch)`: what the denoiser is told;
        `judge_asked(asked)`: scores of images of what a set of examples asks for."""
        super().__init__()
        assert isinstance(model, nn.Module)
        self.model: Any = model
        self.players = tuple(dict.fromkeys(stage.player for stage in stages))
        object.__setattr__(self, "learners", learners)  # parts of the model: not to be saved twice
        self.stages, self.noise, self.autoencode, self.condition = list(stages), noise, autoencode, condition
        self.judge_asked = judge_asked
        self.register_buffer("scale", torch.zeros((), dtype=torch.float64))
        self.register_buffer("cached", torch.full((3,), -1))  # the stage of the codes, and the checksum of their images
        self.codes: Tensor | None = None
        self.stage = -1

    @property
    def autoencoder(self) -> nn.Module:
        return self.learners["autoencoder"]

    @property
    def decoder(self) -> nn.Module:
        return self.learners["decoder"]

    @property
    def denoiser(self) -> nn.Module:
        return self.learners[DENOISER]

    def moves(self, batch: Batch) -> Iterator[Move]:
        stage = int(batch["stage"][0])
        yield Move(self.stages[stage].player, lambda: self.learn(batch, stage))

    def learn(self, batch: Batch, stage: int) -> Loss:
        """The loss of a stage, which begins with its first batch."""
        if stage != self.stage:
            with torch.autocast(batch["noise"].device.type, enabled=False):
                self.begin(stage)
        if self.stages[stage].player == DENOISER:
            return Loss({"denoising": self.denoise(batch, self.take_codes(batch)).mean()})
        return self.autoencode(batch["x"], batch["noise"])

    # The denoiser

    def denoise(self, batch: Batch, z: Tensor) -> Tensor:
        """The mean squared error of each example, at its time and with its noise."""
        eps, predicts = batch["noise"], self.stages[self.stage].predicts
        t = (batch["time"] * self.noise.steps).long().clamp(max=self.noise.steps - 1)
        abar = self.noise.at(t, z)
        said = self.model.unet(add_noise(z, eps, abar), t, self.condition(batch)).to(z.dtype)
        return noise_prediction_loss(said, target_of(predicts, z, eps, abar)) / z[0].numel()

    def take_codes(self, batch: Batch) -> Tensor:
        """The codes of a batch, from those that were kept."""
        assert self.codes is not None
        return self.codes[batch["row"]]

    @torch.no_grad()
    def begin(self, stage: int) -> None:
        """Encode the images of a stage of the denoiser; measure the scale unless it is known."""
        self.stage, player = stage, self.stages[stage].player
        self.codes = None
        if player == DENOISER:
            self.model.set_prediction(self.stages[stage].predicts)
            self.model.set_scale(1.0)
            self.codes = self.encode(stage)
            if not float(self.scale):
                self.scale.fill_(float(1 / self.codes.double().std()))
            self.codes *= float(self.scale)
        if float(self.scale):
            self.model.set_scale(float(self.scale))

    def encode(self, stage: int) -> Tensor:
        """The codes of all images of a stage, as they come."""
        was, device = self.model.training, next(self.model.parameters()).device
        self.model.eval()
        digest, codes = xxhash.xxh3_64(), []
        for x in self.stages[stage].images():
            digest.update(raw_bytes(x.contiguous()))
            codes.append(self.model.to_latent(x.to(device)))
        self.model.train(was)
        self.check_images(stage, digest.intdigest())
        return torch.cat(codes)

    def check_images(self, stage: int, digest: int) -> None:
        """The checksum of the images: kept when the stage begins, compared when it is resumed."""
        found = torch.tensor([stage, digest // HALF, digest % HALF], device=self.cached.device)
        if int(self.cached[0]) == stage and not torch.equal(found, self.cached):
            raise Mistake(
                "the images are not those whose codes this run learned from; put them back, or start a new run"
            )
        self.cached.copy_(found)

    # Scores

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """Of whole images: the error of the autoencoder, and the loss of the denoiser on its codes."""
        z = self.model.to_latent(batch["x"])
        error = (self.model.from_latent(z).to(z.dtype) - batch["x"]).square().flatten(1).mean(1)
        found = {"loss": self.denoise(batch, z), "reconstruction": error}
        return {**found, "asked": batch["asked"]} if "asked" in batch else found

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """With the scores of images that are made for what is asked, where a set asks."""
        return {**means, **(self.judge_asked(evidence["asked"]) if self.judge_asked and "asked" in evidence else {})}
