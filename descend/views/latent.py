"""What an autoencoder shows: reconstructions, a map of its codes, walks between images, and what its units do."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from descend.classic.pca import PCA
from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.ops.latent import gaussian_kl_units, interpolate, latent_grid, move_along
from descend.views.pixels import channels_last
from descend.views.samples import first_images

SHOWN, STEPS, WALKS, MAPPED, UNITS, GRID = 8, 9, 4, 1000, 6, 10
REACH = 2.0  # standard deviations that a unit is moved from its middle


def encode_first(model: Any, splits: Splits, prepare: Preprocessing, count: int) -> tuple[Tensor, Tensor]:
    """The first validation images as the model reads them, and their codes (n, k)."""
    x = prepare.standardize(first_images(splits.valid, count)).to(next(model.parameters()).device)
    return x, model.features(x)


def show_reconstructions(
    model: Any, splits: Splits, prepare: Preprocessing, corruption: nn.Module | None = None
) -> Exhibit:
    """Validation images, what the model makes of them, and PCA with as many numbers."""
    x = prepare.standardize(first_images(splits.valid, SHOWN))
    where = next(model.parameters()).device
    rows, names = [x], ["image"]
    given = x
    if corruption is not None:
        u = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
        given = corruption(x, u)
        rows, names = [*rows, given], [*names, "spoilt"]
    rows, names = [*rows, model.reconstruct(given.to(where)).cpu()], [*names, "reconstruction"]
    train = prepare.standardize(first_images(splits.train, MAPPED)).flatten(1)
    keep = min(model.config.latent, *train.shape)
    pca = PCA.fit(train, keep)
    rows.append(pca.inverse(pca.transform(given.flatten(1))).view_as(x))
    content = {"rows": channels_last(prepare.restore(torch.stack(rows).flatten(0, 1)).unflatten(0, (-1, len(x)))),
               "captions": [*names, f"PCA with {keep} numbers"]}  # fmt: skip
    return Exhibit("sheet", "Reconstructions", content, "Validation images, best checkpoint.")


def show_latent_map(model: Any, splits: Splits, prepare: Preprocessing) -> Exhibit:
    """Codes of validation images in a plane, by class: the two units, or the first two principal components."""
    _, z = encode_first(model, splits, prepare, MAPPED)
    z, y = z.cpu().double(), splits.valid.y[: len(z)]
    flat = z if z.shape[1] == 2 else PCA.fit(z, 2).transform(z)
    names = splits.labels or ("image",)
    content = {name: flat[y == k].tolist() for k, name in enumerate(names) if (y == k).any()}
    how = "the two units" if z.shape[1] == 2 else f"the first two principal components of {z.shape[1]} numbers"
    return Exhibit("points", "Map of the codes", content, f"Validation images; the axes are {how}.")


def show_walks(model: Any, splits: Splits, prepare: Preprocessing) -> Exhibit:
    """Decoded points of straight lines between the codes of two images."""
    x, z = encode_first(model, splits, prepare, 2 * WALKS)
    walks = max(1, len(z) // 2)  # fewer where there are few images
    path = interpolate(z[:walks], z[-walks:], STEPS).transpose(0, 1)
    images, ends = model.mean(model.decode(path)).cpu(), x[-walks:].cpu()
    rows = torch.stack([torch.cat([x[i : i + 1].cpu(), images[i], ends[i : i + 1]]) for i in range(walks)])
    flat = prepare.restore(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
    content = {"rows": channels_last(flat), "captions": [f"walk {i + 1}" for i in range(len(rows))]}
    note = "First and last are validation images; between them, decoded codes in equal steps."
    return Exhibit("sheet", "Walks through the latent space", content, note)


def show_units(model: Any, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
    """KL of each unit, and what moving the most used ones does; for a code of two numbers, the whole plane."""
    x, _ = encode_first(model, splits, prepare, MAPPED)
    mu, log_var = model.encode(x)
    kl = gaussian_kl_units(mu, log_var).mean(0).cpu()
    order = kl.argsort(descending=True)
    bars = {"x": list(range(1, len(kl) + 1)), "y": kl[order].tolist(), "x_label": "unit, by use", "y_label": "KL, nats"}
    note = f"{int((kl > 0.01).sum())} of {len(kl)} units carry more than 0.01 nats. All at 0 is posterior collapse."
    found = [Exhibit("curve", "Information in each latent unit", bars, note)]
    if len(kl) == 2:
        images = prepare.restore(model.mean(model.decode(latent_grid(GRID, REACH).to(x.device))).cpu())
        plane = {"rows": channels_last(images.unflatten(0, (GRID, GRID))), "captions": [""] * GRID}
        return [*found, Exhibit("sheet", "The latent plane, decoded", plane, "From −2 to 2 along both units.")]
    multiples = torch.linspace(-REACH, REACH, STEPS, device=x.device)
    rows = []
    for unit in order[:UNITS].tolist():
        start = mu[:1].clone()
        start[:, unit] = 0
        direction = torch.zeros_like(mu[0])
        direction[unit] = 1
        rows.append(model.mean(model.decode(move_along(start, direction, multiples)[:, 0])).cpu())
    images = prepare.restore(torch.stack(rows).flatten(0, 1)).unflatten(0, (len(rows), STEPS))
    captions = [f"unit {u}" for u in order[:UNITS].tolist()]
    content = {"rows": channels_last(images), "captions": captions}
    return [*found, Exhibit("sheet", "One unit moved, the others held", content, "From −2 to 2 standard deviations.")]
