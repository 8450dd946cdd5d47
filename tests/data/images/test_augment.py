"""Augmentation: shapes and labels stay, seeds decide, whole pixels are exact, unsafe changes are left out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from descend.data.images.augment import (
    Augment,
    Colour,
    ColourBalance,
    Crop,
    Erase,
    Hue,
    Mirror,
    Shift,
    Transform,
    Turn,
    Upend,
    Zoom,
    rectangles,
    safe,
)
from descend.data.images.digits import load_digits_split
from descend.data.images.warp import Warped
from descend.data.streams.arrays import Shuffled
from descend.errors import Mistake
from descend.losses.classification import cross_entropy
from descend.optim.rules import Adam
from tests.close import close

pytestmark = pytest.mark.system("data-augmentation")

ALL: list[Transform] = [
    Shift(2),
    Crop(0.6),
    Mirror(),
    Upend(),
    Turn(20.0),
    Zoom(0.2),
    Colour(0.3, 0.3, 0.3),
    ColourBalance(0.2),
    Hue(0.5),
    Erase(0.2),
]
X = torch.rand(5, 3, 8, 6, generator=torch.Generator().manual_seed(0))


def same(x: Tensor, *values: float) -> Tensor:
    """The same random numbers for every image."""
    return torch.tensor(values).expand(len(x), len(values))


@pytest.mark.system("data-augmentation", "composable")
@pytest.mark.parametrize("transform", ALL, ids=lambda t: type(t).__name__)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(3, 9), st.integers(3, 9), st.integers(0, 99))
def test_shapes_stay_and_images_do_not_mix(transform: Transform, b: int, c: int, h: int, w: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    x, u = torch.rand(b, c, h, w, generator=random), 2 * torch.rand(b, transform.chance, generator=random) - 1
    out = transform(x, u)
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    assert 0 <= out.min() <= out.max() <= 1 + 1e-5
    close(out[:1] + 1, transform(x[:1], u[:1]) + 1)  # a batch is its images, one by one


@pytest.mark.system("data-augmentation", "flip-twice")
@pytest.mark.parametrize("flip", [Mirror(), Upend()])
def test_flip_twice_is_nothing(flip: Transform) -> None:
    once = flip(X, same(X, -1.0))
    assert not torch.equal(once, X)
    assert torch.equal(flip(once, same(X, -1.0)), X)
    assert torch.equal(flip(X, same(X, 1.0)), X)
    assert torch.equal(Mirror()(X, same(X, -1.0)), X.flip(3))
    assert torch.equal(Upend()(X, same(X, -1.0)), X.flip(2))


def test_shift_is_pad_and_crop() -> None:
    padded = nn.functional.pad(X, (2, 2, 2, 2))
    seen = set()
    for i, u in enumerate(torch.linspace(-0.99, 0.99, 5)):
        moved = Shift(2)(X, torch.stack([u, u.neg()]).expand(5, 2))
        assert torch.equal(moved, padded[:, :, i : i + 8, 4 - i : 10 - i])
        seen.add(moved.sum().item())
    assert len(seen) == 5
    u = 2 * torch.rand(20_000, 2, generator=torch.Generator().manual_seed(0)) - 1
    dots = torch.zeros(20_000, 1, 5, 5)
    dots[:, :, 2, 2] = 1
    counts = Shift(2)(dots, u).sum((0, 1))
    assert ((counts - 800).abs() < 5 * 800**0.5).all()  # every shift equally often


def test_crop() -> None:
    close(Crop(0.5)(X, same(X, -1.0, 0.0, 0.0)), X)  # the whole image
    ramp = torch.arange(8.0).expand(1, 1, 8, 8) + 0.5
    half = Crop(0.5)(ramp, same(ramp, 1.0, -1.0, 0.0))  # the left half, twice as wide
    close(half[0, 0, 0, 1:], (torch.arange(8.0) / 2 + 0.25)[1:])
    assert half.max() <= 4.5


def test_a_quarter_turn_and_zoom() -> None:
    square = X[:, :, :6]
    close(Turn(90.0)(square, same(square, 1.0)), torch.rot90(square, 1, (-2, -1)))
    close(Zoom(0.5)(X, same(X, 0.0)), X)
    assert Zoom(1.0)(torch.ones(1, 1, 8, 8), torch.ones(1, 1)).mean() < 0.5  # smaller, black around it


def test_colour() -> None:
    x = 0.25 + X / 2
    close(Colour()(x, same(x, 1.0, 1.0, 1.0)), x)
    close(Colour(brightness=0.2)(x, same(x, -1.0, 0.0, 0.0)), 0.8 * x)
    more = Colour(contrast=0.2)(x, same(x, 0.0, 1.0, 0.0))
    close(more.std((1, 2, 3)), 1.2 * x.std((1, 2, 3)))
    close(more.mean((1, 2, 3)), x.mean((1, 2, 3)))
    grey = Colour(saturation=1.0)(x, same(x, 0.0, 0.0, -1.0))
    close(grey, x.mean(1, keepdim=True).expand_as(x))
    balanced = ColourBalance(0.5)(x, same(x, -1.0, 0.0, 0.2))
    close(balanced, (x * torch.tensor([0.5, 1.0, 1.1])[:, None, None]))
    assert ColourBalance(0.5)(x[:, :1], same(x, 0.0, 1.0, 1.0)).shape == (5, 1, 8, 6)


def test_erase() -> None:
    x = torch.ones(3, 1, 8, 8)
    erased = Erase(0.25)(x, same(x, 0.0, 0.0))
    assert (erased == 0).sum((1, 2, 3)).tolist() == [16, 16, 16]
    assert torch.equal(erased[0, 0, 2:6, 2:6], torch.zeros(4, 4))
    assert (Erase(0.25)(x, same(x, 1.0, 1.0)) == 0).sum((1, 2, 3)).tolist() == [4, 4, 4]  # cut off at the corner
    assert rectangles(8, 8, torch.zeros(1), torch.zeros(1, 2)).sum() == 0
    assert rectangles(5, 7, torch.ones(1), torch.zeros(1, 2)).all()


@pytest.mark.system("data-augmentation", "composable")
def test_composed_and_seeded() -> None:
    augment = Augment(tuple(ALL))
    assert augment.chance == 18
    first = augment.augment_seeded(X, 3)
    assert torch.equal(first, augment.augment_seeded(X, 3))
    assert not torch.equal(first, augment.augment_seeded(X, 4))
    u = 2 * torch.rand(5, 3, generator=torch.Generator().manual_seed(1)) - 1
    two = Augment((Mirror(), Augment((Shift(1),))))
    close(two(X, u), Shift(1)(Mirror()(X, u[:, :1]), u[:, 1:]))
    assert torch.equal(Augment(()).augment_seeded(X, 0), X)


@pytest.mark.system("data-augmentation", "composable")
def test_in_a_stream() -> None:
    """Labels and ids stay with their images, and the cut into batches changes nothing."""
    augment = Augment((Mirror(), Shift(1)))
    arrays = {"x": torch.rand(12, 1, 4, 4, generator=torch.Generator().manual_seed(0)), "y": torch.arange(12)}
    whole, cut = (Warped(Shuffled(arrays, b, seed=5, chance=augment.chance), augment) for b in (12, 4))
    one, parts = next(whole), [next(cut) for _ in range(3)]
    assert torch.equal(one["x"], torch.cat([p["x"] for p in parts]))
    assert torch.equal(one["y"], one["ids"])
    assert not torch.equal(one["x"], arrays["x"][one["ids"]])
    assert not torch.equal(one["x"][one["y"].argsort()], (second := next(whole))["x"][second["y"].argsort()])


@pytest.mark.system("data-augmentation", "exclusion")
def test_unsafe_transforms_are_left_out() -> None:
    """DLN: a 6 upside down is a 9."""
    kept = safe([*ALL, Turn(180.0)], "digits").transforms
    assert not any(isinstance(t, Mirror | Upend) for t in kept)
    assert [t.degrees for t in kept if isinstance(t, Turn)] == [20.0]
    assert len(kept) == len(ALL) - 2
    assert Mirror() in safe(ALL, "photographs").transforms
    assert Upend() not in safe(ALL, "photographs").transforms
    assert safe(ALL, "satellite").transforms == tuple(ALL)
    with pytest.raises(Mistake, match="Did you mean 'digits'"):
        safe(ALL, "digit")
    six = torch.tensor([[1.0, 0], [1, 1], [1, 1]])[None, None]
    nine = torch.tensor([[1.0, 1], [1, 1], [0, 1]])[None, None]
    turned = Upend()(Mirror()(six, same(six, -1.0)), same(six, -1.0))
    assert torch.equal(turned, nine)


@pytest.mark.system("data-augmentation", "robustness")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_augmentation_makes_a_classifier_hold_against_shifts(seed: int) -> None:
    """60 digits to learn from: with shifts, the accuracy on shifted test digits rises."""
    splits = load_digits_split()
    x, y, test = splits.train.x[:60], splits.train.y[:60], splits.test
    moved = Augment((Shift(1),)).augment_seeded(test.x, 0)
    accuracy = {}
    for name, augment in (("plain", Augment(())), ("shifted", Augment((Shift(1),)))):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = Adam(lr=0.01).build(model)
        for step in range(150):
            optimizer.zero_grad()
            cross_entropy(model(augment.augment_seeded(x, step)), y).mean().backward()
            optimizer.step()
        accuracy[name] = float((model(moved).argmax(1) == test.y).double().mean())
    assert accuracy["shifted"] > accuracy["plain"] + 0.15


def test_a_third_of_the_circle_moves_the_channels_on() -> None:
    close(Hue(1 / 3)(X, same(X, 1.0)), X.roll(1, 1))  # red becomes green, green blue, blue red
    close(Hue(1 / 3)(X, same(X, -1.0)), X.roll(-1, 1))
    close(Hue(0.5)(X, same(X, 0.0)), X)


def test_hue_keeps_brightness_and_distance_from_grey() -> None:
    pale = 0.5 + 0.2 * (X - 0.5)  # nothing is clamped
    turned = Hue(0.5)(pale, torch.tensor([[-1.0], [-0.6], [0.1], [0.5], [0.9]]))
    assert (turned - pale).abs().amax((1, 2, 3)).min() > 0.01
    close(turned.mean(1), pale.mean(1))
    close((turned - turned.mean(1, keepdim=True)).norm(dim=1), (pale - pale.mean(1, keepdim=True)).norm(dim=1))
    assert torch.equal(Hue(0.5)(X[:, :1], same(X, 0.7)), X[:, :1])  # no hue without colours
