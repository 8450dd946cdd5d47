"""RandAugment's operations against Pillow's, and the draw of operations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from descend.data.images.augment import Augment
from descend.data.images.pixels import to_tensor
from descend.data.images.presets import SETS, Amounts, augmentation
from descend.data.images.randaugment import (
    OPERATIONS,
    RandAugment,
    apply_operations,
    autocontrast,
    blend,
    contrast,
    equalize,
    grey,
    posterize,
    rotate,
    shear,
    smooth,
    solarize,
    translate,
)
from descend.errors import Mistake
from tests.close import close
from tests.data.photos import pixels

pytestmark = pytest.mark.system("data-augmentation")

NOISE = np.random.default_rng(0).integers(0, 30, (40, 30, 3), dtype=np.uint8)
IMAGE = Image.fromarray(pixels(3, 40, 30) // 2 + 40 + NOISE)
X = to_tensor(np.asarray(IMAGE))[None]


def one(value: float) -> Tensor:
    return torch.tensor([value])


def worst(ours: Tensor, theirs: Image.Image) -> float:
    """Largest difference, in steps of 1/255."""
    return float((ours[0] - to_tensor(np.asarray(theirs))).abs().max() * 255)


@pytest.mark.parametrize(
    ("ours", "theirs", "steps"),
    [
        (lambda: autocontrast(X), lambda: ImageOps.autocontrast(IMAGE), 1.0),
        (lambda: equalize(X), lambda: ImageOps.equalize(IMAGE), 0.01),
        (lambda: solarize(X, one(100 / 255)), lambda: ImageOps.solarize(IMAGE, 100), 0.01),
        (lambda: posterize(X, one(5)), lambda: ImageOps.posterize(IMAGE, 5), 0.01),
        (lambda: blend(X, grey(X).expand_as(X), one(1.7)), lambda: ImageEnhance.Color(IMAGE).enhance(1.7), 1.6),
        (lambda: blend(X, grey(X).expand_as(X), one(0.1)), lambda: ImageEnhance.Color(IMAGE).enhance(0.1), 1.6),
        (lambda: contrast(X, one(1.7)), lambda: ImageEnhance.Contrast(IMAGE).enhance(1.7), 1.6),
        (lambda: contrast(X, one(0.3)), lambda: ImageEnhance.Contrast(IMAGE).enhance(0.3), 1.6),
        (lambda: blend(X, 0 * X, one(1.6)), lambda: ImageEnhance.Brightness(IMAGE).enhance(1.6), 1.0),
        (lambda: blend(X, smooth(X), one(1.9)), lambda: ImageEnhance.Sharpness(IMAGE).enhance(1.9), 1.6),
        (lambda: blend(X, smooth(X), one(0.1)), lambda: ImageEnhance.Sharpness(IMAGE).enhance(0.1), 1.6),
    ],
)
def test_pillow_agrees(ours: Callable[[], Tensor], theirs: Callable[[], Image.Image], steps: float) -> None:
    """To Pillow's rounding of 8-bit numbers, which comes up to twice in a blend."""
    assert worst(ours(), theirs()) <= steps
    assert (ours() - X).abs().max() > 0.02


def test_turned_sheared_moved_images() -> None:
    inside = (slice(None), slice(8, -8), slice(8, -8))
    matrix = [(lambda: rotate(X, one(20.0)), lambda: IMAGE.rotate(20, Image.Resampling.BILINEAR))]
    shift = 0.25 * 20  # Pillow shears about the top: the centre of 40 rows is moved back
    data = (1, 0.25, -shift, 0, 1, 0)
    matrix += [
        (
            lambda: shear(X, one(0.25), one(0.0)),
            lambda: IMAGE.transform(IMAGE.size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR),
        )
    ]
    for ours, theirs in matrix:
        difference = (ours()[0] - to_tensor(np.asarray(theirs())))[inside]
        assert difference.abs().max() * 255 <= 2.5
        assert (ours()[0] - X[0])[inside].abs().max() > 0.05
    moved = translate(X, one(3 / 30), one(-2 / 40))
    close(moved[0, :, 2:, :-3], X[0, :, :-2, 3:])
    assert moved[0, :, :2].max() < 1e-5
    square = X[..., :30, :]
    close(rotate(square, one(90.0)), square.rot90(1, (2, 3)))


def test_flat_and_small_images_survive() -> None:
    flat = torch.full((2, 1, 4, 4), 0.5)
    for operation in OPERATIONS.values():
        found = operation(flat, torch.tensor([0.9, -0.9]))
        assert found.shape == flat.shape
        assert found.isfinite().all()
    close(equalize(flat), (flat * 255).round() / 255)
    close(autocontrast(flat), flat)


def test_strength_0_changes_only_what_has_no_strength() -> None:
    for name, operation in OPERATIONS.items():
        if name not in ("autocontrast", "equalize", "solarize"):
            close(operation(X, one(0.0)), X)


def test_each_image_gets_its_own_operations() -> None:
    """Alone or in a batch, the same; and over many draws every operation comes equally often, with both signs."""
    random = torch.Generator().manual_seed(0)
    x = torch.rand(64, 3, 10, 8, generator=random)
    u = 2 * torch.rand(64, 4, generator=random) - 1
    augment = RandAugment(2, 9.0)
    whole = augment(x, u)
    assert whole.min() >= 0
    assert whole.max() <= 1
    close(torch.cat([augment(x[i : i + 1], u[i : i + 1]) for i in range(64)]), whole)
    first = ((u[:, 0] + 1) / 2 * 14).long()
    name = list(OPERATIONS)[int(first[0])]
    sign = 0.9 if u[0, 1] >= 0 else -0.9
    close(apply_operations(x[:1], first[:1], one(sign)), OPERATIONS[name](x[:1], one(sign)))
    number = ((2 * torch.rand(14_000, generator=random) - 1 + 1) / 2 * 14).long()
    assert torch.bincount(number).min() > 850


def test_sets_and_amounts() -> None:
    assert augmentation("none", Amounts()) == ()
    names = {name: [type(t).__name__ for t in augmentation(name, Amounts())] for name in SETS}
    assert names["digits"] == ["Crop", "Turn"]
    assert names["photographs"] == ["Crop", "Mirror", "Colour"]
    assert names["randaugment"] == ["Crop", "Mirror", "RandAugment", "Erase"]
    [flip] = augmentation("none", Amounts(flip=0.25))
    x = torch.rand(4000, 1, 1, 2, generator=torch.Generator().manual_seed(0))
    flipped = (Augment((flip,)).augment_seeded(x, 1) != x).flatten(1).any(1).float().mean()
    assert abs(float(flipped) - 0.25) < 0.03
    assert [type(t).__name__ for t in augmentation("photographs", Amounts(crop=1.0, colour=0.0, erase=0.2))] == [
        "Mirror",
        "Erase",
    ]
    with pytest.raises(Mistake, match=r"--data.amounts.crop 0.0: give a number from 0.05 to 1"):
        augmentation("none", Amounts(crop=0.0))
    with pytest.raises(Mistake, match=r"RandAugment of 2 operations of strength 11"):
        RandAugment(2, 11)
