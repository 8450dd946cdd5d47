"""What a smaller model is said to gain: measured, in turn, and not claimed where it is not there."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Batch
from descend.errors import Mistake
from descend.exports.compression import Shrinking, Side, measure_curve, say_gain, tabulate, time_calls, time_sides
from descend.models.lenet import LeNet, LeNetConfig
from descend.tasks.classify import Classify

SLUG = "inference-optimization"


def make() -> LeNet:
    torch.manual_seed(0)
    return LeNet(LeNetConfig(classes=3)).eval()


@pytest.mark.system(SLUG, "measured-curve")
@pytest.mark.system(SLUG)
def test_throughput_and_latency_over_the_batch() -> None:
    """A model that takes 2 ms a call and 0.1 ms an image: the throughput rises, and so does the wait."""

    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            end = time.perf_counter() + 0.002 + 0.0001 * len(x)
            while time.perf_counter() < end:
                pass
            return torch.zeros(len(x), 2)

    batch: Batch = {"x": torch.zeros(20, 3), "y": torch.zeros(20, dtype=torch.long)}
    found = measure_curve(Classify(Slow()), batch)
    assert [row["batch"] for row in found] == [1, 4, 16]
    for row in found:
        assert row["latency_ms"] == pytest.approx(1000 * row["batch"] / row["throughput"])
        assert 2 + 0.1 * row["batch"] <= row["latency_ms"]
    assert found[0]["throughput"] < found[2]["throughput"]


@pytest.mark.system(SLUG, "no-gain")
def test_what_is_no_better_is_no_gain() -> None:
    assert say_gain(1.04, "faster") == "no gain"
    assert say_gain(0.5, "faster") == "no gain"
    assert say_gain(1.5, "faster") == "1.50 times faster"
    before, after = Side(make(), bytes=1000, packed=900), Side(make(), bytes=1000, packed=300)
    before.rate, after.rate, before.scores, after.scores = 100.0, 50.0, {"accuracy": 0.8}, {"accuracy": 0.6}
    said = {row["what"]: row["said"] for row in tabulate(before, after)}
    assert said == {"bytes": "no gain", "packed": "3.00 times smaller", "examples/s": "no gain", "accuracy": "-25.00%"}


def test_sides_are_timed_in_turn() -> None:
    order: list[int] = []

    def wait(which: int, seconds: float) -> None:
        order.append(which)
        time.sleep(seconds)

    slow, fast = time_calls([lambda: wait(0, 0.02), lambda: wait(1, 0.01)])
    assert slow >= 0.02
    assert slow > fast >= 0.01
    assert sum(a != b for a, b in itertools.pairwise(order)) >= 9
    sides = [Side(make(), Classify(make())) for _ in range(2)]
    time_sides(sides, {"x": torch.zeros(2, 1, 32, 32), "y": torch.zeros(2, dtype=torch.long)})
    assert all(side.rate > 0 for side in sides)


@pytest.mark.system("magnitude-pruning", "refused")
def test_pruned_then_rounded(tmp_path: Path) -> None:
    """Zeros are zeros in codes, too; the file of codes is smaller, and packed smaller still."""
    model, plain, side = make(), make(), Side(make())
    plain.save_pretrained(tmp_path / "plain")
    told = Shrinking(bits=8, group=0, sparsity=0.9).apply(model)
    assert told["zeros"] == pytest.approx(0.9, abs=1e-3)
    assert told["layers"] == 5
    layers: list[Any] = [model.get_submodule(name) for name in ("c1", "c3", "f5", "f6", "out")]
    weights = torch.cat([layer.weight.flatten() for layer in layers])
    assert (weights == 0).double().mean() >= 0.9
    model.save_pretrained(tmp_path / "small")
    after = Side(model)
    side.weigh(tmp_path / "plain")
    after.weigh(tmp_path / "small")
    assert side.bytes > 3.4 * after.bytes
    assert after.bytes > 2 * after.packed
    with pytest.raises(Mistake, match="kept in codes of 8 bits; compress the original"):
        Shrinking(bits=8).apply(model)
