"""A diffusion model of points: a perceptron that is told the time, and a class where there are any.

    h_1 = silu(W_1 x + E γ(t) (+ C[y])),   h_l = h_{l−1} + silu(W_l h_{l−1} + b_l),   ε_θ(x_t, t, y) = W h

γ(t) are the sinusoids of the time step, 0..T−1 as in arrays (the books' t is one more). The last class stands for
"none" (classifier-free guidance). `plan` says what the network predicts and how it samples, as in a pipeline of images.
`score` and `velocity` are those of the SDE that the chain is a discretisation of, so that points have a likelihood.

Systems: ddpm, denoising-vector-field
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.errors import Mistake
from descend.models._denoising import choose_plan, guide_by_class
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import estimate
from descend.ops.diffusion.schedule import spread
from descend.ops.diffusion.sde import VP
from descend.ranges import Depth, NonNegative, Width
from descend.sampling.diffusion.flow import ProbabilityFlow
from descend.sampling.diffusion.samplers import draw
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

WAVES = 64  # sinusoids of the time
PERIOD = 1000  # what T is for the sinusoids, however many steps there are


@dataclass(frozen=True)
class DenoiserConfig:
    """The network, and how it samples."""

    inputs: Width = 2
    """Numbers of a point."""
    width: Width = 128
    depth: Depth = 4
    classes: Width | None = None
    """Conditions, the last of which is "none"; none: no condition."""
    guidance: NonNegative = 1.0
    """How much a class counts unless asked otherwise."""
    plan: Plan = field(default_factory=Plan)


class DenoiserMLP(Pretrained):
    """points (b, inputs), time steps (b), classes (b) or none -> the prediction (b, inputs)"""

    Config = DenoiserConfig

    def __init__(self, config: DenoiserConfig):
        super().__init__()
        c = self.config = config
        self.first = nn.Linear(c.inputs, c.width)
        self.time = TimeEmbedding(WAVES, c.width)
        self.condition = nn.Embedding(c.classes, c.width) if c.classes else None
        self.hidden = nn.ModuleList(nn.Linear(c.width, c.width) for _ in range(c.depth - 1))
        self.out = nn.Linear(c.width, c.inputs)

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        h = self.first(x) + self.time(embed_time(t * (PERIOD / self.config.plan.noise.steps), WAVES))
        if self.condition is not None:
            if y is None:
                raise ValueError(f"this network has {self.config.classes} classes: say which, y (b,)")
            h = h + self.condition(y)
        h = nn.functional.silu(h)
        for layer in self.hidden:
            h = h + nn.functional.silu(layer(h))
        return self.out(h)

    @property
    def offers(self) -> frozenset[str]:
        """With classes: which, and how much they count."""
        return frozenset({"steps", "method"} | ({"classes", "guidance"} if self.config.classes else set()))

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points (count, inputs)."""
        c = self.config
        predict = guide_by_class(self, chance.count, wish, c.guidance, None)
        noise = lambda: chance.normal(c.inputs)
        return draw(predict, noise(), choose_plan(c.plan, wish), noise, wish.steps)

    def score(self, x: Tensor, t: Tensor) -> Tensor:
        """∇ log p_t(x) at continuous times t (b) in 0..1: −ε_θ(x, tT − 1) / √(1 − ᾱ)."""
        plan, sde = self.config.plan, self.sde
        abar = spread(sde.abar(t), x)
        y = None if self.config.classes is None else torch.full((len(x),), self.config.classes - 1, device=x.device)
        eps = estimate(plan.predicts, self(x, t * plan.noise.steps - 1, y), x, abar).eps
        return -eps / (1 - abar).sqrt()

    @property
    def sde(self) -> VP:
        """What the chain is in continuous time; of linear schedules."""
        noise = self.config.plan.noise
        if noise.shape != "linear" or noise.zero_terminal:
            raise Mistake(
                "the likelihood is that of a linear noise schedule; train with --model.plan.noise.shape linear"
            )
        return VP(noise.start * noise.steps, noise.end * noise.steps)

    def flow(self, method: str = "heun", steps: int = 50) -> ProbabilityFlow:
        """The probability flow, from the first level of noise on."""
        return ProbabilityFlow(self.sde, self.score, method, steps=steps, first=1 / self.config.plan.noise.steps)


SIZES: dict[str, DenoiserConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = DenoiserConfig(width=8, depth=2, classes=3, plan=Plan(method="ddim", steps=3))


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    """Three points at three times, of three classes."""
    x = torch.randn(3, TINY.inputs, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([0, 400, 999]), torch.arange(3)


LAYOUT = Layout("DenoiserMLP", parts={"plan": Plan})
