"""Recipes of diffusion models: what they build, what is random, what the report shows, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.data.images.digits import Digits
from descend.data.images.labelled import Preprocessing
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.denoising import Denoising
from descend.kinds.densities import Plane
from descend.kinds.diffuse_points import DiffusePoints
from descend.kinds.diffusion import Conditional, DiffuseImages, build_pipeline
from descend.models.ddpm_pipeline import DDPMConfig, DDPMPipeline
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.models.unet_2d import UNet2DConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.report.exhibits import make_section
from descend.views.diffusion import denoising_field, make_strip, record_film, record_paths
from tests.close import close

UNET = UNet2DConfig(widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4)
SMALL = DiffuseImages(
    model=DDPMConfig(unet=UNET, plan=Plan(NoiseSchedule("cosine", 20), method="ddim", steps=4)),
    loop=Loop(steps=4, batch=8, threads=1),
)
POINTS = DiffusePoints(
    model=DenoiserConfig(width=16, depth=2, plan=Plan(NoiseSchedule(steps=20, start=5e-3, end=0.4))),
    data=Plane(shape="ring", valid=50),
    loop=Loop(steps=4, batch=8, threads=1),
)


def run(recipe: Any, steps: int = 2) -> Training:
    training = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    for _ in range(steps):
        training.advance()
    return training


@pytest.mark.system("ddpm", "images")
@pytest.mark.system("noise-prediction-loss", "uniform-time")
def test_images_with_noise_and_times_beside_them() -> None:
    parts = SMALL.build()
    batch = next(parts.stream)
    assert batch["noise"].shape == batch["x"].shape == (8, 1, 8, 8)
    assert batch["x"].amin() >= -1
    assert batch["time"].shape == (8,)
    assert "drop" not in batch
    first, again = ([b["time"] for b in parts.valid] for _ in range(2))
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))
    counts = (torch.cat(first) * 5).long().bincount(minlength=5)
    assert counts.max() - counts.min() <= 4  # spread evenly over the validation images


@pytest.mark.system("ddpm", "images")
@pytest.mark.system("ddpm", "folder")
def test_training_saving_and_sampling(tmp_path: Path) -> None:
    """Four steps; what is saved opens in diffusers as a DDPMPipeline and samples there, and here through the verb."""
    diffusers = pytest.importorskip("diffusers")
    training = run(SMALL)
    training.task.eval()
    model = training.parts.model
    assert isinstance(model, DDPMPipeline)
    model.save_pretrained(tmp_path)
    assert training.parts.save_extra is not None
    training.parts.save_extra(tmp_path)
    theirs = diffusers.DDPMPipeline.from_pretrained(tmp_path)
    x, t = torch.randn(2, 1, 8, 8), torch.tensor([3, 17])
    with torch.no_grad():
        close(model(x, t), theirs.unet(x, t).sample, loosen=5)  # convolutions in another order
    made = descend.load(tmp_path)
    assert isinstance(made, DDPMPipeline)
    assert made.plan == SMALL.model.plan


@pytest.mark.system("classifier-free-guidance", "dropout")
def test_conditional_images() -> None:
    recipe = replace(SMALL, conditional=Conditional(on=True, drop=0.2))
    parts = recipe.build()
    assert parts.model.config.unet.classes == 11
    drops = torch.cat([next(parts.stream)["drop"] for _ in range(250)])
    assert abs(float(drops.float().mean()) - 0.2) < 4 * (0.2 * 0.8 / 2000) ** 0.5
    training = run(recipe)
    assert training.task.none == 10


@pytest.mark.parametrize("weights", ["simple", "elbo", "min-snr"])
def test_weights_by_a_word(weights: Any) -> None:
    run(replace(POINTS, denoising=Denoising(weights)), steps=1)


@pytest.mark.system("noise-schedules", "strips")
@pytest.mark.system("ddpm-sampler", "frames")
def test_what_the_report_of_images_shows() -> None:
    """Samples, nearest images, a film from noise to image, strips of noised images for both schedules, errors."""
    training = run(SMALL)
    training.task.eval()
    assert training.parts.exhibits is not None
    shown = {e.title: e for e in training.parts.exhibits()}
    assert {"Samples", "Denoising", "How an image drowns in noise", "Error by noise"} <= set(shown)
    strips = shown["How an image drowns in noise"].content
    assert strips["captions"] == ["this run", "linear", "cosine"]
    assert strips["rows"].shape == (3, 10, 8, 8)
    for exhibit in shown.values():
        assert "absent" not in exhibit.kind
        make_section(exhibit)
    model = training.parts.model
    film, steps = record_film(model, count=2, frames=5)  # type: ignore[arg-type]
    assert film.shape == (2, 5, 1, 8, 8)
    assert steps == [0, 1, 2, 3, 4]


@pytest.mark.system("noise-schedules", "strips")
def test_a_strip_begins_with_the_image_and_ends_in_noise() -> None:
    x, eps = torch.rand(1, 1, 8, 8), torch.randn(1, 1, 8, 8)
    for shape in ("linear", "cosine"):
        strip = make_strip(x, eps, NoiseSchedule(shape), 6)
        assert (strip[0] - x[0]).abs().max() < 0.05
        assert (strip[-1] - eps[0]).abs().max() < 0.02
    middle = [make_strip(x, 0 * eps, NoiseSchedule(s), 6)[3].norm() for s in ("linear", "cosine")]
    assert middle[1] > 1.5 * middle[0]  # more of the image is left


@pytest.mark.system("denoising-vector-field", "field")
def test_what_the_report_of_points_shows() -> None:
    training = run(POINTS)
    training.task.eval()
    assert training.parts.exhibits is not None
    shown = {e.title: e for e in training.parts.exhibits()}
    assert sum(title.startswith("Where points are taken to") for title in shown) == 3
    assert {"Density", "From noise to data", "Real and generated points"} <= set(shown)
    for exhibit in shown.values():
        make_section(exhibit)
    scores = training.task.judge({"loss": 1.0}, {})
    assert set(scores) == {"loss", "quality", "modes", "overlap"}


@pytest.mark.system("denoising-vector-field")
@pytest.mark.system("denoising-vector-field", "field")
def test_the_field_of_a_perfect_denoiser_points_to_the_data() -> None:
    """All data at one point: every arrow ends there, and every path does."""
    plan, place = Plan(NoiseSchedule(steps=20, start=5e-3, end=0.4)), torch.tensor([1.0, -2.0])

    class Exact(DenoiserMLP):
        def forward(self, x: torch.Tensor, t: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            abar = plan.noise.at(t, x)
            return (x - abar.sqrt() * place) / (1 - abar).sqrt()

    model, x = Exact(DenoiserConfig(width=4, depth=1, plan=plan)), torch.randn(50, 2)
    close(x + denoising_field(model, plan, x, 10), place.expand(50, 2), loosen=5)
    paths = record_paths(model, plan, 30)
    assert paths.shape == (21, 30, 2)
    close(paths[-1], place.expand(30, 2), loosen=5)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            replace(SMALL, model=replace(SMALL.model, unet=replace(UNET, widths=(8,) * 5, attention=(False,) * 5))),
            "size",
        ),
        (replace(POINTS, model=replace(POINTS.model, inputs=3)), "2 inputs"),
    ],
)
def test_what_does_not_fit_is_refused(recipe: Any, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe.build()


def test_images_that_are_no_squares() -> None:
    prepare = Preprocessing.fit(Digits().read())
    with pytest.raises(Mistake, match="makes squares"):
        build_pipeline(SMALL.model, replace(prepare, image=(1, 8, 12)), False)
