"""Worked examples of the diffusion U-Net, latent diffusion, its text encoders, stages and editing."""

from __future__ import annotations

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs
from descend.kinds.latent_diffusion import STABLE_DIFFUSION, count_published
from descend.models import autoencoder_kl, unet_2d
from descend.models.autoencoder_kl import AutoencoderKL
from descend.models.clip_text_model import ClipTextConfig, ClipTextModel, ClipTextModelWithProjection
from descend.models.unet_2d import UNet2D
from descend.nn.diffusion.levels import count_kept
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.editing import count_steps


def count(model: type[nn.Module], config: object) -> int:
    """Parameters of a model, without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in model(config).parameters())


def blocks(i: Inputs) -> Inputs:
    levels, down = i["levels"], i["blocks_down"]
    kept = count_kept([128] * levels, down)
    with torch.device("meta"):
        network = UNet2D(unet_2d.SIZES["ddpm-cifar10-32"])
    up = [len(level.resnets) for level in network.up_blocks]  # type: ignore[arg-type]
    return {"skips_produced": len(kept), "blocks_up_total": sum(up), "blocks_up_per_level": sum(up) / levels}


def parameters(i: Inputs) -> Inputs:
    return {"parameters": count(UNet2D, unet_2d.SIZES["ddpm-cifar10-32"])}


def compression(i: Inputs) -> Inputs:
    with torch.device("meta"):
        x = torch.empty(1, *i["image"])
        z = AutoencoderKL(autoencoder_kl.SIZES["stable-diffusion"]).encode(x).mean
    return {
        "pixel_values": x.numel(),
        "latent_values": z.numel(),
        "compression": x.numel() / z.numel(),
        "spatial_factor": x.shape[-1] / z.shape[-1],
    }


def make_text(width: int, layers: int, vocab: int = 49408, context: int = 77) -> ClipTextConfig:
    """A text encoder of CLIP, with heads of 64 and a joint space of its own width."""
    return ClipTextConfig(vocab, context, width, layers, width // 64, 4 * width, projected=width)


def text_encoder_v1(i: Inputs) -> Inputs:
    large, base = i["vit_l14_text"], i["vit_b_text"]
    config = make_text(large["width"], large["layers"], large["vocab"], large["context"])
    return {
        "vit_l14_text": count(ClipTextModel, config),
        "with_projection": count(ClipTextModelWithProjection, config),
        "vit_b32_text": count(ClipTextModelWithProjection, make_text(base["width"], base["layers"])),
    }


def text_encoder_v2(i: Inputs) -> Inputs:
    config = make_text(i["width"], i["layers"], i["vocab"], i["context"])
    found = count(ClipTextModelWithProjection, config)
    return {"parameters": found, "parameters_million": found / 1e6}


def steps_v1(i: Inputs) -> Inputs:
    total, share = count_published("v1.4")
    return {"total": total, "share_at_512": share}


def steps_v2(i: Inputs) -> Inputs:
    return {"total": count_published("v2")[0]}


def dataset(i: Inputs) -> Inputs:
    """The set that the other section names is none of the stages'."""
    return {"agree": any(stage.data.startswith("LAION-400M") for stage in STABLE_DIFFUSION["v1.4"])}


def strength(i: Inputs) -> Inputs:
    schedule = NoiseSchedule(steps=i["T"])
    abar = torch.cat([torch.ones(1, dtype=torch.float64), schedule.abar()])
    t = [count_steps(s, i["T"]) for s in i["strength"]]
    return {"t": t, "noise_variance": 1 - abar[t], "signal_factor": abar[t].sqrt()}


EXAMPLES: dict[str, Compute] = {
    "DLN-UNet-blocks": blocks,
    "DLN-UNet-parameters": parameters,
    "DLN-SD-compression": compression,
    "DLN-SD-text-encoder-v1": text_encoder_v1,
    "DLN-SD-text-encoder-v2": text_encoder_v2,
    "DLN-SD-v1-steps": steps_v1,
    "DLN-SD-v2-steps": steps_v2,
    "DLN-SD-dataset": dataset,
    "DLN-SD-img2img-strength": strength,
}
SET_ASIDE: dict[str, str] = {}
