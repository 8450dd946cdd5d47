"""A sliding window with any network inside equals the fully convolutional network with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.convolution import patch_view
from descend.nn.convolution.patch_view import SlidingWindow, fully_convolutional, map_side, total_stride
from descend.theory.network import layers
from tests.close import close

SLUG = "patch-view-prediction"


def classifier(window: int) -> nn.Sequential:
    torch.manual_seed(0)
    side = (window - 2) // 2 - 1
    convs = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 2), nn.Tanh()
    dense = nn.Linear(5 * side**2, 7), nn.ReLU(), nn.Linear(7, 3)
    return nn.Sequential(*convs, nn.Flatten(), *dense).double()


@pytest.mark.system("patch-view-prediction", "equal", "dense-map", "cost")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("window", [8, 10])
def test_equals_the_fully_convolutional_network(window: int) -> None:
    f = classifier(window)
    assert total_stride(f) == 2
    x = torch.randn(2, 3, 15, 18, dtype=torch.float64)
    dense = SlidingWindow(f, window, step=total_stride(f))(x)
    whole = fully_convolutional(f, window)
    close(dense, whole(x))
    close(dense[1, :, 2, 3], f(x[1:, :, 4 : 4 + window, 6 : 6 + window])[0])
    assert sum(p.numel() for p in whole.parameters()) == sum(p.numel() for p in f.parameters())
    assert layers(whole, x).flops < layers(SlidingWindow(f, window, 2), x).flops / 2, "windows share their work"


@pytest.mark.system("patch-view-prediction", "dense-map")
@pytest.mark.system(SLUG)
def test_without_pools_every_pixel_has_an_answer() -> None:
    torch.manual_seed(0)
    f = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 2)).double()
    x = torch.randn(1, 1, 9, 9, dtype=torch.float64)
    close(SlidingWindow(f, 5)(x), fully_convolutional(f, 5)(x))
    assert SlidingWindow(f, 5)(x).shape == (1, 2, 5, 5)
    g = nn.Sequential(nn.Flatten(), nn.Linear(9, 2)).double()  # a dense network alone
    close(SlidingWindow(g, 3)(x), fully_convolutional(g, 3)(x))


@pytest.mark.system(SLUG)
def test_many_windows_are_cut_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = classifier(8), torch.randn(1, 3, 12, 12, dtype=torch.float64)
    whole = SlidingWindow(f, 8)(x)
    monkeypatch.setattr(patch_view, "AT_ONCE", 7)
    close(SlidingWindow(f, 8)(x), whole)


@pytest.mark.system("patch-view-prediction", "limit")
@pytest.mark.system(SLUG)
def test_padding_is_refused() -> None:
    f = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Flatten(), nn.Linear(2 * 25, 2))
    with pytest.raises(ValueError, match="Conv2d pads"):
        fully_convolutional(f, 5)


@pytest.mark.system(SLUG)
def test_the_side_of_the_map_is_that_of_one_window() -> None:
    seen: list[tuple[int, ...]] = []
    f = classifier(10)
    f[0].register_forward_hook(lambda _, given, __: seen.append(tuple(given[0].shape)))
    assert map_side(f, 10) == 3  # 10 - 2 = 8, pooled 4, less 1
    assert seen == [(1, 3, 10, 10)]
    assert map_side(nn.Sequential(nn.Flatten(), nn.Linear(9, 2)), 3) == 3
