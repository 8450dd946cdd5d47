"""Image-to-image, depth and inpainting: against diffusers at equal noise, and at their ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Wish
from descend.errors import Mistake
from descend.models._denoising import edit_images
from descend.models.stable_diffusion_pipeline import StableDiffusionPipeline
from descend.models.unet_2d_condition import TINY, UNet2DCondition
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.editing import count_steps, lay_beside, lay_depth, revise
from descend.sampling.diffusion.grid import make_grid
from tests.close import close
from tests.weights.test_pipeline import OneAfterAnother, as_pixels, make_stable

diffusers = pytest.importorskip("diffusers")
PROMPTS = ["a red cat", "cat"]
WISH = Wish(steps=10, guidance=3.0, prompts=tuple(PROMPTS))


@pytest.fixture
def images() -> Tensor:
    return torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(5))


def half_mask() -> Tensor:
    """The left half, aligned with the latent's places."""
    mask = torch.zeros(1, 1, 16, 16)
    mask[..., :8] = 1
    return mask


def open_both(folder: Path, channels: int, kind: Any) -> tuple[Any, StableDiffusionPipeline]:
    theirs = make_stable(folder, channels=channels, kind=kind)
    ours = descend.load(folder)
    assert isinstance(ours, StableDiffusionPipeline)
    return theirs, ours


def run(pipeline: Any, images: Tensor, **more: Any) -> Tensor:
    found = pipeline(
        PROMPTS, image=images, num_inference_steps=10, guidance_scale=3.0, output_type="np",
        generator=torch.Generator().manual_seed(3), **more,
    )  # fmt: skip
    return as_pixels(found)


@pytest.mark.system("image-to-image")
@pytest.mark.system("image-to-image", "diffusers")
@pytest.mark.parametrize("strength", [0.3, 0.8])
def test_image_to_image_is_that_of_diffusers(strength: float, tmp_path: Path, images: Tensor) -> None:
    theirs, ours = open_both(tmp_path / "theirs", 4, diffusers.StableDiffusionImg2ImgPipeline)
    chance = OneAfterAnother(3, 2)
    chance.normal(4, 8, 8)  # drawn by their autoencoder, whose σ are 0 here
    found = edit_images(ours, 2 * images - 1, chance, WISH, strength)
    close(found.clamp(-1, 1), run(theirs, images, strength=strength), loosen=20)  # guided, several steps


@pytest.mark.system("image-to-image", "ends")
def test_strength_0_is_the_autoencoder_and_1_is_pure_noise(tmp_path: Path, images: Tensor) -> None:
    make_stable(tmp_path / "theirs")
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, StableDiffusionPipeline)
    x = 2 * images - 1
    with torch.no_grad():
        assert torch.equal(edit_images(ours, x, OneAfterAnother(3, 2), WISH, 0), ours.from_latent(ours.to_latent(x)))
        new = edit_images(ours, x, OneAfterAnother(3, 2), WISH, 1)
        assert torch.equal(new, edit_images(ours, -x, OneAfterAnother(3, 2), WISH, 1))
        assert torch.equal(new, ours.generate(OneAfterAnother(3, 2), WISH))
        assert not torch.equal(new, edit_images(ours, x, OneAfterAnother(3, 2), WISH, 0.9))
    for wrong in (-0.1, 1.5):
        with pytest.raises(Mistake, match="--strength"):
            edit_images(ours, x, OneAfterAnother(3, 2), WISH, wrong)


@pytest.mark.system("image-to-image", "strength")
def test_the_noise_share_follows_the_schedule() -> None:
    """t = round(strength · T); the linear schedule leaves the printed shares of noise."""
    schedule = NoiseSchedule()
    abar = torch.cat([torch.ones(1, dtype=torch.float64), schedule.abar()])  # the books' ᾱ_0 .. ᾱ_T
    t = [count_steps(s, 1000) for s in (0, 0.3, 0.75, 1)]
    assert t == [0, 300, 750, 1000]
    close(1 - abar[t], torch.tensor([0.0, 0.6035802405, 0.9966494496, 0.9999596417], dtype=torch.float64), loosen=10)
    seen: list[float] = []

    def predict(x: Tensor, t: Tensor) -> Tensor:
        seen.append(float(t[0]))
        return torch.zeros_like(x)

    plan = Plan(method="ddim")
    x = torch.ones(1, 1, 2, 2)
    revise(predict, x, plan, lambda: torch.zeros_like(x), 100, 0.3)
    assert seen == make_grid(plan, 100).t[70:].tolist()


@pytest.mark.parametrize("method", ["ddpm", "ddim", "plms", "dpm++", "dpm++sde", "unipc", "euler", "heun"])
def test_every_method_begins_at_the_strength(method: Any) -> None:
    """A network that knows the image leads back to it, from any strength; what is not masked is kept to the bit."""
    plan, x = Plan(method=method, spacing="trailing"), torch.randn(2, 1, 4, 4).double()
    random = torch.Generator().manual_seed(0)

    def predict(found: Tensor, t: Tensor) -> Tensor:
        abar = plan.noise.abar()[int(t[0])]
        return (found - abar.sqrt() * x) / (1 - abar).sqrt()

    def noise() -> Tensor:
        return torch.randn(x.shape, generator=random).double()

    mask = torch.zeros(1, 1, 4, 4)
    mask[..., :2] = 1
    other = x + 1
    if method not in ("euler", "heun"):
        close(revise(predict, x, plan, noise, 10, 0.5), x, loosen=1e4)  # levels between whole times
    found = revise(predict, other, plan, noise, 10, 0.5, mask)
    assert torch.equal(found[..., 2:], other[..., 2:])
    assert not torch.allclose(found[..., :2], other[..., :2])


@pytest.mark.system("inpainting")
@pytest.mark.system("inpainting", "mask-blend")
@pytest.mark.parametrize("strength", [0.6, 1.0])
def test_mask_blending_is_that_of_diffusers(strength: float, tmp_path: Path, images: Tensor) -> None:
    theirs, ours = open_both(tmp_path / "theirs", 4, diffusers.StableDiffusionInpaintPipeline)
    chance = OneAfterAnother(3, 2)
    chance.normal(4, 8, 8)
    x, mask = 2 * images - 1, half_mask()
    expected = run(theirs, images, mask_image=mask, strength=strength)
    found = edit_images(ours, x, chance, WISH, strength, mask)
    assert torch.equal(found[..., 8:], x[..., 8:])  # pixels that are not masked
    close(found[..., :8].clamp(-1, 1), expected[..., :8], loosen=20)


@pytest.mark.system("inpainting", "concat-mask")
def test_a_network_with_mask_channels_is_that_of_diffusers(tmp_path: Path, images: Tensor) -> None:
    theirs, ours = open_both(tmp_path / "theirs", 9, diffusers.StableDiffusionInpaintPipeline)
    x, mask = 2 * images - 1, half_mask()
    expected = run(theirs, images, mask_image=mask, strength=1.0)
    found = edit_images(ours, x, OneAfterAnother(3, 2), WISH, 1.0, mask)
    assert torch.equal(found[..., 8:], x[..., 8:])
    close(found[..., :8].clamp(-1, 1), expected[..., :8], loosen=20)


@pytest.mark.system("inpainting", "empty-mask")
def test_an_empty_mask_returns_the_input_and_another_size_is_refused(tmp_path: Path, images: Tensor) -> None:
    make_stable(tmp_path / "theirs")
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, StableDiffusionPipeline)
    x = 2 * images - 1
    assert torch.equal(edit_images(ours, x, OneAfterAnother(3, 2), WISH, 1.0, 0 * half_mask()), x)
    with pytest.raises(Mistake, match="--mask: it has 8×16, the image 16×16"):
        edit_images(ours, x, OneAfterAnother(3, 2), WISH, 1.0, torch.ones(1, 1, 16, 8))
    with pytest.raises(Mistake, match="no channel for a depth map"):
        edit_images(ours, x, OneAfterAnother(3, 2), WISH, 1.0, depth=torch.ones(1, 1, 16, 16))
    with pytest.raises(Mistake, match="guided by"):
        edit_images(ours, x, OneAfterAnother(3, 2), Wish(guidance=3.0), 1.0)


@pytest.mark.system("image-to-image", "depth")
def test_a_depth_map_is_a_channel_of_the_network(tmp_path: Path, images: Tensor) -> None:
    make_stable(tmp_path / "theirs", channels=5)
    ours = descend.load(tmp_path / "theirs")
    assert isinstance(ours, StableDiffusionPipeline)
    x, depth = 2 * images - 1, torch.linspace(3, 90, 256).view(1, 1, 16, 16)
    channel = lay_depth(depth, (8, 8))
    assert channel.shape == (1, 1, 8, 8)
    close(torch.stack([channel.min(), channel.max()]), torch.tensor([-1.0, 1.0]))
    near = edit_images(ours, x, OneAfterAnother(3, 2), WISH, 0.8, depth=depth)
    assert near.shape == x.shape
    assert not torch.allclose(near, edit_images(ours, x, OneAfterAnother(3, 2), WISH, 0.8, depth=depth.flip(2)))
    channel.requires_grad_()
    predict = ours.predictor(2, WISH, channel.expand(2, -1, -1, -1))
    predict(torch.randn(2, 4, 8, 8), torch.tensor([5, 5])).square().sum().backward()
    assert channel.grad is not None
    assert channel.grad.abs().sum() > 0
    with pytest.raises(Mistake, match="give --depth"):
        edit_images(ours, x, OneAfterAnother(3, 2), WISH, 0.8)
    with pytest.raises(Mistake, match="use: descend edit"):
        ours.generate(OneAfterAnother(3, 2), WISH)


@pytest.mark.system("inpainting", "concat-mask")
def test_mask_channels_are_learned() -> None:
    """A trained network gets the channels with zero weights and learns to look at the known half of an image."""
    torch.manual_seed(0)
    network = UNet2DCondition(replace(TINY, channels=1, out=1, widths=(16, 16), context=4))
    x = torch.randn(64, 1, 1, 1).expand(-1, 1, 8, 8).contiguous()  # one grey for each image: the known half says all
    mask, y, t = torch.zeros(1, 1, 8, 8), torch.zeros(64, 1, 4), torch.full((64,), 999)
    mask[..., :4] = 1
    noise = torch.randn(64, 1, 8, 8)
    plan = Plan(noise=NoiseSchedule())
    noisy = add_noise(x, noise, plan.noise.abar()[999].item())  # hardly anything of the image is left
    network.widen(3)
    beside = lay_beside(mask.expand(64, -1, -1, -1), x * (1 - mask))
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        loss = (network(torch.cat([noisy, beside], 1), t, y) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    with torch.no_grad():
        blind = (network(torch.cat([noisy, 0 * beside], 1), t, y) - x).square().mean()
    assert losses[-1] < 0.5 * blind.item()
