"""Sliding windows: how many, what they find, and that one convolutional pass says the same."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.errors import Mistake
from descend.nn.detection.sliding_window import DenseWindows, WindowDetector, count_windows, cut_windows, place_windows
from descend.ops.boxes import box_iou
from tests.close import close


class Square(nn.Module):
    """A classifier of 12×12 pixels without weights: 0 nothing, 1 bright in the first channel, 2 in the second."""

    def forward(self, x: Tensor) -> Tensor:
        bright = x[:, :2].mean(dim=(2, 3))
        return 20 * torch.cat([torch.full_like(bright[:, :1], 0.6), bright], dim=1)


@pytest.mark.system("sliding-window-detector")
@pytest.mark.system("sliding-window-detector", "windows")
@pytest.mark.parametrize(("height", "width", "window", "step"), [(40, 56, 12, 4), (13, 13, 12, 1), (30, 41, 8, 7)])
def test_the_number_of_windows(height: int, width: int, window: int, step: int) -> None:
    rows, columns = count_windows(height, width, window, step)
    assert rows == len(range(0, height - window + 1, step))
    assert columns == len(range(0, width - window + 1, step))
    boxes = place_windows(height, width, window, step)
    x = torch.arange(float(height * width)).view(1, 1, height, width)
    windows = cut_windows(x, window, step)
    assert len(boxes) == windows.shape[1] == rows * columns
    for box, crop in zip(boxes.long().tolist(), windows[0], strict=True):
        assert torch.equal(crop, x[0, :, box[1] : box[3], box[0] : box[2]])


@pytest.mark.system("sliding-window-detector", "finds", "any-classifier", "windows")
def test_planted_objects_are_found_at_every_scale() -> None:
    """A bright square of the window's size, and one twice as large that only the halved image shows whole."""
    x = torch.zeros(1, 3, 48, 64)
    x[0, 0, 8:20, 40:52] = 1
    x[0, 1, 16:40, 8:32] = 1
    model = WindowDetector(Square(), 12, 4, (1.0, 0.5))
    found = model(x)
    assert found.logits.shape[1] == len(found.boxes) == 10 * 14 + 4 * 6
    objects = model.decode(found, least=0.9)
    best = {int(c): box for c, box in zip(reversed(objects.classes[0]), reversed(objects.boxes[0]), strict=True)}
    assert set(best) == {0, 1}
    assert box_iou(best[0], torch.tensor([40.0, 8, 52, 20])) > 0.99
    large = [b for b, c in zip(objects.boxes[0], objects.classes[0], strict=True) if c == 1]
    assert max(box_iou(b, torch.tensor([8.0, 16, 32, 40])) for b in large) > 0.99
    assert not (model.decode(model(torch.zeros(1, 3, 48, 64)), 0.5).classes >= 0).any()


def make_trunk() -> tuple[nn.Module, nn.Linear, nn.Module]:
    """A convolutional network without padding for windows of 16 pixels, with stride 4, and a linear head."""
    torch.manual_seed(0)
    trunk = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 2),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 8, 2),
    ).double()
    head = nn.Linear(8 * 2 * 2, 4).double()
    return trunk, head, nn.Sequential(trunk, nn.Flatten(), head)


@pytest.mark.system("sliding-window-detector", "convolutional", "any-classifier")
def test_one_pass_says_the_same() -> None:
    trunk, head, classifier = make_trunk()
    x = torch.randn(2, 3, 40, 52, dtype=torch.float64)
    for scales in ((1.0,), (1.0, 0.5)):
        one, all_at_once = WindowDetector(classifier, 16, 4, scales), DenseWindows(trunk, head, 16, 4, scales)
        close(all_at_once(x).logits, one(x).logits)
        assert torch.equal(all_at_once(x).boxes, one(x).boxes)
    for ours, theirs in zip(all_at_once.decode(all_at_once(x)), one.decode(one(x)), strict=True):
        close(ours, theirs)


@pytest.mark.system("sliding-window-detector", "cost")
def test_what_windows_cost() -> None:
    """Windows of 16 pixels every 4: each pixel is seen by 16 of them. Multiplications and seconds of both."""
    trunk, head, classifier = make_trunk()
    x = torch.randn(1, 3, 96, 96, dtype=torch.float64)
    work, seconds = [], []
    for model in (WindowDetector(classifier, 16, 4), DenseWindows(trunk, head, 16, 4)):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(x)
        work.append(counter.get_total_flops())
        times = []
        for _ in range(5):
            start = time.perf_counter()
            with torch.no_grad():
                model(x)
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    assert work[0] > 8 * work[1]
    assert seconds[0] > 2 * seconds[1]


def test_what_cannot_be_shared_is_refused() -> None:
    trunk, head, _ = make_trunk()
    with pytest.raises(Mistake, match="does not shrink by the step 3"):
        DenseWindows(trunk, head, 16, 3)(torch.zeros(1, 3, 40, 40, dtype=torch.float64))
    with pytest.raises(Mistake, match="no place for a window"):
        count_windows(10, 40, 12, 4)
