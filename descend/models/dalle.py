"""DALL-E 1: a caption and an image as one sequence of tokens, learned by one transformer.

    image -> grid of tokens (VQ-VAE)        sequence: caption t_1 .. t_T, then image tokens row by row i_1 .. i_N
    number in the joint vocabulary          text 0 .. V_t − 1,  image V_t + code
    p(text, image) = Π_j p(s_j | s_1 .. s_{j−1})                                GPT-2's blocks, causal
    text to image: read the caption, draw i_1 .. i_N (image tokens only), decode the grid

The book's tokens are those of a VQ-VAE; the original's come from a discrete VAE with 8192 codes and 32×32 places
(`dvae`); either can be the `codes`. Left out: sparse attention, row and column position embeddings (positions are
learned, one for each place), and reranking by CLIP. With a caption of one start token there is no text: the transformer
is the autoregressive prior of the VQ-VAE.

Systems: dall-e-1, vq-vae
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import tokenizers
import torch
from torch import Tensor

from descend.contracts import Chance, Wish
from descend.errors import Mistake
from descend.models.dvae import DVAE, DVAEConfig
from descend.models.gpt2 import GPT2, GPT2Config
from descend.models.vq_vae import TINY as TINY_CODES
from descend.models.vq_vae import VQVAE, VQVAEConfig
from descend.ranges import Depth, Length, Positive, Token, Width
from descend.sampling.by_chance import draw_token
from descend.text.caption import caption_tokens
from descend.text.tokenizer import Tokenizer
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class DalleConfig:
    """A recipe takes the image's and the text's sizes from its data."""

    codes: VQVAEConfig = field(default_factory=VQVAEConfig)
    """Of the VQ-VAE; a DVAEConfig for the original's discrete VAE."""
    words: Length = 512
    """V_t, tokens of the text's vocabulary."""
    caption: Length = 24
    """T, tokens of a caption; shorter ones are filled up."""
    width: Width = 128
    depth: Depth = 4
    heads: Width = 4
    temperature: Positive = 1.0
    """Of the image tokens when they are drawn."""
    top_k: Length = 64
    """How many of the likeliest image tokens may be drawn."""
    start: Token = 0
    """The text's token that every caption begins with."""

    @property
    def places(self) -> int:
        """N, tokens of an image."""
        rows, columns = self.codes.grid
        return rows * columns


class DallE(Pretrained):
    """captions (b, T), images (b, c, h, w) -> logits (b, T + N − 1, V_t + V_i) of all tokens but the first, VQ-VAE"""

    Config = DalleConfig
    read_prompts: Callable[[tuple[str, ...]], Tensor] | None = None
    """Texts to captions (b, T), where the tokenizer is known."""

    def __init__(self, config: DalleConfig):
        super().__init__()
        c = self.config = config
        self.codes: VQVAE | DVAE = DVAE(c.codes) if isinstance(c.codes, DVAEConfig) else VQVAE(c.codes)
        joint = GPT2Config(c.words + c.codes.vocab, c.caption + c.places, c.width, c.depth, c.heads, dropout=0.0)
        self.transformer = GPT2(joint)

    @property
    def offers(self) -> frozenset[str]:
        """Prompts, unless its captions are a start token alone."""
        return frozenset({"prompts"} if self.config.caption > 1 else ())

    def forward(self, captions: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        image, code, entry = self.codes(x)  # only a VQ-VAE learns with the transformer; a discrete VAE learns before it
        return self.next_logits(self.join(captions, self.codes.tokens(x))), image, code, entry

    def join(self, captions: Tensor, tokens: Tensor) -> Tensor:
        """The sequence (b, T + N) of captions (b, T) and grids of image tokens (b, h', w')."""
        if captions.shape[1] != self.config.caption:
            raise ValueError(f"captions have {captions.shape[1]} tokens, this model reads {self.config.caption}")
        return torch.cat([captions, self.config.words + tokens.flatten(1)], dim=1)

    def split(self, sequence: Tensor) -> tuple[Tensor, Tensor]:
        """Captions and grids of a sequence: the inverse of `join`."""
        text, image = sequence[:, : self.config.caption], sequence[:, self.config.caption :]
        return text, (image - self.config.words).unflatten(1, self.config.codes.grid)

    def next_logits(self, sequence: Tensor) -> Tensor:
        """Logits of all tokens but the first of a sequence (b, t): (b, t − 1, v)"""
        logits: Tensor = self.transformer(sequence[:, :-1])
        return logits

    def split_logits(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Of text tokens (b, T − 1, V_t) and of image tokens (b, N, V_i): a text place has no image token."""
        c = self.config
        return logits[:, : c.caption - 1, : c.words], logits[:, c.caption - 1 :, c.words :]

    @torch.no_grad()
    def draw_images(self, captions: Tensor, uniform: Tensor) -> Tensor:
        """Image tokens (b, h', w') for captions (b, T), by uniform numbers (b, N)."""
        c, decoder = self.config, self.transformer.decoder()
        length = c.caption + c.places
        logits = decoder.start(captions, torch.zeros(len(captions), dtype=torch.long, device=captions.device), length)
        drawn = []
        for n in range(c.places):
            drawn.append(draw_token(logits[:, c.words :], uniform[:, n], c.temperature, c.top_k))
            if n + 1 < c.places:
                logits = decoder.step(c.words + drawn[-1])
        return torch.stack(drawn, dim=1).unflatten(1, c.codes.grid)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images for the wish's prompts; without prompts the model writes its own captions."""
        u = chance.uniform(self.config.places + self.config.caption)
        captions = self.read_captions(wish.prompts) if wish.prompts else None
        if captions is None:
            captions = self.write_captions(u[:, self.config.places :])
        return self.codes.from_tokens(self.draw_images(captions.to(u.device), u))

    def read_captions(self, prompts: tuple[str, ...]) -> Tensor:
        """Tokens of texts, by the tokenizer that was saved with the model."""
        if self.read_prompts is None:
            self.read_prompts = read_with_companions(self)
        return self.read_prompts(prompts)

    @torch.no_grad()
    def write_captions(self, uniform: Tensor) -> Tensor:
        """Captions (b, T) drawn by the transformer itself, from its start token."""
        c = self.config
        tokens = torch.full((len(uniform), 1), c.start, device=uniform.device)
        for n in range(1, c.caption):
            logits = self.transformer(tokens)[:, -1, : c.words]
            tokens = torch.cat([tokens, draw_token(logits, uniform[:, n], 1.0, c.words)[:, None]], dim=1)
        return tokens


def read_with_companions(model: DallE) -> Callable[[tuple[str, ...]], Tensor]:
    """Texts to tokens, by the files that came with the model."""
    files = model.companions
    if "tokenizer.json" not in files:
        raise Mistake("this model was not saved with its tokenizer, so it cannot read a prompt")
    inner = tokenizers.Tokenizer.from_str(files["tokenizer.json"].decode())
    tokenizer = Tokenizer(inner, json.loads(files.get("tokenizer_config.json", b"{}")))
    return lambda prompts: caption_tokens(tokenizer, prompts, model.config.caption)


class Codes:
    """The part `codes` of config.json, by its model_type."""

    @staticmethod
    def read(values: dict[str, Any]) -> VQVAEConfig:
        return (DVAEConfig if values.get("model_type") == "dvae" else VQVAEConfig).read(values)


SIZES: dict[str, DalleConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = DalleConfig(TINY_CODES, words=7, caption=4, width=16, depth=1, heads=2)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two captions and their images."""
    random = torch.Generator().manual_seed(0)
    image = torch.randn(2, *TINY.codes.image, generator=random)
    return torch.randint(TINY.words, (2, TINY.caption), generator=random), image


LAYOUT = Layout(
    architecture="DallE",
    fields={f.name: f.name for f in fields(DalleConfig)},
    parts={"codes": Codes},
)
