"""What a report shows of the inside of an image classifier: filters, maps, heat on mistakes, a map of its vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.labelled import Images, Preprocessing
from descend.engine.protocol import Exhibit
from descend.interpret.filters import entropies, filters, pictures
from descend.interpret.grad_cam import grad_cam
from descend.interpret.gradients import saliency
from descend.interpret.layers import as_maps, convolutions, feature_maps
from descend.interpret.overlay import overlaid, scaled
from descend.interpret.representations import plane, representations
from descend.interpret.rollout import rollout_heat
from descend.nn.attention.maps import attention_maps

FILTERS, MAPS, HEATED, MAPPED = 32, 8, 8, 400  # how many are shown


def look_inside(model: Any, images: Images, prepare: Preprocessing) -> list[Exhibit]:
    """The exhibits that this model can have, made of validation images."""
    where = next(model.parameters()).device
    rows = torch.arange(min(MAPPED, len(images.y)))
    pixels, y = images.x[rows], images.y[rows]
    x = prepare(pixels).to(where)
    shown = []
    if convolutions(model):
        shown += [first_filters(model), maps_of_one(model, x[:1])]
    return [*shown, heat_of_mistakes(model, x, pixels, y, prepare.labels), vectors(model, x, y, prepare.labels)]


def heat_of(model: nn.Module, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, str]:
    """Heat (b, h, w) for a class, and how it was found.

    Grad-CAM at the last convolution; attention rollout in a transformer, whose one convolution cuts the patches; the
    gradient at the pixels where there is neither.
    """
    square = [a for a in attention_maps(model, x).values() if a.shape[-1] == a.shape[-2]]
    if square and len(convolutions(model)) < 2 and all(a.shape == square[0].shape for a in square):
        heat = rollout_heat(square, *x.shape[-2:])
        return F.interpolate(heat[:, None], size=x.shape[-2:], mode="bilinear")[:, 0], "attention rollout"
    if len(convolutions(model)) > 1:
        return grad_cam(model, x, y), "Grad-CAM"
    return saliency(model, x, y), "gradient at the pixels"


def first_filters(model: nn.Module) -> Exhibit:
    """The filters of the first convolution, beside how ordered they are."""
    found = filters(model)
    shown = pictures(found)[:FILTERS]
    note = f"Layer {convolutions(model)[0]}: {len(found)} filters of {'×'.join(map(str, found.shape[1:]))}."
    if found[0, 0].numel() > 3:
        noise = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
        mine, other = (float(entropies(part.cpu()).mean()) for part in (found, noise))
        note += f" Entropy of their spectra {mine:.2f}; random filters have {other:.2f}, one wave has 0."
    content = {"images": channels_last(shown), "captions": [str(k) for k in range(len(shown))]}
    return Exhibit("images", "First filters", content, note)


def maps_of_one(model: nn.Module, x: Tensor) -> Exhibit:
    """The strongest maps of the first, the middle and the last convolution for one image."""
    names = convolutions(model)
    chosen = list(dict.fromkeys(names[i] for i in (0, len(names) // 2, -1)))
    shown, captions = [], []
    for name in chosen:
        a = as_maps(feature_maps(model, name, x), *x.shape[-2:])[0].clamp_min(0)
        best = a.flatten(1).amax(dim=1).argsort(descending=True)[:MAPS]
        large = F.interpolate(scaled(a[best])[None], size=x.shape[-2:], mode="nearest")[0]
        shown.append(large.cpu())
        captions += [f"{name}, map {int(k)}" for k in best]
    content = {"images": torch.cat(shown).numpy(), "captions": captions}
    return Exhibit("images", "Feature maps", content, "What is left after the ReLU, for the first validation image.")


def heat_of_mistakes(model: nn.Module, x: Tensor, pixels: Tensor, y: Tensor, labels: tuple[str, ...]) -> Exhibit:
    """Where the model looked when it was most wrong: the image, and the heat for what it called it."""
    with torch.no_grad():
        p = model(x).softmax(dim=1).cpu()
    called = p.argmax(dim=1)
    lead = p.amax(dim=1) - p.gather(1, y[:, None])[:, 0]
    worst = lead.argsort(descending=True, stable=True)[:HEATED]
    heat, how = heat_of(model, x[worst.to(x.device)], called[worst].to(x.device))
    over = overlaid(pixels[worst], heat.cpu())
    plain = pixels[worst].mean(dim=1, keepdim=True).expand(-1, 3, -1, -1) if pixels.shape[1] == 1 else pixels[worst]
    both = torch.stack([plain, over], dim=1).flatten(0, 1)
    captions = []
    for i in worst.tolist():
        captions += [f"{labels[int(y[i])]}", f"{labels[int(called[i])]} ({float(p[i].max()):.0%})"]
    content = {"images": channels_last(both), "captions": captions}
    note = f"Each image with its true class, then the heat for what it was called ({how}): red spoke most for it."
    return Exhibit("images", "Heat maps of mistakes and closest calls", content, note)


def vectors(model: nn.Module, x: Tensor, y: Tensor, labels: tuple[str, ...]) -> Exhibit:
    """The vectors before the head in two dimensions, a colour for each class."""
    by = "tsne" if len(x) > 30 else "pca"
    points = plane(representations(model, x), by)  # type: ignore[arg-type]
    content = {label: points[y == k].tolist() for k, label in enumerate(labels) if bool((y == k).any())}
    note = "t-SNE: neighbours are neighbours, far distances mean nothing." if by == "tsne" else "Principal components."
    return Exhibit("points", "Map of representations", content, f"The vectors before the head. {note}")


def channels_last(x: Tensor) -> np.ndarray:
    """(n, c, h, w) -> (n, h, w, 3), or (n, h, w) for one channel"""
    found: np.ndarray = (x[:, 0] if x.shape[1] == 1 else x.movedim(1, -1)).cpu().numpy()
    return found
