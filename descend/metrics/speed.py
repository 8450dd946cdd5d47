"""How fast a model answers on this machine, and what it needs: latency, images a second, parameters, FLOPs.

Latency is the median of several calls with one input, after a few calls that are not counted; images a second follow
from it. A median is told, not the best call: it is what a user waits for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.theory.detector_cost import count_flops_by_part


class ModelSpeed(NamedTuple):
    latency: float
    """ms for the whole input."""
    fps: float
    """Images a second."""
    parameters: int
    flops: dict[str, int]
    """Of each part of the model."""


def measure_speed(
    model: nn.Module, x: Tensor, answer: Callable[[Tensor], Any] | None = None, calls: int = 10, warm: int = 2
) -> ModelSpeed:
    """Of images x (b, c, h, w); `answer` is what is timed (also decoding, suppression), by default the model alone."""
    if calls < 1 or not len(x):
        raise Mistake("speed is measured on at least one image and one call")
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            times = [measure_call(answer or model, x) for _ in range(warm + calls)][warm:]
            parts = count_flops_by_part(model, x)
    finally:
        model.train(training)
    latency = 1000 * median(times)
    return ModelSpeed(latency, len(x) * 1000 / latency, sum(p.numel() for p in model.parameters()), parts)


def measure_call(answer: Callable[[Tensor], Any], x: Tensor) -> float:
    """Seconds of one call, until the device is done."""
    began = time.perf_counter()
    answer(x)
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    return time.perf_counter() - began
