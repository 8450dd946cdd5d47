"""Latent diffusion in stages: one run that resumes to the bit in each, a scale that is measured, frozen parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Wish
from descend.data.images.captions import Captions
from descend.data.images.digits import Digits
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.diffuse_captions import DiffuseCaptions
from descend.kinds.diffuse_latents import DiffuseLatents
from descend.kinds.latent_diffusion import STABLE_DIFFUSION, DiffusionStage, FirstStage, count_published
from descend.models import clip
from descend.models.autoencoder_kl import AutoencoderKLConfig
from descend.models.clip_text_model import ClipTextConfig
from descend.models.ldm_pipeline import LDMConfig
from descend.models.stable_diffusion_pipeline import StableDiffusionConfig
from descend.models.unet_2d import UNet2DConfig
from descend.models.unet_2d_condition import UNet2DConditionConfig
from descend.models.vq_model import VQModelConfig
from descend.ops.diffusion.plan import Plan
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.optim.stages import InStages
from descend.sampling.chance import PerExample
from descend.tasks.denoise import Denoise
from tests.close import close
from tests.recipes.test_contract import through_json
from tests.weights.test_pipeline import OneAfterAnother, as_pixels

Make = Callable[..., Any]
VAE = AutoencoderKLConfig(widths=(8, 8), groups=4, latent=3)
FAST = FirstStage(AdamW(lr=3e-3, weight_decay=0.0))


def captions(**changes: Any) -> DiffuseCaptions:
    """Captioned scenes of 16×16, a few steps a stage."""
    model = StableDiffusionConfig(
        vae=VAE,
        text_encoder=ClipTextConfig(width=16, depth=1, heads=2, hidden=32),
        unet=UNet2DConditionConfig(widths=(8, 16), attention=(True, False), blocks=1, heads=2, groups=4, linear=True),
        plan=Plan(method="ddim", steps=4),
    )
    values: dict[str, Any] = {
        "model": model,
        "data": Captions(size=16, count=64),
        "first": FAST,
        "schedule": InStages((0.5, 0.5), Cosine()),
        "loop": Loop(steps=6, batch=8, save_every=2),
    }
    return DiffuseCaptions(**values | changes)


def digits(**changes: Any) -> DiffuseLatents:
    """Digits of 8×8."""
    unet = UNet2DConfig(widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4)
    values: dict[str, Any] = {
        "model": LDMConfig(vqvae=VAE, unet=unet, plan=Plan(method="ddim", steps=4)),
        "data": Digits(),
        "first": FAST,
        "schedule": InStages((0.5, 0.5), Cosine()),
        "loop": Loop(steps=6, batch=8),
    }
    return DiffuseLatents(**values | changes)


def start(recipe: Any) -> Any:
    return Training(recipe.build(), recipe.loop, recipe.schedule, World())


def part(run: Any, name: str) -> dict[str, Tensor]:
    """The weights of a part of the pipeline, copied."""
    return {key: x.clone() for key, x in getattr(run.parts.model, name).state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(x, b[key]) for key, x in a.items())


@pytest.mark.system("latent-diffusion", "two-stages")
def test_the_autoencoder_learns_first_and_then_only_the_denoiser() -> None:
    run = start(captions())
    vae, unet, text = (part(run, name) for name in ("vae", "unet", "text_encoder"))
    for _ in range(3):
        assert "loss_autoencoder" in run.advance()
    assert not same(vae, part(run, "vae"))
    assert same(unet, part(run, "unet"))
    vae = part(run, "vae")
    for _ in range(3):
        assert "loss_denoiser" in run.advance()
    assert same(vae, part(run, "vae"))
    assert not same(unet, part(run, "unet"))
    assert not same(text, part(run, "text_encoder"))  # it learns with the denoiser unless a CLIP is given


@pytest.mark.system("latent-diffusion", "two-stages")
def test_one_command_trains_both_stages_and_diffusers_opens_the_result(tmp_path: Path) -> None:
    """From the command to a folder of diffusers that makes the same images of the same prompts and noise."""
    diffusers = pytest.importorskip("diffusers")
    run, result = descend.train(captions(), out=tmp_path / "run", quiet=True)
    assert (result.step, result.reason) == (6, "finished")
    said = [set(line) for line in run.lines() if "loss_autoencoder" in line or "loss_denoiser" in line]
    assert any("loss_autoencoder" in line for line in said)
    assert any("loss_denoiser" in line for line in said)
    folder = tmp_path / "run" / "checkpoints" / "last"
    ours: Any = descend.load(folder)
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(folder)
    theirs.set_progress_bar_config(disable=True)
    prompts = ["a red circle", "there is a large blue square at the top"]
    call = {"num_inference_steps": 4, "guidance_scale": 2.0, "height": 16, "width": 16, "output_type": "np"}
    expected = as_pixels(theirs(prompts, generator=torch.Generator().manual_seed(3), **call))
    with torch.no_grad():
        found = ours.generate(OneAfterAnother(3, 2), Wish(steps=4, guidance=2.0, prompts=tuple(prompts)))
    close(found.clamp(-1, 1), expected, loosen=20)  # four steps, guided


@pytest.mark.system("latent-diffusion", "two-stages")
@pytest.mark.parametrize("stopped", [1, 3, 5])
def test_a_run_resumes_to_the_bit_in_either_stage(stopped: int) -> None:
    run = start(captions())
    for _ in range(stopped):
        run.advance()
    state = through_json(run.state_dict())
    rest = [run.advance() for _ in range(6 - stopped)]
    again = start(captions())
    again.load_state_dict(state)
    assert [again.advance() for _ in range(6 - stopped)] == rest
    assert same(run.task.state_dict(), again.task.state_dict())
    assert again.parts.model.config == run.parts.model.config  # the scale too


@pytest.mark.system("latent-diffusion", "two-stages")
def test_a_resumed_run_refuses_other_images() -> None:
    run = start(captions())
    for _ in range(4):
        run.advance()
    state = through_json(run.state_dict())
    again = start(captions())
    again.load_state_dict(state)
    again.task.stages[1] = again.task.stages[1]._replace(images=lambda: [torch.zeros(64, 3, 16, 16)])
    with pytest.raises(Mistake, match="not those whose codes"):
        again.advance()


@pytest.mark.system("latent-diffusion", "scale-factor")
def test_the_scale_is_measured_when_the_denoiser_begins(tmp_path: Path) -> None:
    run = start(digits())
    for _ in range(4):
        run.advance()
    close(run.task.codes.std(), torch.tensor(1.0))
    assert run.parts.model.scale == float(run.task.scale) != 0.18215
    run.parts.model.save_pretrained(tmp_path)
    assert descend.load(tmp_path).config.vqvae.scale == run.parts.model.scale


@pytest.mark.system("latent-diffusion", "same-code")
def test_the_loss_of_codes_is_the_loss_of_pixels() -> None:
    """The same numbers from the task that learns in pixels, told that the codes are its images."""
    run = start(digits(conditional=True))
    for _ in range(4):
        run.advance()
    task: Any = run.task
    batch = next(run.parts.stream)
    none = run.parts.model.unet.config.classes - 1
    pixels = Denoise(run.parts.model.unet, task.noise, none=none)
    z = task.take_codes(batch)
    with torch.no_grad():
        close(task.denoise(batch, z), pixels.losses({**batch, "x": z}))


@pytest.mark.system("latent-diffusion", "same-code")
def test_the_autoencoder_learns_to_give_images_back() -> None:
    recipe = digits(schedule=InStages((0.98, 0.02), Cosine()), loop=Loop(steps=120, batch=32))
    run = start(recipe)
    before = run.evaluate()["reconstruction"]
    for _ in range(110):
        run.advance()
    after = run.evaluate()["reconstruction"]
    assert after < 0.35 * before
    x = next(iter(run.parts.valid))["x"]
    assert after < 0.5 * float(x.var())  # better than the mean image


@pytest.mark.system("latent-diffusion", "conditions")
@pytest.mark.parametrize("quantised", [False, True])
def test_without_a_condition_by_class_and_by_text(quantised: bool) -> None:
    model = digits().model
    if quantised:
        model = replace(model, vqvae=VQModelConfig(widths=(8, 8), groups=4, words=16, word_width=2))
    for conditional in (False, True):
        run = start(digits(model=model, conditional=conditional))
        metrics = [run.advance() for _ in range(6)]
        assert ("codebook" in " ".join(metrics[0])) == quantised
        made = run.parts.model.eval()
        wish = Wish(classes=torch.tensor([3, 7]), guidance=2.0) if conditional else Wish()
        with torch.no_grad():
            assert made.generate(PerExample(0, 2), wish).shape == (2, 1, 8, 8)
    with pytest.raises(Mistake, match="no classes"):
        start(digits()).parts.model.generate(PerExample(0, 1), Wish(classes=torch.tensor([1])))
    with pytest.raises(Mistake, match="class 10 is unknown"):
        made.generate(PerExample(0, 1), Wish(classes=torch.tensor([10])))
    text = start(captions()).parts.model.eval()
    with torch.no_grad():
        assert text.generate(PerExample(0, 2), Wish(prompts=("a red circle",) * 2)).shape == (2, 3, 16, 16)
    with pytest.raises(Mistake, match="'elephant'"):
        text.generate(PerExample(0, 1), Wish(prompts=("a red elephant",)))


@pytest.mark.system("clip-text-encoder", "frozen")
def test_the_text_encoder_of_a_trained_clip_stays_as_it_is(tmp_path: Path) -> None:
    data = Captions(size=16, count=64)
    tokenizer = data.learn_tokenizer(data.read().train.captions)
    torch.manual_seed(1)
    text = ClipTextConfig(
        vocab=tokenizer.vocab, context=24, width=16, depth=1, heads=2, hidden=32, end=tokenizer.end or 0
    )
    trained = clip.Clip(replace(clip.TINY, text=text))
    trained.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    run = start(captions(text=str(tmp_path)))
    before = part(run, "text_encoder")
    assert same(before, trained.text.state_dict())
    for _ in range(6):
        run.advance()
    assert same(before, part(run, "text_encoder"))
    assert all(p.grad is None for p in run.parts.model.text_encoder.parameters())
    run.parts.model.vae.save_pretrained(tmp_path / "vae")
    with pytest.raises(Mistake, match="not a CLIP"):
        captions(text=str(tmp_path / "vae")).build()


@pytest.mark.system("stable-diffusion-recipes")
@pytest.mark.system("stable-diffusion-recipes", "toy-stages", "v-objective")
def test_the_published_stages_in_small() -> None:
    """Resolution, steps, a filter of the data and the objective change from stage to stage; it resumes in each."""
    stages = (
        DiffusionStage("autoencoder"),
        DiffusionStage("denoiser", size=8),
        DiffusionStage("denoiser", size=16),
        DiffusionStage("denoiser", size=16, only="circle"),
        DiffusionStage("denoiser", size=16, predicts="v"),
    )
    recipe = captions(stages=stages, schedule=InStages((0.2,) * 5, Cosine()), loop=Loop(steps=10, batch=4))
    run = start(recipe)
    seen, states, metrics = [], [], []
    for _ in range(10):
        states.append(through_json(run.state_dict()))
        metrics.append(run.advance())
        seen.append((run.task.stage, None if run.task.codes is None else tuple(run.task.codes.shape[1:])))
        if run.task.stage == 3:
            assert len(run.task.codes) < 64  # only captions with that word
    assert [stage for stage, _ in seen] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [seen[i][1] for i in (0, 2, 4)] == [None, (3, 4, 4), (3, 8, 8)]
    assert run.parts.model.plan.predicts == "v"
    for i in (3, 6, 9):
        again = start(recipe)
        again.load_state_dict(states[i])
        assert [again.advance() for _ in range(i, 10)] == metrics[i:]
    with pytest.raises(Mistake, match="5 stages"):
        captions(stages=stages)
    with pytest.raises(Mistake, match="no caption has the word"):
        captions(stages=(DiffusionStage("autoencoder"), DiffusionStage(only="aesthetic"))).build()


@pytest.mark.system("stable-diffusion-recipes", "decoder-tuning")
def test_decoder_tuning_leaves_encoder_and_denoiser_as_they_are() -> None:
    stages = (DiffusionStage("autoencoder"), DiffusionStage("denoiser"), DiffusionStage("decoder"))
    loop = Loop(steps=60, batch=32)
    run = start(digits(stages=stages, schedule=InStages((0.4, 0.1, 0.5), Cosine()), loop=loop))
    for _ in range(30):
        run.advance()
    unet, vae, error = part(run, "unet"), part(run, "vqvae"), run.evaluate()["reconstruction"]
    for _ in range(30):
        assert "loss_decoder" in run.advance()
    after = part(run, "vqvae")
    assert same(unet, part(run, "unet"))
    kept = [key for key in vae if key.startswith(("encoder.", "quant_conv."))]
    assert kept
    assert all(torch.equal(vae[key], after[key]) for key in kept)
    assert not torch.equal(vae["decoder.conv_out.weight"], after["decoder.conv_out.weight"])
    assert run.evaluate()["reconstruction"] < 0.9 * error


@pytest.mark.system("stable-diffusion-recipes", "decoder-swap")
def test_a_decoder_is_replaced_without_touching_the_denoiser(tmp_path: Path) -> None:
    """The "VAE files" of users: another decoder makes other images of the same latents."""
    one, other = start(digits()).parts.model.eval(), start(digits(loop=Loop(seed=5))).parts.model.eval()
    with torch.no_grad():
        z = one.to_latent(torch.randn(2, 1, 8, 8))
        unet = {key: x.clone() for key, x in one.unet.state_dict().items()}
        before = one.from_latent(z)
        one.vqvae.take_decoder(other.vqvae)
        assert not torch.allclose(one.from_latent(z), before)
        close(one.from_latent(z), other.vqvae.decode(z / one.scale))
    assert all(torch.equal(x, one.unet.state_dict()[key]) for key, x in unet.items())
    one.save_pretrained(tmp_path)
    again: Any = descend.load(tmp_path)
    assert torch.equal(again.vqvae.decoder.conv_in.weight, other.vqvae.decoder.conv_in.weight)


@pytest.mark.system("stable-diffusion-recipes", "published-stages", "dataset")
def test_the_published_stages() -> None:
    total, share = count_published("v1.4")
    assert total == 656_000
    close(share, 0.6387195122, loosen=10)
    assert count_published("v2")[0] == 1_690_000
    assert [stage.predicts for stage in STABLE_DIFFUSION["v2"]] == ["eps", "eps", "v", "v"]
    named = {stage.data.partition(",")[0] for stage in STABLE_DIFFUSION["v1.4"]}
    assert "LAION-400M" not in named  # which the other section names


@pytest.mark.parametrize(("size", "said"), [(18, "--data.size 18: it must be halved 2 times; give a multiple of 4")])
def test_sides_that_cannot_be_halved_are_refused(size: int, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        captions(data=Captions(size=size, count=64)).build()
