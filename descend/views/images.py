"""What an image classifier shows: its mistakes, filters, feature maps, heat maps, representations and layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Batch, Exhibit
from descend.data.images.augment import Augment
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.interpret.filters import measure_entropies, read_filters, scale_filters
from descend.interpret.grad_cam import grad_cam
from descend.interpret.gradients import saliency
from descend.interpret.layers import as_maps, feature_maps, find_last_maps, list_convolutions, list_maps
from descend.interpret.overlay import overlay_heat, rescale_heat
from descend.interpret.representations import project, representations
from descend.interpret.rollout import rollout_heat
from descend.nn.attention.maps import attention_maps
from descend.theory.network import layers
from descend.views.attempts import show_each
from descend.views.classes import show_classification
from descend.views.pixels import channels_last
from descend.weights.pretrained import Pretrained

SHOWN = 12  # images that are shown
FILTERS, MAPS, HEATED, MAPPED = 32, 8, 8, 400  # how many are shown
ROWS, CHANGED = 5, 7  # of the contact sheet: images, and augmentations of each


def show_predictions(model: nn.Module, splits: Splits, batches: Iterable[Batch]) -> list[Exhibit]:
    """The scores of the classes, and the images where the model is most wrong."""
    where, images, labels = next(model.parameters()).device, splits.valid, splits.labels
    p = torch.cat([model(b["x"].to(where)).softmax(dim=-1).cpu() for b in batches])
    predicted, worst = p.argmax(dim=-1), rank_lead(p, images.y)[:SHOWN]
    captions = [
        f"{name_image(splits, int(images.ids[i]))}: {labels[int(images.y[i])]}, "
        + ("predicted " if predicted[i] != images.y[i] else "correct, ")
        + f"{labels[int(predicted[i])]} ({float(p[i].max()):.0%})"
        for i in worst.tolist()
    ]
    return [
        *show_classification(p, images.y, labels, "images"),
        Exhibit(
            "images",
            "Most confident mistakes, then least certain predictions",
            {"images": channels_last(images.x[worst]), "captions": captions},
            "Validation images, ordered by how far the best wrong class leads.",
        ),
    ]


def rank_lead(p: Tensor, y: Tensor) -> Tensor:
    """The rows, by how far the best wrong class leads the right one; below 0 where the answer is right."""
    true = y[:, None]
    lead = p.scatter(1, true, 0).amax(dim=1) - p.gather(1, true).squeeze(1)
    return lead.argsort(descending=True, stable=True)


def name_image(splits: Splits, record: int) -> str:
    """An image's name, e.g. its file."""
    return splits.names[record] if splits.names else f"record {record}"


def show_augmentation(splits: Splits, augment: Augment) -> Exhibit:
    """A contact sheet: training images, each with a few of its augmentations."""
    train = splits.train
    rows = torch.linspace(0, len(train.y) - 1, min(ROWS, len(train.y))).long()
    x = train.x[rows]
    shown = torch.stack([x, *(augment.augment_seeded(x, seed) for seed in range(CHANGED))], 1)
    captions = [f"{name_image(splits, int(train.ids[i]))}: {splits.labels[int(train.y[i])]}" for i in rows.tolist()]
    return Exhibit(
        "sheet",
        "Augmented training images",
        {"rows": channels_last(shown), "captions": captions},
        "The original first, then augmented versions.",
    )


def show_layers(model: Pretrained, image: tuple[int, int, int]) -> Exhibit:
    """Shapes, parameters, FLOPs and receptive fields."""
    one = torch.zeros(1, *image, device=next(model.parameters()).device)
    note = "Layers with weights, for one image. A multiplication and an addition count as two FLOPs."
    return Exhibit("table", "Layers", layers(model, one).weighty.table(), note)


def look_inside(model: Any, images: Images, prepare: Preprocessing) -> list[Exhibit]:
    """The exhibits that this model can have, made of validation images."""
    where = next(model.parameters()).device
    rows = torch.arange(min(MAPPED, len(images.y)))
    pixels, y = images.x[rows], images.y[rows]
    x = prepare(pixels).to(where)
    makers: dict[str, Callable[[], Exhibit]] = {}
    if list_convolutions(model):
        makers = {
            "First-layer filters": lambda: show_filters(model),
            "Feature maps": lambda: show_feature_maps(model, x[:1]),
        }
    makers["Class activation heat maps"] = lambda: show_heat(model, x, pixels, y, prepare.labels)
    makers["Embeddings"] = lambda: show_representations(model, x, y, prepare.labels)
    return show_each(makers)


def find_heat(model: nn.Module, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, str]:
    """Heat (b, h, w) for a class, and how it was found.

    Grad-CAM at the last convolution whose maps still have 4×4 places; attention rollout in a transformer, whose one
    convolution cuts the patches; the gradient at the pixels where there is neither.
    """
    square = [a for a in attention_maps(model, x).values() if a.shape[-1] == a.shape[-2]]
    if square and len(list_convolutions(model)) < 2 and all(a.shape == square[0].shape for a in square):
        heat = rollout_heat(square, *x.shape[-2:])
        return F.interpolate(heat[:, None], size=x.shape[-2:], mode="bilinear")[:, 0], "attention rollout"
    layer = find_last_maps(model, x) if len(list_convolutions(model)) > 1 else ""
    if layer:
        return grad_cam(model, x, y, layer), f"Grad-CAM at layer {layer}"
    return saliency(model, x, y), "gradient at the pixels"


def show_filters(model: nn.Module) -> Exhibit:
    """The filters of the first convolution, and the entropy of their spectra."""
    found = read_filters(model)
    shown = scale_filters(found)[:FILTERS]
    note = f"Layer {list_convolutions(model)[0]}: {len(found)} filters of {'×'.join(map(str, found.shape[1:]))}."
    if found[0, 0].numel() > 3:
        noise = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
        mine, other = (float(measure_entropies(part.cpu()).mean()) for part in (found, noise))
        note += f" Entropy of their spectra {mine:.2f}; random filters have {other:.2f}, a single wave 0."
    content = {"images": channels_last(shown), "captions": [str(k) for k in range(len(shown))]}
    return Exhibit("images", "First-layer filters", content, note)


def show_feature_maps(model: nn.Module, x: Tensor) -> Exhibit:
    """The strongest maps of the first, the middle and the last convolution for one image."""
    sizes = list_maps(model, x)
    names = [name for name, size in sizes.items() if min(size) >= 4] or list(sizes)
    chosen = list(dict.fromkeys(names[i] for i in (0, len(names) // 2, -1)))
    shown, captions = [], []
    for name in chosen:
        a = as_maps(feature_maps(model, name, x), *x.shape[-2:])[0].clamp_min(0)
        best = a.flatten(1).amax(dim=1).argsort(descending=True)[:MAPS]
        large = F.interpolate(rescale_heat(a[best])[None], size=x.shape[-2:], mode="nearest")[0]
        shown.append(large.cpu())
        captions += [f"{name}, channel {int(k)}" for k in best]
    content = {"images": torch.cat(shown).numpy(), "captions": captions}
    return Exhibit("images", "Feature maps", content, "Activations after the ReLU, for the first validation image.")


def show_heat(model: nn.Module, x: Tensor, pixels: Tensor, y: Tensor, labels: tuple[str, ...]) -> Exhibit:
    """Where the model looked when it was most wrong: the image, and the heat for the predicted class."""
    with torch.no_grad():
        p = model(x).softmax(dim=1).cpu()
    predicted = p.argmax(dim=1)
    worst = rank_lead(p, y)[:HEATED]
    heat, how = find_heat(model, x[worst.to(x.device)], predicted[worst].to(x.device))
    over = overlay_heat(pixels[worst], heat.cpu())
    plain = pixels[worst].mean(dim=1, keepdim=True).expand(-1, 3, -1, -1) if pixels.shape[1] == 1 else pixels[worst]
    both = torch.stack([plain, over], dim=1).flatten(0, 1)
    captions = []
    for i in worst.tolist():
        right = "correct" if predicted[i] == y[i] else "wrong"
        said = f"evidence for {labels[int(predicted[i])]} ({float(p[i].max()):.0%}, {right})"
        captions += [f"true class: {labels[int(y[i])]}", said]
    content = {"images": channels_last(both), "captions": captions}
    note = (
        "The most confident mistakes, then the least certain predictions: each image, and where the evidence for the "
        f"predicted class lies; red counts most ({how})."
    )
    return Exhibit("images", "Class activation heat maps", content, note)


def show_representations(model: nn.Module, x: Tensor, y: Tensor, labels: tuple[str, ...]) -> Exhibit:
    """The vectors before the head in two dimensions, a colour for each class."""
    by = "tsne" if len(x) > 30 else "pca"
    points = project(representations(model, x), by)  # type: ignore[arg-type]
    content = {label: points[y == k].tolist() for k, label in enumerate(labels) if bool((y == k).any())}
    note = (
        "t-SNE: near points are near in the model; distances between clusters are not meaningful."
        if by == "tsne"
        else "Principal components."
    )
    return Exhibit("points", "Embeddings", content, f"Validation images, by the vectors before the head. {note}")
