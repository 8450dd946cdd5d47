"""scheduler_config.json of diffusers, both ways: the schedulers of diffusers as our plans of sampling.

    DDPMScheduler ddpm · DDIMScheduler ddim · PNDMScheduler plms · DPMSolverMultistepScheduler dpm++, dpm++sde ·
    UniPCMultistepScheduler unipc · EulerDiscreteScheduler euler · EulerAncestralDiscreteScheduler euler-ancestral ·
    HeunDiscreteScheduler heun

A setting that is computed in one way only here is refused with another value; settings that a scheduler does not have
are left out, as diffusers does. `fixed_small` is the posterior's variance β̃, `fixed_large` is β.

With leading or trailing spacing and steps that do not divide T, diffusers' DDIM and PNDM step by ⌊T/n⌋ where this
library steps to the next time of the grid; the two are the same where n divides T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from descend.errors import Mistake, nearest
from descend.files import read_json, write_json
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule

FILE = "scheduler_config.json"
SHAPES = {
    "linear": "linear",
    "scaled_linear": "scaled-linear",
    "squaredcos_cap_v2": "cosine",
    "sigmoid": "sigmoid",
}
PREDICTIONS = {"epsilon": "eps", "sample": "x0", "v_prediction": "v"}
VARIANCES = {"fixed_small": "posterior", "fixed_small_log": "posterior", "fixed_large": "beta"}
ENDS = {"zero": "image", "sigma_min": "first"}
NOISE = {
    "num_train_timesteps": 1000,
    "beta_start": 1e-4,
    "beta_end": 0.02,
    "beta_schedule": "linear",
    "prediction_type": "epsilon",
    "steps_offset": 0,
    "rescale_betas_zero_snr": False,
}
KARRAS = {"use_karras_sigmas": False, "final_sigmas_type": "zero"}
PLAIN_SIGMAS = {"trained_betas": None, "use_exponential_sigmas": False, "use_beta_sigmas": False}
FLOW_SIGMAS = {"use_flow_sigmas": False, "thresholding": False, "lower_order_final": True}


@dataclass(frozen=True)
class Kind:
    """A class of diffusers: the method it is, its defaults beyond the common ones, and what is computed in one way."""

    method: str
    defaults: dict[str, Any]
    fixed: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "DDPMScheduler": Kind(
        "ddpm",
        {"timestep_spacing": "leading", "variance_type": "fixed_small", "clip_sample": True, "clip_sample_range": 1.0},
        {"trained_betas": None, "thresholding": False},
    ),
    "DDIMScheduler": Kind(
        "ddim",
        {"timestep_spacing": "leading", "clip_sample": True, "clip_sample_range": 1.0, "set_alpha_to_one": True},
        {"trained_betas": None, "thresholding": False},
    ),
    "PNDMScheduler": Kind(
        "plms",
        {"timestep_spacing": "leading", "set_alpha_to_one": False, "skip_prk_steps": False},
        {"trained_betas": None, "skip_prk_steps": True},
    ),
    "DPMSolverMultistepScheduler": Kind(
        "dpm++",
        {"timestep_spacing": "linspace", "algorithm_type": "dpmsolver++", **KARRAS},
        {**PLAIN_SIGMAS, **FLOW_SIGMAS, "solver_order": 2, "solver_type": "midpoint", "use_lu_lambdas": False},
    ),
    "UniPCMultistepScheduler": Kind(
        "unipc",
        {"timestep_spacing": "linspace", "solver_order": 2, **KARRAS},
        {**PLAIN_SIGMAS, **FLOW_SIGMAS, "predict_x0": True, "solver_type": "bh2", "disable_corrector": []},
    ),
    "EulerDiscreteScheduler": Kind(
        "euler",
        {"timestep_spacing": "linspace", **KARRAS},
        {**PLAIN_SIGMAS, "interpolation_type": "linear", "timestep_type": "discrete"},
    ),
    "EulerAncestralDiscreteScheduler": Kind(
        "euler-ancestral", {"timestep_spacing": "linspace"}, {"trained_betas": None}
    ),
    "HeunDiscreteScheduler": Kind(
        "heun",
        {"timestep_spacing": "linspace", "beta_start": 0.00085, "beta_end": 0.012, "use_karras_sigmas": False},
        {**PLAIN_SIGMAS, "clip_sample": False},
    ),
}
ALGORITHMS = {"dpmsolver++": "dpm++", "sde-dpmsolver++": "dpm++sde"}


def read_scheduler(folder: str | Path) -> Plan:
    """The plan of a folder that has a scheduler_config.json, or of that file."""
    path = Path(folder) if str(folder).endswith(".json") else Path(folder) / FILE
    return plan_from_json(read_json(path), path)


def plan_from_json(values: dict[str, Any], path: Path | str = FILE) -> Plan:
    """The plan of a scheduler's settings."""
    name = str(values.get("_class_name", ""))
    if name not in KINDS:
        raise Mistake(f"{path}: the scheduler {name!r} is not known.{nearest(name, KINDS)} Known: {', '.join(KINDS)}")
    kind = KINDS[name]
    found = {**NOISE, **kind.defaults, **values}
    for key, expected in kind.fixed.items():
        if found.get(key, expected) != expected:
            raise Mistake(f"{path}: {key} = {found[key]!r} is not supported, only {expected!r}")
    if found.get("lambda_min_clipped") not in (None, -math.inf):
        raise Mistake(f"{path}: lambda_min_clipped is not supported; leave it out")

    def choose(key: str, known: dict[str, str]) -> Any:
        value = found[key]
        if value not in known:
            raise Mistake(f"{path}: {key} = {value!r} is not supported, only {', '.join(known)}")
        return known[value]

    spacings = {word: word for word in ("leading", "linspace", "trailing")}
    try:
        return Plan(
            noise=NoiseSchedule(
                choose("beta_schedule", SHAPES),
                found["num_train_timesteps"],
                found["beta_start"],
                found["beta_end"],
                bool(found["rescale_betas_zero_snr"]),
            ),
            predicts=choose("prediction_type", PREDICTIONS),
            method=choose("algorithm_type", ALGORITHMS) if kind.method == "dpm++" else kind.method,  # type: ignore[arg-type]
            spacing=choose("timestep_spacing", spacings),
            offset=found["steps_offset"],
            sigmas="karras" if found.get("use_karras_sigmas") else "schedule",
            end=read_end(found, choose),
            variance=choose("variance_type", VARIANCES) if kind.method == "ddpm" else "posterior",
            clip=found["clip_sample_range"] if found.get("clip_sample") and "clip_sample_range" in found else 0.0,
            order=found["solver_order"] if kind.method == "unipc" else 2,
        )
    except (TypeError, ValueError) as error:
        raise Mistake(f"{path}: {error}") from None


def read_end(found: dict[str, Any], choose: Any) -> Any:
    """Where the last step leads, by either of its two names."""
    if "set_alpha_to_one" in found:
        return "image" if found["set_alpha_to_one"] else "first"
    return choose("final_sigmas_type", ENDS) if "final_sigmas_type" in found else "image"


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The settings of the scheduler of diffusers that samples by this plan."""
    name = next(n for n, kind in KINDS.items() if kind.method == plan.method.removesuffix("sde"))
    kind, noise = KINDS[name], plan.noise
    values = {
        "num_train_timesteps": noise.steps,
        "beta_start": noise.start,
        "beta_end": noise.end,
        "beta_schedule": turn(SHAPES)[noise.shape],
        "prediction_type": turn(PREDICTIONS)[plan.predicts],
        "steps_offset": plan.offset,
        "rescale_betas_zero_snr": noise.zero_terminal,
        "timestep_spacing": plan.spacing,
        "variance_type": turn(VARIANCES)[plan.variance],
        "clip_sample": plan.clip > 0,
        "clip_sample_range": plan.clip or 1.0,
        "set_alpha_to_one": plan.end == "image",
        "final_sigmas_type": turn(ENDS)[plan.end],
        "use_karras_sigmas": plan.sigmas == "karras",
        "algorithm_type": turn(ALGORITHMS).get(plan.method),
        "solver_order": plan.order,
        "skip_prk_steps": True,
    }
    has = {**NOISE, **kind.defaults}
    return {"_class_name": name, **{key: value for key, value in values.items() if key in has}, **kind.fixed}


def turn(names: dict[str, str]) -> dict[str, str]:
    """The same table read from right to left; of several the first counts."""
    return {ours: theirs for theirs, ours in reversed(names.items())}


def write_scheduler(folder: str | Path, plan: Plan) -> None:
    """Write scheduler_config.json, which diffusers opens."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_json(Path(folder) / FILE, plan_to_json(plan))
