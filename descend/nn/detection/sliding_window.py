"""A sliding-window detector: any classifier, asked about a window at every position and scale.

    positions of a window of side w in an image H × W, step s:   (⌊(H − w)/s⌋ + 1) (⌊(W − w)/s⌋ + 1)
    scales f: the image is resized by f, so that the same window sees an object of size w / f
    an object: a window whose class, not the background, is sure enough; NMS of each class

Every window is a pass of the classifier (`WindowDetector`). Where the classifier is convolutional without padding and
its maps shrink by s, windows share all their work: the linear head becomes a convolution over the maps of the whole
image (`DenseWindows`), and the answers are the same.

Systems: sliding-window-detector
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.ops.nms import keep_best


class WindowsFound(NamedTuple):
    """What is said of n windows of b images."""

    logits: Tensor
    """(b, n, K + 1)"""
    boxes: Tensor
    """(n, 4) in pixels of the input."""


def count_windows(height: int, width: int, window: int, step: int) -> tuple[int, int]:
    """Positions down and across."""
    if min(height, width) < window:
        raise Mistake(f"an image of {height}×{width} has no place for a window of {window}; scale it up")
    return (height - window) // step + 1, (width - window) // step + 1


def place_windows(height: int, width: int, window: int, step: int) -> Tensor:
    """Boxes x0, y0, x1, y1 of all windows, row by row (n, 4)."""
    rows, columns = count_windows(height, width, window, step)
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    corner = torch.stack([x, y], dim=-1).view(-1, 2) * float(step)
    return torch.cat([corner, corner + window], dim=1)


def cut_windows(x: Tensor, window: int, step: int) -> Tensor:
    """All windows of images (b, c, h, w) -> (b, n, c, window, window)"""
    count_windows(x.shape[2], x.shape[3], window, step)
    return x.unfold(2, window, step).unfold(3, window, step).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)


class SlidingWindows(nn.Module):
    """images (b, c, h, w) -> logits of every window at every scale; `background` is the class of no object. What says
    the class of the windows at one scale is `score`."""

    def __init__(self, window: int, step: int, scales: Sequence[float] = (1.0,), background: int = 0, tau: float = 0.3):
        super().__init__()
        self.window, self.step, self.scales = window, step, tuple(scales)
        self.background, self.tau, self.stride = background, tau, 1

    def score(self, x: Tensor) -> Tensor:
        """Logits (b, n, K + 1) of the windows of images at one scale."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> WindowsFound:
        logits, boxes = [], []
        for scale in self.scales:
            y = x if scale == 1 else F.interpolate(x, scale_factor=scale, mode="bilinear", antialias=scale < 1)
            logits.append(self.score(y))
            ratio = torch.tensor([x.shape[3] / y.shape[3], x.shape[2] / y.shape[2]] * 2)
            boxes.append(place_windows(y.shape[2], y.shape[3], self.window, self.step) * ratio)
        return WindowsFound(torch.cat(logits, dim=1), torch.cat(boxes).to(x.device))

    def decode(self, found: WindowsFound, least: float = 0.001, most: int = 100) -> Boxes:
        """The windows whose best class is an object, best first, after NMS of each class; classes are counted without
        the background."""
        p, classes = found.logits.softmax(dim=-1).max(dim=-1)
        after = (classes > self.background).long()
        classes = torch.where(classes == self.background, -1, classes - after)
        return keep_best(found.boxes.expand(len(p), -1, -1), p, classes, self.tau, least, most)


class WindowDetector(SlidingWindows):
    """Window by window: the classifier takes (n, c, window, window) and gives logits (n, K + 1)."""

    def __init__(self, classifier: nn.Module, window: int, step: int, scales: Sequence[float] = (1.0,)):
        super().__init__(window, step, scales)
        self.classifier = classifier

    def score(self, x: Tensor) -> Tensor:
        windows = cut_windows(x, self.window, self.step)
        return self.classifier(windows.flatten(0, 1)).unflatten(0, windows.shape[:2])


class DenseWindows(SlidingWindows):
    """All windows in one pass: the maps of the whole image, and the linear head as a convolution over them. The trunk
    has no padding and shrinks by the step; the head takes a window's maps, flattened."""

    def __init__(self, trunk: nn.Module, head: nn.Linear, window: int, step: int, scales: Sequence[float] = (1.0,)):
        super().__init__(window, step, scales)
        self.trunk, self.head = trunk, head

    def score(self, x: Tensor) -> Tensor:
        rows, columns = count_windows(x.shape[2], x.shape[3], self.window, self.step)
        maps = self.trunk(x)
        side = maps.shape[3] - columns + 1
        if maps.shape[2] - rows + 1 != side or maps.shape[1] * side**2 != self.head.in_features:
            raise Mistake(f"the trunk does not shrink by the step {self.step}, or it pads: windows share nothing then")
        kernel = self.head.weight.view(self.head.out_features, maps.shape[1], side, side)
        return F.conv2d(maps, kernel, self.head.bias).flatten(2).transpose(1, 2)
