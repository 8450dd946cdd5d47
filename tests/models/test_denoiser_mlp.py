"""A diffusion model of points: what it generates, its score and likelihood, and its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import descend
from descend.contracts import Generates, Wish
from descend.errors import Mistake
from descend.models.denoiser_mlp import TINY, DenoiserConfig, DenoiserMLP
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.chance import PerExample
from tests.close import close


def make(config: DenoiserConfig = TINY) -> DenoiserMLP:
    torch.manual_seed(0)
    return DenoiserMLP(config).eval()


def test_it_generates_and_one_of_a_batch_can_be_made_again() -> None:
    model = make()
    assert isinstance(model, Generates)
    wish = Wish(steps=5, method="ddpm", guidance=2.0, classes=torch.tensor([0, 1, 1, 0]))
    made = model.generate(PerExample(3, 4), wish)
    alone = model.generate(PerExample(3, 1, first=2), replace(wish, classes=torch.tensor([1])))
    close(made[2:3], alone)
    for method in ("ddim", "dpm++", "unipc", "heun"):
        assert model.generate(PerExample(3, 4), Wish(method=method)).isfinite().all()
    with pytest.raises(Mistake, match="must be one of ddpm"):
        model.generate(PerExample(3, 4), Wish(method="dim"))
    with pytest.raises(Mistake, match="class 7 is unknown"):
        model.generate(PerExample(3, 1), Wish(classes=torch.tensor([7])))


@pytest.mark.system("classifier-free-guidance", "one-batch")
def test_guidance_of_one_is_the_conditional_model() -> None:
    model, y = make(), torch.tensor([0, 1])
    plain = model.generate(PerExample(0, 2), Wish(guidance=1.0, classes=y))
    by_default = model.generate(PerExample(0, 2), Wish(classes=y))
    none = model.generate(PerExample(0, 2), Wish())
    ignored = model.generate(PerExample(0, 2), Wish(guidance=0.0, classes=y))
    assert plain.equal(by_default)
    assert none.equal(ignored)
    assert not plain.equal(none)


def test_its_folder_keeps_network_and_plan(tmp_path: Path) -> None:
    plan = Plan(NoiseSchedule("cosine", 30), "v", "unipc", steps=7, order=3)
    model = make(replace(TINY, plan=plan))
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert isinstance(again, DenoiserMLP)
    assert again.config == model.config
    assert again.generate(PerExample(0, 2), Wish()).equal(model.generate(PerExample(0, 2), Wish()))


@pytest.mark.system("score-sde", "likelihood")
def test_the_flow_of_a_perfect_denoiser_has_the_likelihood_of_its_data() -> None:
    """A network that is exact for N(0, ¼ I): log p by the flow is that of the Gaussian."""

    class Exact(DenoiserMLP):
        def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
            abar = self.sde.abar((t.double() + 1) / 200).reshape(-1, 1)
            return (1 - abar).sqrt() * x / (0.25 * abar + 1 - abar)

    model = Exact(DenoiserConfig(plan=Plan(NoiseSchedule(steps=200, start=5e-4, end=0.1)))).double()
    nn.init.zeros_(model.out.weight)
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).double() / 2
    theirs = torch.distributions.Normal(0 * x, 0 * x + 0.5).log_prob(x).sum(1)
    assert (model.flow("rk4", 200).log_prob(x) - theirs).abs().max() < 0.02
    with pytest.raises(Mistake, match="linear noise schedule"):
        _ = make(replace(TINY, plan=Plan(NoiseSchedule("cosine")))).sde


def test_a_class_must_be_told() -> None:
    with pytest.raises(ValueError, match="3 classes"):
        make()(torch.zeros(1, 2), torch.zeros(1))
