from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.metrics.speed import measure_speed
from descend.models import yolo_v8


class Sleeper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(0.02)
        return self.layer(x)


def test_latency_of_a_known_wait() -> None:
    model = Sleeper().train()
    speed = measure_speed(model, torch.rand(2, 3, 8, 8), calls=3, warm=0)
    assert 20 <= speed.latency < 200
    assert speed.fps == pytest.approx(2000 / speed.latency)
    assert speed.parameters == 16
    assert speed.flops == {"layer": 2 * 2 * 64 * 3 * 4}
    assert model.training


@pytest.mark.system("detector-benchmarks", "measure")
def test_a_detector_with_its_decoding() -> None:
    model = yolo_v8.YoloV8(yolo_v8.TINY)
    x, asked = torch.rand(1, 3, 64, 64), []

    def answer(x: Tensor) -> None:
        asked.append(model.training)
        model.decode(model(x))

    speed = measure_speed(model, x, answer, calls=3)
    assert asked == [False] * 5
    assert speed.latency > 0
    assert {"stem", "stages", "neck", "head"} <= set(speed.flops)
    assert speed.parameters == sum(p.numel() for p in model.parameters())


def test_what_is_refused() -> None:
    with pytest.raises(Mistake, match="at least one image"):
        measure_speed(Sleeper(), torch.rand(0, 3, 8, 8))
