"""Samplers by their properties: exact predictors, counted calls, sub-sequences, inversion, guidance, order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import get_args

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.guidance import guide_prediction
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Method, Plan
from descend.ops.diffusion.prediction import Estimate, Predicts, estimate, target_of
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.ancestral import sample_ddpm
from descend.sampling.diffusion.denoiser import Denoiser, classifier_guidance, free_guidance
from descend.sampling.diffusion.grid import (
    Grid,
    choose_times,
    interpolate_levels,
    karras_grid,
    karras_sigmas,
    make_grid,
)
from descend.sampling.diffusion.implicit import invert, sample_ddim
from descend.sampling.diffusion.samplers import draw, start_scale, walk, walk_grid
from tests.close import close

SHORT = NoiseSchedule("linear", 100, 1e-3, 0.15)
METHODS: tuple[Method, ...] = ("ddpm", "ddim", "plms", "dpm++", "dpm++sde", "unipc", "euler", "euler-ancestral", "heun")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Draw:
    """Noise that is counted."""

    def __init__(self, *shape: int, seed: int = 5):
        self.shape, self.count, self.random = shape, 0, torch.Generator().manual_seed(seed)

    def __call__(self) -> Tensor:
        self.count += 1
        return torch.randn(self.shape, generator=self.random, dtype=torch.float64)


def exact(scale: float, noise: NoiseSchedule = SHORT) -> Callable[..., Tensor]:
    """ε of data N(0, scale²)."""

    def predict(x: Tensor, t: Tensor) -> Tensor:
        abar = noise.at(t, x)
        return (1 - abar).sqrt() * x / (abar * scale**2 + 1 - abar)

    return predict


def last(steps: Iterable[Tensor]) -> Tensor:
    *_, found = steps
    return found


@pytest.mark.system("ddpm-sampler", "variance")
@pytest.mark.system("ddpm-sampler", "frames")
@pytest.mark.system("ddpm", "exact-reverse")
@pytest.mark.parametrize(("variance", "expected"), [("beta", 1.0), ("posterior", 0.9)])
def test_the_exact_predictor_of_standard_normal_data(variance: str, expected: float) -> None:
    """With β the chain keeps N(0, 1) (but for the last step, which adds none); with β̃ it shrinks. Frame by frame."""
    x, noise = normal(100_000, 1), Draw(100_000, 1)
    frames = list(sample_ddpm(Denoiser(exact(1.0)), make_grid(Plan(SHORT)), x, noise, variance))
    assert len(frames) == 100
    if variance == "beta":
        for frame in frames[:-1:20]:
            assert abs(frame.var() - 1) < 0.02
    else:
        assert frames[-1].var() < 0.99
    assert abs(frames[-1].var() - expected) < 0.1


@pytest.mark.system("ddpm-sampler", "last-step")
def test_no_noise_in_the_last_step() -> None:
    """T − 1 draws for T steps; with the true noise of one image the last mean is that image."""
    noise = Draw(3, 2)
    x = normal(3, 2)
    frames = list(sample_ddpm(Denoiser(exact(0.5)), make_grid(Plan(SHORT)), x, noise))
    assert noise.count == 99
    x0, eps = normal(3, 2, seed=1), normal(3, 2, seed=2)
    for times in ([0], [40]):
        grid = Grid.of(SHORT, times)
        denoise = Denoiser(lambda x, t: eps)
        close(last(sample_ddpm(denoise, grid, add_noise(x0, eps, grid.abar[0].item()), noise)), x0)
    assert noise.count == 99
    assert frames[-1].isfinite().all()


@pytest.mark.system("ddpm-sampler", "mean")
@pytest.mark.system("ddpm", "exact-reverse")
def test_a_step_of_the_books_form() -> None:
    """(x − β / √(1 − ᾱ) ε) / √α + σ z, written out."""
    grid, x, z = make_grid(Plan(SHORT)), normal(3, 2), normal(3, 2, seed=3)
    eps = normal(3, 2, seed=4)
    first = next(sample_ddpm(Denoiser(lambda x, t: eps), grid, x, lambda: z, "beta"))
    beta, abar = SHORT.betas()[-1], SHORT.abar()[-1]
    close(first, (x - beta / (1 - abar).sqrt() * eps) / (1 - beta).sqrt() + beta.sqrt() * z)


@pytest.mark.system("ddim", "eta")
def test_eta_one_is_ddpm_and_zero_is_deterministic() -> None:
    """Over all steps and at equal noise; η = 0 draws none, and η between is between in spread."""
    x, grid = normal(2000, 2), make_grid(Plan(SHORT))
    predict = exact(0.5)
    ours = list(sample_ddim(Denoiser(predict), grid, x, Draw(2000, 2), 1.0))
    theirs = list(sample_ddpm(Denoiser(predict), grid, x, Draw(2000, 2), "posterior"))
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    noise = Draw(2000, 2)
    first = last(sample_ddim(Denoiser(predict), grid, x, noise))
    assert noise.count == 0
    assert first.equal(last(sample_ddim(Denoiser(predict), grid, x, noise)))
    half = last(sample_ddim(Denoiser(predict), grid, x, Draw(2000, 2), 0.5))
    moved = [(found - first).square().mean() for found in (half, ours[-1])]
    assert 0 < moved[0] < moved[1]


@pytest.mark.system("ddim", "sub-sequences")
def test_any_sub_sequence_leads_to_the_data() -> None:
    """Data N(0, ¼): even, uneven and very few times; each ends with their deviation, the finer the nearer."""
    x, errors = normal(50_000, 1), []
    for times in ([99, 0], [99, 90, 60, 20, 3], list(range(99, -1, -10)), list(range(99, -1, -1))):
        found = last(sample_ddim(Denoiser(exact(0.5)), Grid.of(SHORT, times), x, Draw(1)))
        errors.append(abs(float(found.std()) - 0.5))
    assert errors[0] > errors[1] > errors[-1]
    assert errors[-1] < 0.02
    for wrong in ([], [5, 5], [3, 7], [100, 2], [4, -1]):
        with pytest.raises(Mistake, match="must fall"):
            Grid.of(SHORT, wrong)


@pytest.mark.system("ddim", "inversion")
def test_encoding_and_decoding() -> None:
    """A network that is not linear: noise and back; the error falls with the number of steps."""
    weight = normal(3, 3, seed=9) / 2
    predict = lambda x, t: (x @ weight).tanh() * (1 - SHORT.at(t, x)).sqrt() + x * (1 - SHORT.at(t, x)) / 2
    x0, errors = normal(64, 3), []
    for steps in (10, 25, 50, 100):
        grid = make_grid(Plan(SHORT, method="ddim"), steps)
        z = last(invert(Denoiser(predict), grid, x0))
        back = last(sample_ddim(Denoiser(predict), grid, z, Draw(1)))
        errors.append(float((back - x0).square().mean().sqrt()))
        assert float((z - x0).square().mean()) > 0.05
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.25 * errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_every_sampler_finds_one_image(method: Method) -> None:
    """All data are one image: ε is known, and every method ends at it, whatever it predicts."""
    image = normal(1, 2, 3, 3)
    for predicts in get_args(Predicts):

        def predict(x: Tensor, t: Tensor, predicts: Predicts = predicts) -> Tensor:
            abar = 1 / (1 + sigma_at(t).square()).reshape(-1, 1, 1, 1)
            eps = (x - abar.sqrt() * image) / (1 - abar).sqrt()
            return target_of(predicts, image.expand_as(x), eps, abar)

        plan = Plan(SHORT, predicts, method, spacing="trailing")
        close(draw(predict, normal(4, 2, 3, 3, seed=1), plan, Draw(4, 2, 3, 3), 12), image.expand(4, 2, 3, 3), 1e3)


def sigma_at(t: Tensor) -> Tensor:
    return (1 / interpolate_levels(SHORT, t.double()) - 1).sqrt()


class Halves(Denoiser):
    """Exact for data N(0, ¼) at any level of noise."""

    def __call__(self, x: Tensor, t: float, abar: float) -> Estimate:
        return estimate("eps", (1 - abar) ** 0.5 * x / (0.25 * abar + 1 - abar), x, abar)


@pytest.mark.system("probability-flow-ode", "fast-samplers")
def test_the_order_of_the_fast_samplers() -> None:
    """Data N(0, ¼): the flow multiplies x by a known factor. From 20 to 40 to 80 steps on Karras' levels the error of
    DDIM and Euler halves, that of Heun, DPM-Solver++ and UniPC falls to a quarter or less, and is smaller by far."""
    x, errors = normal(1, 1), {}
    for method in ("ddim", "euler", "heun", "dpm++", "unipc"):
        plan, found = Plan(method=method, sigmas="karras", spacing="linspace"), []
        for steps in (20, 40, 80):
            grid = karras_grid(plan.noise, None, steps, 1.0, whole=False)
            begin = x / start_scale(grid, plan) / float(grid.abar[0]) ** 0.5 if method in ("euler", "heun") else x
            true = x * 0.5 / float(0.25 * grid.abar[0] + 1 - grid.abar[0]) ** 0.5
            found.append(float((last(walk_grid(Halves(exact(0.5)), grid, begin, plan, Draw(1))) - true).abs()))
        errors[method] = found
    for method, (coarse, middle, fine) in errors.items():
        second = method in ("heun", "dpm++", "unipc")
        for ratio in (coarse / middle, middle / fine):
            assert (3.3 if second else 1.8) < ratio < (20 if second else 2.2), (method, errors[method])
        assert not second or fine < errors["ddim"][2] / 10


@pytest.mark.system("classifier-free-guidance", "one-batch")
def test_guidance_is_one_doubled_batch_or_one_plain_call() -> None:
    sizes = []

    def network(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        sizes.append(len(x))
        assert len(x) == len(t) == len(y)
        return x * y[:, None]

    x, t = normal(3, 2), torch.zeros(3)
    y, none = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3)
    close(free_guidance(network, y, none, 3.0)(x, t), 3 * x * y[:, None])
    close(free_guidance(network, y, none, 1.0)(x, t), x * y[:, None])
    close(free_guidance(network, y, none, 0.0)(x, t) + 1, torch.ones_like(x))
    assert sizes == [6, 3, 3]


def mixture_network(noise: NoiseSchedule) -> Callable[..., Tensor]:
    """The exact ε of ½ N(−1, ¼) + ½ N(1, ¼) (y = 2: no condition) and of its parts (y = 0, 1)."""

    def predict(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        abar = noise.at(t, x)
        variance = 0.25 * abar + 1 - abar
        means = torch.tensor([-1.0, 1.0], dtype=x.dtype) * abar.sqrt()
        own = (-0.5 * (x - means).square() / variance).softmax(1)
        chosen = torch.nn.functional.one_hot(y.clamp(max=1), 2).to(x)
        weight = torch.where(y[:, None] == 2, own, chosen)
        score = (weight * (means - x)).sum(1, keepdim=True) / variance
        return -score * (1 - abar).sqrt()

    return predict


def classify_mixture(noise: NoiseSchedule) -> Callable[..., Tensor]:
    """Exact logits of the part that x_t comes from."""

    def classify(x: Tensor, t: Tensor) -> Tensor:
        abar = noise.at(t, x)
        means = torch.tensor([-1.0, 1.0], dtype=x.dtype) * abar.sqrt()
        return -0.5 * (x - means).square() / (0.25 * abar + 1 - abar)

    return classify


@pytest.mark.system("classifier-guidance")
@pytest.mark.system("classifier-guidance", "sampled")
@pytest.mark.system("classifier-free-guidance")
def test_both_guidances_sample_what_they_should() -> None:
    """Exact scores: γ = 0 gives both parts, γ = 1 the part N(1, ¼), γ = 3 is sharper; both guidances are one."""
    noise, n = NoiseSchedule("linear", 200, 1e-3, 0.08), 4000
    network, classifier = mixture_network(noise), classify_mixture(noise)
    y = torch.ones(n, dtype=torch.long)
    none = torch.full((n,), 2)
    plain = lambda x, t: network(x, t, none)
    found = {}
    for gamma in (0.0, 1.0, 3.0):
        guided = classifier_guidance(plain, classifier, y, gamma, noise)
        free = free_guidance(network, y, none, gamma)
        plan = Plan(noise, variance="beta")
        samples = [draw(p, normal(n, 1), plan, Draw(n, 1)) for p in (guided, free)]
        close(samples[0], samples[1], loosen=100)  # two sums of logarithms
        found[gamma] = samples[0]
    assert abs(found[0.0].mean()) < 0.06
    assert abs((found[0.0] > 0).double().mean() - 0.5) < 0.03
    assert abs(found[1.0].mean() - 1) < 0.03
    assert abs(found[1.0].std() - 0.5) < 0.03
    assert found[3.0].mean() > 1.02
    assert found[3.0].std() < found[1.0].std()
    with pytest.raises(Mistake, match="give --class"):
        classifier_guidance(plain, classifier, -y, 1.0, noise)


@pytest.mark.system("classifier-guidance")
@pytest.mark.parametrize("predicts", ["x0", "v"])
def test_guidance_of_another_prediction_is_that_of_its_noise(predicts: Predicts) -> None:
    x, eps, gradient, abar = normal(3, 2), normal(3, 2, seed=1), normal(3, 2, seed=2), 0.3
    out = target_of(predicts, *estimate("eps", eps, x, abar), abar)
    guided = guide_prediction(predicts, out, gradient, 2.0, abar)
    close(estimate(predicts, guided, x, abar).eps, guide_prediction("eps", eps, gradient, 2.0, abar))


def test_grids() -> None:
    assert choose_times(1000, 4, "leading").tolist() == [750, 500, 250, 0]
    assert choose_times(1000, 4, "trailing").tolist() == [999, 749, 499, 249]
    assert choose_times(1000, 4, "linspace").tolist() == [999, 666, 333, 0]
    close(karras_sigmas(10.0, 0.1, 5)[[0, -1]], torch.tensor([10.0, 0.1], dtype=torch.float64))
    assert (karras_sigmas(10.0, 0.1, 5).diff().diff() > 0).all()  # the steps shrink towards the image
    for steps in (-1, 101):
        with pytest.raises(Mistake, match="give 1 to 100"):
            make_grid(Plan(SHORT), steps)
    with pytest.raises(Mistake, match="fewer"):
        make_grid(Plan(SHORT, method="dpm++"), 100)
    assert len(list(walk(exact(1.0), normal(1, 1), Plan(SHORT, steps=7), Draw(1, 1)))) == 7


@pytest.mark.system("ddpm-sampler", "cost")
def test_calls_are_counted() -> None:
    """T calls for DDPM, n for DDIM and the solvers, 2n − 1 for Heun, n + 1 for PLMS; a GAN needs one."""
    cases: list[tuple[Method, int, int]] = [
        ("ddpm", 0, 100), ("ddim", 10, 10), ("dpm++", 10, 10), ("unipc", 10, 10), ("heun", 10, 19), ("plms", 10, 11)
    ]  # fmt: skip
    for method, steps, calls in cases:
        plan = Plan(SHORT, method=method)
        denoise = Denoiser(exact(1.0))
        last(walk_grid(denoise, make_grid(plan, steps), normal(2, 1), plan, Draw(2, 1)))
        assert denoise.calls == calls
    assert math.isclose(1000 * 72 / 60, 1200)
