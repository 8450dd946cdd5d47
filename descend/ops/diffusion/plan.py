"""How a trained denoiser samples: the noise schedule, what the network predicts, the method and where it stops.

These are the values of a scheduler_config.json (`weights/schedulers.py`), and flags of a recipe. `sampling/diffusion`
carries them out.

    spacing, of n steps among T:
        leading     0, r, 2r, ..  with r = ⌊T / n⌋, plus `offset`        (the last level of noise is not reached)
        linspace    from 0 to T − 1 in equal steps
        trailing    T − 1, T − 1 − T/n, ..                               (begins at pure noise: right for few steps)
    sigmas = karras: noise levels σ with σ^(1/7) in equal steps, whatever t they belong to

Systems: ddpm
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from descend.errors import Mistake
from descend.ops.diffusion.prediction import Predicts
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.ranges import Count, NonNegative, Share, Whole, check

Method = Literal["ddpm", "ddim", "plms", "dpm++", "dpm++sde", "unipc", "euler", "euler-ancestral", "heun"]
Spacing = Literal["leading", "linspace", "trailing"]


@dataclass(frozen=True)
class Plan:
    """How a trained denoiser samples."""

    noise: NoiseSchedule = field(default_factory=NoiseSchedule)
    predicts: Predicts = "eps"
    """What the network says: eps, x0 or v."""
    method: Method = "ddpm"
    steps: Whole = 0
    """Steps of a sample unless asked otherwise; 0: all of the schedule's."""
    spacing: Spacing = "leading"
    offset: Whole = 0
    """Added to the times of leading spacing."""
    sigmas: Literal["schedule", "karras"] = "schedule"
    end: Literal["image", "first"] = "image"
    """Where the last step leads: to the image itself, or to the first level of noise."""
    variance: Literal["posterior", "beta"] = "posterior"
    """Of a DDPM step."""
    eta: Share = 0.0
    """Noise of a DDIM step: 0 none, 1 that of DDPM."""
    clip: NonNegative = 0.0
    """Predicted images are kept in −clip..clip (DDPM and DDIM); 0: not."""
    order: Count = 2
    """Of UniPC."""

    def __post_init__(self) -> None:
        check(self)
        if self.noise.zero_terminal and self.predicts == "eps":
            raise Mistake(
                "--plan.noise.zero-terminal with --plan.predicts eps: pure noise says nothing about the image when "
                "the noise is predicted; use --plan.predicts v"
            )

    def write(self) -> dict[str, Any]:
        """As plain values of a config.json."""
        return asdict(self)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """From those values."""
        return cls(**values | {"noise": NoiseSchedule(**values["noise"])})
