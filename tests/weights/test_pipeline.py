"""Pipelines of diffusers open here with equal trajectories at equal noise, and are saved back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Wish
from descend.errors import Mistake
from descend.models.ddpm_pipeline import DDPMPipeline
from descend.models.ldm_pipeline import LDMPipeline
from descend.models.stable_diffusion_pipeline import StableDiffusionPipeline
from tests.close import close

diffusers = pytest.importorskip("diffusers")
transformers = pytest.importorskip("transformers")
UNET: dict[str, Any] = {
    "sample_size": 8,
    "block_out_channels": (16, 32),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 8,
}
LEVELS: dict[str, Any] = {
    "block_out_channels": (16, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 8,
}


class OneAfterAnother:
    """Random numbers in the order in which diffusers draws them."""

    def __init__(self, seed: int, count: int):
        self.generator, self.count = torch.Generator().manual_seed(seed), count

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(self.count, *shape, generator=self.generator)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(self.count, *shape, generator=self.generator)


def as_pixels(found: Any) -> Tensor:
    """Images of diffusers, back in −1..1."""
    return torch.from_numpy(np.asarray(found.images)).permute(0, 3, 1, 2) * 2 - 1


def make_tokenizer(folder: Path) -> Any:
    """A CLIP tokenizer of letters and a few merges, in the older layout."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    merges = [("r", "e"), ("re", "d</w>"), ("c", "a"), ("ca", "t</w>")]
    pieces = [*letters, *(letter + "</w>" for letter in letters), *("".join(pair) for pair in merges)]
    vocab = {piece: i for i, piece in enumerate([*pieces, "<|startoftext|>", "<|endoftext|>"])}
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": 12, "pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                    "bos_token": "<|startoftext|>", "unk_token": "<|endoftext|>", "tokenizer_class": "CLIPTokenizer"})
    )  # fmt: skip
    return transformers.CLIPTokenizer.from_pretrained(folder), len(vocab)


def make_stable(folder: Path, scheduler: Any = None, channels: int = 4, kind: Any = None) -> Any:
    """A Stable Diffusion of random weights in the folder; its autoencoder draws nothing, as all σ are tiny."""
    torch.manual_seed(0)
    tokenizer, vocab = make_tokenizer(folder.parent / "tokens")
    text = transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            vocab_size=vocab, hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=12, bos_token_id=vocab - 2, eos_token_id=vocab - 1, pad_token_id=vocab - 1,
        )
    ).eval()  # fmt: skip
    cross = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "attention_head_dim": 4}
    cross |= {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "cross_attention_dim": 24}
    unet = diffusers.UNet2DConditionModel(**UNET | cross, in_channels=channels)
    vae = diffusers.AutoencoderKL(**LEVELS, sample_size=16)
    with torch.no_grad():
        vae.quant_conv.weight[4:] = 0
        vae.quant_conv.bias[4:] = -30
    steps = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "clip_sample": False}
    scheduler = scheduler or diffusers.DDIMScheduler(**steps, set_alpha_to_one=False, steps_offset=1)
    made = (kind or diffusers.StableDiffusionPipeline)(
        vae=vae, text_encoder=text, tokenizer=tokenizer, unet=unet, scheduler=scheduler, safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    made.save_pretrained(folder)
    made.set_progress_bar_config(disable=True)
    return made


@pytest.mark.system("latent-diffusion", "pipelines")
@pytest.mark.parametrize("method", ["ddpm", "ddim", "dpm"])
def test_a_ddpm_pipeline_runs_as_in_diffusers_and_is_saved_back(method: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    scheduler = {
        "ddpm": diffusers.DDPMScheduler(clip_sample=False),
        "ddim": diffusers.DDIMScheduler(clip_sample=True),
        "dpm": diffusers.DPMSolverMultistepScheduler(),
    }[method]
    kind = diffusers.DDIMPipeline if method == "ddim" else diffusers.DDPMPipeline
    theirs = kind(diffusers.UNet2DModel(**UNET).eval(), diffusers.DDPMScheduler())
    theirs.scheduler = scheduler
    theirs.save_pretrained(tmp_path / "theirs")
    theirs.set_progress_bar_config(disable=True)
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, DDPMPipeline)
    expected = as_pixels(theirs(2, generator=torch.Generator().manual_seed(3), num_inference_steps=5, output_type="np"))
    with torch.no_grad():
        close(ours.generate(OneAfterAnother(3, 2), Wish(steps=5)).clamp(-1, 1), expected, loosen=5)
    ours.save_pretrained(tmp_path / "ours")
    again = diffusers.DDPMPipeline.from_pretrained(tmp_path / "ours")
    again.set_progress_bar_config(disable=True)
    if method != "ddim":  # that is another class there
        found = again(2, generator=torch.Generator().manual_seed(3), num_inference_steps=5, output_type="np")
        assert torch.equal(as_pixels(found), expected)


@pytest.mark.system("latent-diffusion", "pipelines")
@pytest.mark.parametrize("kind", ["VQModel", "AutoencoderKL"])
def test_a_latent_pipeline_runs_as_in_diffusers_and_is_saved_back(kind: str, tmp_path: Path) -> None:
    kind_of_theirs: Any = diffusers.LDMPipeline
    torch.manual_seed(0)
    vae = getattr(diffusers, kind)(**LEVELS, latent_channels=3).eval()
    if kind == "VQModel":
        torch.nn.init.normal_(vae.quantize.embedding.weight)
    unet = diffusers.UNet2DModel(**UNET).eval()
    theirs = kind_of_theirs(vqvae=vae, unet=unet, scheduler=diffusers.DDIMScheduler(clip_sample=False))
    theirs.save_pretrained(tmp_path / "theirs")
    theirs.set_progress_bar_config(disable=True)
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, LDMPipeline)
    expected = as_pixels(theirs(2, torch.Generator().manual_seed(3), num_inference_steps=5, output_type="np"))
    with torch.no_grad():
        close(ours.generate(OneAfterAnother(3, 2), Wish(steps=5)).clamp(-1, 1), expected, loosen=5)
    ours.save_pretrained(tmp_path / "ours")
    again = kind_of_theirs.from_pretrained(tmp_path / "ours")
    again.set_progress_bar_config(disable=True)
    found = again(2, torch.Generator().manual_seed(3), num_inference_steps=5, output_type="np")
    assert torch.equal(as_pixels(found), expected)


@pytest.mark.system("text-to-image-pipeline")
@pytest.mark.system("text-to-image-pipeline", "diffusers")
@pytest.mark.system("latent-diffusion", "pipelines")
@pytest.mark.parametrize("method", ["ddim", "plms", "dpm"])
def test_stable_diffusion_runs_as_in_diffusers_and_is_saved_back(method: str, tmp_path: Path) -> None:
    steps: dict[str, Any] = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
    scheduler = {
        "ddim": None,
        "plms": diffusers.PNDMScheduler(**steps, skip_prk_steps=True, steps_offset=1),
        "dpm": diffusers.DPMSolverMultistepScheduler(**steps),
    }[method]
    theirs = make_stable(tmp_path / "theirs", scheduler)
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, StableDiffusionPipeline)
    prompts = ["A red cat,  and 12 more!", "cat"]
    call: dict[str, Any] = {"num_inference_steps": 5, "guidance_scale": 3.0, "output_type": "np"}

    def run(pipeline: Any, **more: Any) -> Tensor:
        return as_pixels(pipeline(prompts, generator=torch.Generator().manual_seed(3), **call | more))

    wish = Wish(steps=5, guidance=3.0, prompts=tuple(prompts))
    with torch.no_grad():
        close(ours.generate(OneAfterAnother(3, 2), wish).clamp(-1, 1), run(theirs), loosen=20)  # five steps, guided
        found = ours.from_latent(ours.denoise(OneAfterAnother(3, 2), wish, negative="red"))
        close(found.clamp(-1, 1), run(theirs, negative_prompt=["red", "red"]), loosen=20)
    ours.save_pretrained(tmp_path / "ours")
    again = diffusers.StableDiffusionPipeline.from_pretrained(tmp_path / "ours")
    again.set_progress_bar_config(disable=True)
    assert torch.equal(run(again), run(theirs))


def test_the_older_tokenizer_files_give_clips_tokens(tmp_path: Path) -> None:
    from descend.text.clip import load_tokenizer

    theirs, _ = make_tokenizer(tmp_path / "tokens")
    ours = load_tokenizer(tmp_path / "tokens")
    for text in ("red cat", "A  RED\ncat's 12 é ünïcode!!", "", "redcat -- 'll"):
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]


def test_a_pipeline_is_saved_and_loaded_with_all_its_settings(tmp_path: Path) -> None:
    make_stable(tmp_path / "theirs")
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, StableDiffusionPipeline)
    ours.set("guidance", 2.5)
    ours.set("words", ("cat", "red"))
    ours.set("plan", replace(ours.plan, steps=7))
    ours.vae.set_scale(torch.randn(100) * 4)
    ours.save_pretrained(tmp_path / "ours")
    again = descend.load(tmp_path / "ours")
    assert again.config == ours.config
    assert again.config.plan.steps == 7
    assert again.config.vae.scale == ours.vae.config.scale
    assert isinstance(again, StableDiffusionPipeline)
    with pytest.raises(Mistake, match=r"'elephant' was in none of its captions.*Known: cat, red"):
        again.generate(OneAfterAnother(0, 1), Wish(prompts=("red elephant",)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"_class_name": "FluxPipeline"}, "FluxPipeline"),
        ({"controlnet": ["diffusers", "ControlNetModel"]}, "'controlnet' is not supported"),
        ({"unet": None}, "'unet' is missing"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    make_stable(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model_index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Mistake, match=said):
        descend.load(tmp_path / "theirs")
    scheduler = tmp_path / "theirs" / "scheduler" / "scheduler_config.json"
    parts = {name: ["diffusers", "X"] for name in ("unet", "vae", "text_encoder", "scheduler")}
    path.write_text(json.dumps({"_class_name": "StableDiffusionPipeline", **parts}))
    scheduler.write_text(json.dumps({"_class_name": "DeisScheduler"}))
    with pytest.raises(Mistake, match="DeisScheduler"):
        descend.load(tmp_path / "theirs")
