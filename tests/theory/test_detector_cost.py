from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from descend.models import detr, swin
from descend.theory.detector_cost import (
    count_flops_by_part,
    decoder_macs,
    efficiency,
    encoder_macs,
    latency_ms,
    pareto_frontier,
    projection_macs,
)
from descend.theory.detector_tables import BUDGET, PRINTED
from descend.theory.window_cost import swin_macs


@pytest.mark.system("detector-benchmarks")
@pytest.mark.system("detector-benchmarks", "budget")
def test_the_parts_of_a_detr_counted_and_in_closed_form() -> None:
    """480 × 640, ResNet-50: 50.0, 5.3 and 2.4 GFLOPs; the book has 100, 50 and 20."""
    with torch.device("meta"):
        model, x = detr.Detr(detr.SIZES["detr-resnet-50"]), torch.empty(1, 3, 480, 640)
        found = count_flops_by_part(model, x)
    tokens = 480 * 640 // 32**2
    assert found["encoder"] == 2 * encoder_macs(tokens, 256, 2048, 6) == 5_271_552_000
    assert found["decoder"] == 2 * decoder_macs(100, tokens, 256, 2048, 6) == 2_447_769_600
    assert found["project"] == 2 * projection_macs(tokens, 2048, 256) == 314_572_800
    assert found["backbone"] == 50_046_566_400
    for part in ("backbone", "encoder", "decoder"):
        assert BUDGET["DETR"][part] > 1.9 * found[part] / 1e9
    assert sum(v for part, v in BUDGET["DETR"].items() if part != "total") == BUDGET["DETR"]["total"]


@pytest.mark.system("detector-benchmarks", "budget")
def test_swin_needs_59_gflops() -> None:
    tiny = swin.SIZES["swin-tiny"]
    gflops = 2 * swin_macs(480, 640, tiny.width, tiny.depths, 7) / 1e9
    assert gflops == pytest.approx(58.9114, abs=1e-3)
    assert BUDGET["Swin-T"]["backbone"] == 80


@pytest.mark.system("detector-benchmarks", "flop-counter")
def test_the_parts_are_torchs_total() -> None:
    with torch.device("meta"):
        model, x = detr.Detr(detr.TINY), detr.TINY_INPUT().to("meta")
    found = count_flops_by_part(model, x)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(x)
    assert sum(found.values()) == counter.get_total_flops()
    assert {"backbone", "encoder", "decoder"} <= set(found)


@pytest.mark.system("detector-benchmarks", "efficiency")
def test_the_frontier_is_what_no_model_beats() -> None:
    """By brute force on random models, and on the book's table."""
    random = torch.Generator().manual_seed(0)
    points = {f"m{k}": tuple(row) for k, row in enumerate((torch.rand(40, 2, generator=random) * 6).round().tolist())}
    found = pareto_frontier(points)  # type: ignore[arg-type]
    for name, (speed, score) in points.items():
        beaten = [o for o, (a, b) in points.items() if a >= speed and b >= score and (a, b) != (speed, score)]
        assert (name in found) == (not beaten)
    table = pareto_frontier({row.name: (row.fps, row.map) for row in PRINTED})
    assert table == ["YOLO-v8n", "YOLO-v8s", "YOLO-v8m", "YOLO-v8l", "Swin-L DETR"]
    assert efficiency(44.9, latency_ms(60)) == pytest.approx(269.4)
