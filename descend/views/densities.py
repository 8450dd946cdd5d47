"""What a model of points in the plane shows: samples beside the data, its density, and its velocity field."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Exhibit, Generates, Wish
from descend.data.toys.densities import Box, cover
from descend.sampling.chance import PerExample

SHOWN = 3  # seed of the points that are drawn
SAMPLES = 1000
CELLS = 96  # of a density's image, a side
ARROWS = 21  # of a vector field, a side


def fit_box(x: Tensor, margin: float = 0.15) -> Box:
    """A box around points (n, 2), wider by a share of their range."""
    low, high = x.amin(0), x.amax(0)
    edge = margin * (high - low)
    (left, bottom), (right, top) = (low - edge).tolist(), (high + edge).tolist()
    return left, right, bottom, top


def show_samples(model: Generates, real: Tensor) -> Exhibit:
    """Real and generated points in one chart."""
    with torch.no_grad():
        made = model.generate(PerExample(SHOWN, SAMPLES, device=find_device(model)), Wish())
    content = {"real": real[:SAMPLES].tolist(), "generated": made.cpu().tolist()}
    return Exhibit("points", "Real and generated points", content, "Validation points, and as many new ones.")


def show_density(log_density: Callable[[Tensor], Tensor], box: Box) -> Exhibit:
    """p(x) over the box, the darker the likelier."""
    left, right, bottom, top = box
    with torch.no_grad():
        log_p = log_density(cover(box, CELLS)[0].float()).double().cpu()
    values = (log_p - log_p[log_p.isfinite()].max()).exp().view(CELLS, CELLS)
    content = {"x": [left, right], "y": [bottom, top], "values": values.tolist()}
    return Exhibit("plane", "Density", content, "Relative to its highest value.")


def show_field(velocity: Callable[[Tensor], Tensor], box: Box, title: str, points: Tensor | None = None) -> Exhibit:
    """A vector field as arrows, the longest as long as a cell; over points (n, 2), where they are given."""
    left, right, bottom, top = box
    at = cover(box, ARROWS)[0].float()
    with torch.no_grad():
        v = velocity(at).double().cpu()
    longest = float(v.norm(dim=1).max()) or 1.0
    size = min(right - left, top - bottom) / ARROWS
    arrows = torch.cat([at.double(), v * size / longest], 1).tolist()
    cloud = {} if points is None else {"points": {"data": points[:SAMPLES].tolist()}}
    content = {"x": [left, right], "y": [bottom, top], "arrows": arrows, **cloud}
    return Exhibit("plane", title, content, f"The longest arrow is {longest:.3g}.")


def show_stages(stages: Callable[[Tensor], list[Tensor]], most: int = 4) -> list[Exhibit]:
    """Noise, and what the layers of a flow make of it one after another; of many layers, `most` of them."""
    noise = PerExample(SHOWN, SAMPLES).normal(2)
    with torch.no_grad():
        found = stages(noise)
    layers = len(found) - 1
    chosen = sorted({round(layers * (k + 1) / min(most, layers)) for k in range(min(most, layers))})
    titles = {0: "Noise"} | {k: f"After layer {k} of {layers}" for k in chosen}
    return [Exhibit("points", title, {"points": found[k].cpu().tolist()}) for k, title in titles.items()]


def find_device(model: object) -> torch.device:
    """Where a module's parameters are."""
    return next(model.parameters()).device if isinstance(model, torch.nn.Module) else torch.device("cpu")
