"""Stable Diffusion: text to image by a frozen text encoder, a conditioned U-Net on latents, and a decoder.

    c = τ(prompt), u = τ("") or of a negative prompt          τ: CLIP's text encoder, a vector for each token
    z_T ~ N(0, I)
    ε = (1 − γ) ε_θ(z, t, u) + γ ε_θ(z, t, c)                 one doubled batch a step; one plain call at γ = 1
    z ← step(z, ε),   image = decoder(z / s)

A U-Net with more input channels than the latent takes spatial conditions beside it: [z ; m ; E(x ∘ (1 − m))] for
inpainting (9 channels), [z ; depth] for a depth map (5). Version 2 reads the text encoder's last layer but one: its
folder has an encoder with one layer less, so nothing changes here. `words`, where they are known, are all that its
captions were made of: a prompt with another word is refused. A safety checker in a folder is not opened. With leading
spacing the times are one later (offset 1) and predicted latents are not clipped, whatever the scheduler's file says.

Opens and writes diffusers' StableDiffusionPipeline, and folders of its relatives for editing and
inpainting, which have the same parts.

Systems: text-to-image-pipeline, clip-text-encoder, latent-diffusion
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from descend.contracts import Chance, Wish
from descend.errors import Mistake, nearest
from descend.models import autoencoder_kl, clip_text_model, unet_2d_condition
from descend.models._denoising import choose_plan, lay_channels
from descend.models.autoencoder_kl import AutoencoderKL, AutoencoderKLConfig
from descend.models.clip_text_model import ClipTextConfig, ClipTextModel
from descend.models.unet_2d_condition import UNet2DCondition, UNet2DConditionConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import Predicts
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.ranges import NonNegative
from descend.sampling.diffusion.denoiser import Predict, free_guidance
from descend.sampling.diffusion.samplers import draw
from descend.text.clip import load_tokenizer
from descend.text.tokenizer import Tokenizer
from descend.weights.layout import Layout
from descend.weights.pipeline import Pipeline


@dataclass(frozen=True)
class StableDiffusionConfig:
    """The parts, how they sample, and how much the prompt counts unless asked otherwise."""

    vae: AutoencoderKLConfig = field(default_factory=AutoencoderKLConfig)
    text_encoder: ClipTextConfig = field(default_factory=ClipTextConfig)
    unet: UNet2DConditionConfig = field(default_factory=UNet2DConditionConfig)
    plan: Plan = field(default_factory=Plan)
    guidance: NonNegative = 7.5
    words: tuple[str, ...] = ()
    """All words of the captions that it was trained on; none: not known."""


class StableDiffusionPipeline(Pipeline):
    """images (b, c, h, w), t (b,), tokens (b, s) -> the prediction at their codes, and the images through the codes"""

    Config = StableDiffusionConfig
    kinds: ClassVar = {"vae": (AutoencoderKL,), "text_encoder": (ClipTextModel,), "unet": (UNet2DCondition,)}
    offers = frozenset({"steps", "method", "guidance", "prompts"})
    vae: AutoencoderKL
    text_encoder: ClipTextModel
    unet: UNet2DCondition
    tokenizer: Tokenizer | None = None

    def __init__(self, config: StableDiffusionConfig):
        super().__init__(config)
        if self.plan.spacing == "leading":  # as diffusers does with any scheduler in this pipeline
            self.set("plan", replace(self.plan, offset=1, clip=0.0))

    def forward(self, x: Tensor, t: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        z = self.to_latent(x)
        return self.unet(z, t, self.text_encoder(tokens).hidden), self.from_latent(z)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """Images in −1..1."""
        return self.from_latent(self.denoise(chance, wish))

    def denoise(self, chance: Chance, wish: Wish, negative: str = "") -> Tensor:
        """The latents of new images."""
        if self.unet.config.channels != self.vae.config.latent:
            raise Mistake("this model edits images (its U-Net takes a mask or a map); use: descend edit")
        shape = self.shape
        z = chance.normal(*shape)
        predict = self.predictor(chance.count, wish, negative=negative)
        return draw(predict, z, choose_plan(self.plan, wish), lambda: chance.normal(*shape), wish.steps)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the latent."""
        c = self.vae.config
        side = self.unet.config.size or c.size // c.factor
        return c.latent, side, side

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height and width of the images."""
        side = self.shape[1] * self.vae.config.factor
        return self.vae.config.out, side, side

    def predictor(self, count: int, wish: Wish, beside: Tensor | None = None, negative: str = "") -> Predict:
        """What a sampler calls: guided by the prompts; `beside` are channels that are laid beside the latent."""
        gamma = self.settings.guidance if wish.guidance is None else wish.guidance
        if not wish.prompts:
            if wish.guidance not in (None, 1):
                raise Mistake(f"--guidance {wish.guidance}: guidance needs something to be guided by; give --prompt")
            gamma = 0.0
        prompts = wish.prompts or ("",) * count
        found = self.encode_prompts([*prompts, negative])
        conditions, none = found[:-1], found[-1:].expand(count, -1, -1)

        network = lay_channels(self.unet, beside)
        return free_guidance(network, conditions, none, gamma)

    def to_latent(self, x: Tensor) -> Tensor:
        """s·z of images in −1..1, by the mean code."""
        return self.vae.to_latent(x)

    def from_latent(self, z: Tensor) -> Tensor:
        """Images of codes."""
        return self.vae.from_latent(z)

    @property
    def scale(self) -> float:
        """s: what codes are multiplied with."""
        return self.vae.config.scale

    def set_scale(self, scale: float) -> None:
        """Another scale, measured on the data."""
        self.vae.config = replace(self.vae.config, scale=scale)

    def set_prediction(self, predicts: Predicts) -> None:
        """What the U-Net learns to say: eps, x0 or v."""
        self.set("plan", replace(self.plan, predicts=predicts))

    # Text

    @torch.no_grad()
    def encode_prompts(self, prompts: Sequence[str]) -> Tensor:
        """τ of each prompt (b, s, d); the encoder is frozen, so no gradient reaches it."""
        return self.text_encoder(self.tokenize(prompts)).hidden

    def tokenize(self, prompts: Sequence[str]) -> Tensor:
        """start, the text, end, and pads (b, context); words that were never learned are refused."""
        if self.tokenizer is None:
            raise Mistake("this pipeline has no tokenizer; copy its folder again, with tokenizer/")
        c = self.text_encoder.config
        for prompt in prompts:
            self.check_words(prompt)
        start, end = self.tokenizer.special("bos_token"), self.tokenizer.special("eos_token")
        pad = self.tokenizer.special("pad_token")
        start, end = c.start if start is None else start, c.end if end is None else end
        rows = [[start, *ids[: c.context - 2], end] for ids in self.tokenizer.encode_many(list(prompts))]
        filled = [row + [end if pad is None else pad] * (c.context - len(row)) for row in rows]
        return torch.tensor(filled, device=self.text_encoder.token.weight.device)

    def check_words(self, prompt: str) -> None:
        """Refuse a word that no caption had."""
        known = self.settings.words
        for word in re.findall(r"\w+", prompt.lower()) if known else ():
            if word not in known:
                shown = ", ".join(known[:40]) + (", .." if len(known) > 40 else "")
                raise Mistake(f"--prompt: {word!r} was in none of its captions.{nearest(word, known)} Known: {shown}")

    def use_tokenizer(self, tokenizer: Tokenizer, captions: Sequence[str] = ()) -> None:
        """A tokenizer that was learned here, and the words that it was learned from."""
        self.tokenizer = tokenizer
        self.set("words", tuple(sorted({word for text in captions for word in re.findall(r"\w+", text.lower())})))

    def read_rest(self, folder: Path) -> None:
        if (folder / "tokenizer").is_dir():
            self.tokenizer = load_tokenizer(folder / "tokenizer")

    def write_rest(self, folder: Path) -> dict[str, list[str]]:
        named = {"tokenizer": ["transformers", "PreTrainedTokenizerFast"]}
        if any(name.startswith("tokenizer/") for name in self.companions):
            named = {"tokenizer": ["transformers", "CLIPTokenizer"]}
        elif self.tokenizer is not None:
            (folder / "tokenizer").mkdir(exist_ok=True)
            self.tokenizer.settings |= {"model_max_length": self.text_encoder.config.context}
            self.tokenizer.save(folder / "tokenizer")
        nothing: list[str] = [None, None]  # type: ignore[list-item]
        return named | {"safety_checker": nothing, "feature_extractor": nothing}


TINY = StableDiffusionConfig(
    vae=autoencoder_kl.TINY,
    text_encoder=ClipTextConfig(vocab=61, context=6, width=6, depth=1, heads=2, hidden=8, start=59, end=60),
    unet=replace(unet_2d_condition.TINY, size=4),
    plan=Plan(NoiseSchedule("scaled-linear", 1000, 0.00085, 0.012), method="ddim", steps=3),
)


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(60, (2, 6), generator=random)
    return torch.randn(2, 1, 8, 8, generator=random), torch.tensor([3, 700]), tokens


SIZES = {
    "stable-diffusion-1": StableDiffusionConfig(
        autoencoder_kl.SIZES["stable-diffusion"],
        clip_text_model.SIZES["clip-vit-large-patch14"],
        unet_2d_condition.SIZES["stable-diffusion-1"],
    ),
}
PARAMETERS = {"stable-diffusion-1": 859_520_964 + 123_060_480 + 83_653_863}
LAYOUT = Layout("StableDiffusionPipeline", library="diffusers")
