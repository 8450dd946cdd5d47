"""The samplers against diffusers' schedulers: equal trajectories at equal noise, and the files both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.diffusion.samplers import walk
from descend.weights.schedulers import FILE, KINDS, plan_from_json, plan_to_json, read_scheduler, write_scheduler
from tests.close import close

diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
WEIGHT = torch.randn(48, 48, generator=torch.Generator().manual_seed(0)) / 7
START = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
SCALED = NoiseSchedule("scaled-linear", 1000, 0.00085, 0.012)


def network(x: Tensor, t: Tensor) -> Tensor:
    """Not linear, and different at every time."""
    return (x.flatten(1) @ WEIGHT).tanh().view_as(x) * (1 + 0.3 * torch.sin(t.float() / 100))[:, None, None, None]


def walk_theirs(scheduler: Any, steps: int, eta: float) -> list[Tensor]:
    random = torch.Generator().manual_seed(7)
    scheduler.set_timesteps(steps)
    x, found = START * scheduler.init_noise_sigma, []
    plain = ("UniPCMultistepScheduler", "HeunDiscreteScheduler", "PNDMScheduler")
    more: dict[str, Any] = {} if type(scheduler).__name__ in plain else {"generator": random}
    if type(scheduler).__name__ == "DDIMScheduler":
        more["eta"] = eta
    for t in scheduler.timesteps:
        x = scheduler.step(network(scheduler.scale_model_input(x, t), t.expand(len(x))), t, x, **more).prev_sample
        found.append(x)
    if isinstance(scheduler, diffusers.HeunDiscreteScheduler):  # two entries for each of our steps but the last
        found = [*found[1::2], found[-1]]
    return found[1:] if isinstance(scheduler, diffusers.PNDMScheduler) else found  # its first step is taken twice


def walk_ours(plan: Plan, steps: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(7)
    return list(walk(network, START, plan, lambda: torch.randn(START.shape, generator=random), steps))


def line(plan: Plan) -> Plan:
    return replace(plan, spacing="linspace")


CASES: dict[str, tuple[Plan, int]] = {
    "ddpm": (Plan(), 50),
    "ddpm, β, clipped": (Plan(variance="beta", clip=1.0), 50),
    "ddpm, trailing, sigmoid": (Plan(NoiseSchedule("sigmoid"), spacing="trailing"), 25),
    "ddpm, v": (Plan(predicts="v"), 50),
    "ddim": (Plan(method="ddim"), 50),
    "ddim, η, scaled": (Plan(SCALED, method="ddim", eta=0.5, offset=1, end="first"), 20),
    "ddim, zero terminal": (
        Plan(NoiseSchedule(zero_terminal=True), predicts="v", method="ddim", spacing="trailing"),
        20,
    ),
    "ddim, cosine, clipped": (Plan(NoiseSchedule("cosine"), method="ddim", clip=1.0), 50),
    "plms": (Plan(method="plms"), 20),
    "dpm++": (line(Plan(method="dpm++")), 20),
    "dpm++, few": (Plan(method="dpm++", predicts="x0"), 10),
    "dpm++, karras": (line(Plan(method="dpm++", sigmas="karras")), 20),
    "dpm++, cosine, not to the end": (line(Plan(NoiseSchedule("cosine"), method="dpm++", end="first")), 20),
    "dpm++sde": (Plan(method="dpm++sde", spacing="trailing"), 20),
    "dpm++, zero terminal": (
        Plan(NoiseSchedule(zero_terminal=True), predicts="v", method="dpm++", spacing="trailing"),
        20,
    ),
    "unipc": (line(Plan(method="unipc")), 20),
    "unipc, 3, karras": (line(Plan(method="unipc", order=3, sigmas="karras")), 20),
    "euler": (line(Plan(method="euler")), 20),
    "euler, leading": (Plan(method="euler"), 20),
    "euler, karras, v": (line(Plan(method="euler", predicts="v", sigmas="karras")), 20),
    "euler-ancestral": (line(Plan(method="euler-ancestral")), 20),
    "heun": (line(Plan(method="heun")), 20),
    "heun, karras": (Plan(method="heun", spacing="trailing", sigmas="karras"), 20),
}


@pytest.mark.system("ddpm-sampler")
@pytest.mark.system("ddpm-sampler", "diffusers")
@pytest.mark.system("ddim")
@pytest.mark.system("ddim", "diffusers")
@pytest.mark.system("noise-schedules", "oracle")
@pytest.mark.system("prediction-parametrisation", "samplers")
@pytest.mark.parametrize("case", CASES)
def test_the_whole_trajectory_is_that_of_diffusers(case: str) -> None:
    """From our file to their scheduler. Theirs are float32 products of a thousand factors, so the bound is looser."""
    plan, steps = CASES[case]
    values = plan_to_json(plan)
    scheduler = getattr(diffusers, values["_class_name"]).from_config(values)
    theirs, ours = walk_theirs(scheduler, steps, plan.eta), walk_ours(plan, steps)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b, loosen=3)


@pytest.mark.parametrize("case", CASES)
def test_files_both_ways(case: str, tmp_path: Path) -> None:
    plan = replace(CASES[case][0], eta=0.0)
    write_scheduler(tmp_path, plan)
    again = read_scheduler(tmp_path)
    assert again == plan
    theirs = getattr(diffusers, plan_to_json(plan)["_class_name"]).from_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    assert read_scheduler(tmp_path / "theirs") == plan
    written = json.loads((tmp_path / "theirs" / FILE).read_text())
    assert {key: written[key] for key in plan_to_json(plan)} == plan_to_json(plan)


@pytest.mark.parametrize("name", KINDS)
def test_what_a_file_leaves_out_means_the_same(name: str) -> None:
    defaults = dict(getattr(diffusers, name)().config)
    if name == "PNDMScheduler":
        defaults["skip_prk_steps"] = True
    bare = {"_class_name": name} | ({"skip_prk_steps": True} if name == "PNDMScheduler" else {})
    assert plan_from_json({**defaults, "_class_name": name}) == plan_from_json(bare)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"_class_name": "DDIMSchedular"}, "Did you mean 'DDIMScheduler'"),
        ({"_class_name": "LMSDiscreteScheduler"}, "is not known"),
        ({}, "scheduler '' is not known"),
        ({"_class_name": "DDPMScheduler", "variance_type": "learned_range"}, "variance_type = 'learned_range'"),
        ({"_class_name": "DDPMScheduler", "thresholding": True}, "thresholding = True is not supported"),
        ({"_class_name": "DDIMScheduler", "beta_schedule": "exp"}, "beta_schedule = 'exp'"),
        ({"_class_name": "DDIMScheduler", "beta_end": "x"}, "must be"),
        ({"_class_name": "DDIMScheduler", "rescale_betas_zero_snr": True}, "predicts eps"),
        ({"_class_name": "PNDMScheduler"}, "skip_prk_steps"),
        ({"_class_name": "DPMSolverMultistepScheduler", "lambda_min_clipped": -5.1}, "lambda_min_clipped"),
        ({"_class_name": "UniPCMultistepScheduler", "solver_type": "bh1"}, "solver_type = 'bh1'"),
    ],
)
def test_a_scheduler_that_we_do_not_compute_is_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message) as refused:
        plan_from_json(values)
    assert "\n" not in str(refused.value)
