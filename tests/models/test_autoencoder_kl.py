"""Autoencoders of latent diffusion and the diffusion transformer against diffusers' own, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import descend
from descend.errors import Mistake
from descend.models import autoencoder_kl, dit_transformer_2d, vq_model
from descend.models.autoencoder_kl import AutoencoderKL, Gaussian
from descend.models.dit_transformer_2d import DiT
from descend.models.vq_model import VQModel
from tests.close import close
from tests.models.test_unet_2d import settings

diffusers = pytest.importorskip("diffusers")
LEVELS: dict[str, Any] = {
    "block_out_channels": (16, 32, 32),
    "down_block_types": ("DownEncoderBlock2D",) * 3,
    "up_block_types": ("UpDecoderBlock2D",) * 3,
    "norm_num_groups": 8,
}


def images(channels: int = 3, side: int = 16) -> torch.Tensor:
    return torch.randn(2, channels, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("latent-diffusion")
@pytest.mark.system("latent-diffusion", "autoencoders")
@pytest.mark.parametrize("blocks", [1, 2])
def test_the_kl_autoencoder_is_that_of_diffusers(blocks: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = diffusers.AutoencoderKL(**LEVELS, layers_per_block=blocks, scaling_factor=0.5).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, AutoencoderKL)
    x, noise = images(), torch.randn(2, 4, 4, 4)
    with torch.no_grad():
        code = theirs.encode(x).latent_dist
        mine = ours.encode(x)
        close(mine.mean, code.mean)
        close(mine.logvar, code.logvar)
        close(mine.divergence(), code.kl())
        close(ours(x), theirs(x).sample)
        close(ours.to_latent(x, noise), 0.5 * (code.mean + code.std * noise))
        close(ours.from_latent(noise), theirs.decode(noise / 0.5).sample)
    ours.save_pretrained(tmp_path / "ours")
    again = diffusers.AutoencoderKL.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        assert torch.equal(again(x).sample, theirs(x).sample)
    assert settings(tmp_path / "ours").items() <= settings(tmp_path / "theirs").items()
    assert again.config.scaling_factor == 0.5


@pytest.mark.system("latent-diffusion", "autoencoders")
def test_the_quantised_autoencoder_is_that_of_diffusers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = diffusers.VQModel(**LEVELS, num_vq_embeddings=19, vq_embed_dim=5).eval()
    nn.init.normal_(theirs.quantize.embedding.weight)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, x = descend.load(tmp_path / "theirs"), images()
    assert isinstance(ours, VQModel)
    z = theirs.encode(x).latents
    words, loss, (_, _, tokens) = theirs.quantize(z)
    found = ours.quantise(ours.encode(x))
    close(ours.encode(x), z)
    assert torch.equal(found.tokens.flatten(), tokens)
    close(found.words, words)
    close(ours.decode(z), theirs.decode(z).sample)
    close(ours(x)[0], theirs(x).sample)
    # legacy=True has β on the codebook; the released models were trained so
    close(found.commitment + 0.25 * found.codebook, loss)
    theirs.quantize.legacy = False
    close(0.25 * found.commitment + found.codebook, theirs.quantize(z)[1])
    ours.save_pretrained(tmp_path / "ours")
    again = diffusers.VQModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        assert torch.equal(again(x).sample, theirs(x).sample)


@pytest.mark.system("latent-diffusion", "autoencoders")
def test_the_published_sizes() -> None:
    for file, kind in ((autoencoder_kl, AutoencoderKL), (vq_model, VQModel), (dit_transformer_2d, DiT)):
        for name, count in file.PARAMETERS.items():
            with torch.device("meta"):
                model = kind(file.SIZES[name])
            assert sum(p.numel() for p in model.parameters()) == count
    assert autoencoder_kl.PARAMETERS["stable-diffusion"] == 83_653_863
    assert vq_model.PARAMETERS["vq-f4"] == 55_322_782


@pytest.mark.system("latent-diffusion", "compression")
def test_an_image_of_512_has_48_times_as_many_numbers_as_its_code() -> None:
    with torch.device("meta"):
        model = AutoencoderKL(autoencoder_kl.SIZES["stable-diffusion"])
        x = torch.empty(1, 3, 512, 512)
        z = model.encode(x).mean
        assert z.shape == (1, 4, 64, 64)
        assert x.numel() / z.numel() == 48
        assert model.decode(z).shape == x.shape
    with pytest.raises(ValueError, match="multiples of 8"), torch.device("meta"):
        model.encode(torch.empty(1, 3, 500, 512))


@pytest.mark.system("latent-diffusion", "scale-factor")
def test_the_scale_makes_unit_variance_and_is_kept(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ours = AutoencoderKL(autoencoder_kl.TINY)
    x = images(1, 8)
    with torch.no_grad():
        scale = ours.set_scale(ours.encode(x).mean)
        close(ours.to_latent(x).std(), torch.tensor(1.0))
        close(ours.from_latent(ours.to_latent(x)), ours(x))
    ours.save_pretrained(tmp_path)
    assert descend.load(tmp_path).config.scale == scale
    assert diffusers.AutoencoderKL.from_pretrained(tmp_path).config.scaling_factor == scale


def test_the_divergence_is_torchs() -> None:
    torch.manual_seed(0)
    q = Gaussian(torch.randn(3, 2, 4, 4), torch.randn(3, 2, 4, 4))
    normal = torch.distributions.Normal
    exact = torch.distributions.kl_divergence(normal(q.mean, (q.logvar / 2).exp()), normal(0.0, 1.0))
    close(q.divergence(), exact.flatten(1).sum(1))


def test_other_blocks_are_refused(tmp_path: Path) -> None:
    attention = {"down_block_types": ("DownEncoderBlock2D", "AttnDownEncoderBlock2D", "DownEncoderBlock2D")}
    diffusers.AutoencoderKL(**LEVELS | attention).save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="AttnDownEncoderBlock2D"):
        descend.load(tmp_path)


def test_the_transformer_is_that_of_diffusers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4, "out_channels": 8}
    theirs = diffusers.DiTTransformer2DModel(**shape, num_layers=2, sample_size=8, num_embeds_ada_norm=10).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours, x = descend.load(tmp_path / "theirs"), images(4, 8)
    assert isinstance(ours, DiT)
    t, y = torch.tensor([3, 999]), torch.tensor([9, 10])
    with torch.no_grad():
        close(ours(x, t, y), theirs(x, t, y).sample)
        close(ours(x, t), theirs(x, t, torch.tensor([10, 10])).sample)
    ours.save_pretrained(tmp_path / "ours")
    again = diffusers.DiTTransformer2DModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        assert torch.equal(again(x, t, y).sample, theirs(x, t, y).sample)
    with pytest.raises(ValueError, match="8×8"):
        ours(images(4, 16), t)
