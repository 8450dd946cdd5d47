"""What an energy shows: its landscape, where descent from anywhere ends, and what hidden units look for."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.toys.densities import Box, cover
from descend.ops.energy.gibbs import Energy
from descend.ops.energy.inference import descend_energy
from descend.views.pixels import channels_last

CELLS = 96  # of the landscape, a side
STARTS = 12  # of descents, a side
STEPS, ETA = 300, 0.003
SHOWN = 1000  # data points beside the descents
FILTERS = 32  # hidden units that are shown
ABOVE = 10.0  # energies farther above the lowest are drawn alike: e^−10 of the highest density


def show_landscape(energy: Energy, box: Box) -> Exhibit:
    """E(x) over the box above its lowest value, the darker the higher."""
    left, right, bottom, top = box
    with torch.no_grad():
        values = energy(cover(box, CELLS)[0].to(find_type(energy))).double().cpu().view(CELLS, CELLS)
    height = (values - values.min()).clamp(max=ABOVE) / ABOVE
    content = {"x": [left, right], "y": [bottom, top], "values": height.tolist()}
    note = f"Light valleys are what the model takes for data; from {ABOVE:g} above the lowest all is alike."
    return Exhibit("plane", "Energy landscape", content, note)


def show_descent(energy: Energy, data: Tensor, box: Box) -> Exhibit:
    """The ends of descents from a grid of starts, beside the data."""
    starts = cover(box, STARTS)[0].to(find_type(energy))
    ends = descend_energy(energy, starts, ETA, STEPS)[-1].cpu()
    content = {"data": data[:SHOWN].tolist(), "starts": starts.tolist(), "ends": ends.tolist()}
    return Exhibit("points", "Inference by descent", content, "y ← y − η ∂E/∂y from every start.")


def show_weights(weight: Tensor, image: tuple[int, int, int]) -> Exhibit:
    """What the hidden units of a Boltzmann machine look for: columns of W (visible, hidden) as images, 0 is grey."""
    units = weight.detach().cpu().T[:FILTERS]
    size = units.abs().amax(1, keepdim=True).clamp(min=1e-12)
    pixels = channels_last((0.5 + units / (2 * size)).view(-1, *image))
    note = "Bright pixels switch a unit on, dark ones off; each image by its own largest weight."
    return Exhibit("images", "Hidden units", {"images": pixels, "captions": [""] * len(units)}, note)


def find_type(energy: Energy) -> Tensor:
    """A tensor of the type and on the device that the energy computes with."""
    return next(energy.parameters()) if isinstance(energy, torch.nn.Module) else torch.zeros(())
