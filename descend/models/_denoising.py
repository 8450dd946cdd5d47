"""What pipelines that denoise have in common: which plan, which guidance, and images changed instead of made.

Systems: image-to-image, inpainting, diffusion-conditioning
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Chance, Wish
from descend.errors import Mistake
from descend.ops.diffusion.plan import Plan
from descend.sampling.diffusion.denoiser import Predict, free_guidance
from descend.sampling.diffusion.editing import count_steps, lay_beside, lay_depth, revise


class Denoises(Protocol):
    """A pipeline whose samples come from noise."""

    @property
    def plan(self) -> Plan: ...

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def image(self) -> tuple[int, int, int]: ...

    def predictor(self, count: int, wish: Wish, beside: Tensor | None = None) -> Predict: ...

    def to_latent(self, x: Tensor) -> Tensor: ...

    def from_latent(self, z: Tensor) -> Tensor: ...

    @property
    def unet(self) -> Any: ...


class ConditionalNetwork(Protocol):
    """(x, t, y or none) -> the prediction."""

    def __call__(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor: ...


def choose_plan(plan: Plan, wish: Wish) -> Plan:
    """The pipeline's plan with the method that was asked for."""
    return replace(plan, method=wish.method) if wish.method else plan  # type: ignore[arg-type]


def lay_channels(network: ConditionalNetwork, beside: Tensor | None) -> ConditionalNetwork:
    """The same network with channels laid beside each input: mask, masked image, depth."""
    if beside is None:
        return network

    def wide(x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        return network(torch.cat([x, beside.repeat(len(x) // len(beside), 1, 1, 1)], dim=1), t, y)

    return wide


def guide_by_class(unet: Any, count: int, wish: Wish, guidance: float, beside: Tensor | None) -> Predict:
    """The prediction for these classes; the network's last class stands for "none", also where none is asked for."""
    network, classes = lay_channels(unet, beside), unet.config.classes
    gamma = guidance if wish.guidance is None else wish.guidance
    if not classes:
        if wish.classes is not None or wish.guidance not in (None, 1):
            raise Mistake("this model has no classes to be guided by; leave --class and --guidance out")
        return lambda x, t: network(x, t)
    none = torch.full((count,), classes - 1)
    if wish.classes is None:
        return lambda x, t: network(x, t, none.to(x.device))
    if (wish.classes >= classes - 1).any() or (wish.classes < 0).any():
        raise Mistake(f"class {int(wish.classes.max())} is unknown: this model has the classes 0..{classes - 2}")
    return free_guidance(network, wish.classes, none.to(wish.classes.device), gamma)


@torch.no_grad()
def edit_images(
    pipeline: Denoises,
    x: Tensor,
    chance: Chance,
    wish: Wish,
    strength: float = 0.8,
    mask: Tensor | None = None,
    depth: Tensor | None = None,
) -> Tensor:
    """Images x (b, c, h, w) in −1..1 changed: by noise up to a strength, where the mask is 1, guided by a depth map.

    A network with channels for the mask is given them (it was trained so); any other one is blended with what is known.
    Mask and depth are (b or 1, 1, h, w). Pixels that are not masked come out as they were; an empty mask changes none.
    """
    check_edit(x, strength, mask, depth)
    if mask is not None and not mask.any():
        return x
    z = pipeline.to_latent(x)
    beside, blended = lay_conditions(pipeline, x, z, mask, depth)
    predict = pipeline.predictor(len(x), wish, beside)
    plan = choose_plan(pipeline.plan, wish)
    made = revise(predict, z, plan, lambda: chance.normal(*z.shape[1:]), wish.steps, strength, blended)
    image = pipeline.from_latent(made)
    return image if mask is None else torch.where(mask > 0, image, x)


def lay_conditions(
    pipeline: Denoises, x: Tensor, z: Tensor, mask: Tensor | None, depth: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """The channels beside the latent, and the mask in its size where the sampler has to blend."""
    extra = pipeline.unet.config.channels - z.shape[1]
    if extra == 1 + z.shape[1]:
        hole = torch.ones_like(x[:, :1]) if mask is None else mask
        return lay_beside(hole, pipeline.to_latent(x * (hole <= 0))), None
    if depth is not None and extra != 1:
        raise Mistake("--depth: this model has no channel for a depth map; leave it out")
    small = None if mask is None else F.adaptive_max_pool2d(mask, z.shape[-2:])  # a place of which any pixel is masked
    if extra == 1:
        if depth is None:
            raise Mistake("this model draws along a depth map; give --depth MAP.png")
        return lay_depth(depth, (z.shape[-2], z.shape[-1])), small
    if extra:
        raise Mistake(f"this model's network takes {extra} more channels than a latent; what they are is not known")
    return None, small


def check_edit(x: Tensor, strength: float, mask: Tensor | None, depth: Tensor | None) -> None:
    """Refuse maps of another size and strengths beyond the ends."""
    count_steps(strength, 1)
    for flag, found in {"--mask": mask, "--depth": depth}.items():
        if found is not None and found.shape[-2:] != x.shape[-2:]:
            sizes = f"{found.shape[-1]}×{found.shape[-2]}, the image {x.shape[-1]}×{x.shape[-2]}"
            raise Mistake(f"{flag}: it has {sizes}; both must have the same size")
