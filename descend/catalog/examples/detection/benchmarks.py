"""Worked examples of the tables of detectors: parameters of YOLO, speed, efficiency, recommendations."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.models import yolo_v8
from descend.theory import detector_tables as tables
from descend.theory.detector_choice import USE_CASES
from descend.theory.detector_cost import efficiency, latency_ms, pareto_frontier


def yolo(size: str) -> Compute:
    def run(i: Inputs) -> Inputs:
        with torch.device("meta"):
            model = yolo_v8.YoloV8(yolo_v8.SIZES[size])
        assert len(model.config.labels) == i["classes"]
        total = sum(p.numel() for p in model.parameters())
        return {"params": total, "params_M": total / 1e6}

    return run


def throughput(i: Inputs) -> Inputs:
    listed = [tables.THROUGHPUT[name]["V100"] for name in ("YOLO-v8s", "DETR", "Swin-T")]
    fps = [tables.find_printed(name).fps for name in ("YOLO-v8s", "DETR", "Swin-T DETR")]
    return {f"ratio_{name}": a / b for name, a, b in zip(("yolo_v8s", "detr", "swin_t"), listed, fps, strict=True)}


def accuracy_ranking(i: Inputs) -> Inputs:
    value = {row.name: row.map for row in tables.PRINTED}
    assert value == i["mAP"]
    return {
        "detr_above_all_yolo": all(value["DETR"] > v for name, v in value.items() if name.startswith("YOLO")),
        "yolo_v8m_minus_detr": value["YOLO-v8m"] - value["DETR"],
        "yolo_v8l_minus_swin_t": value["YOLO-v8l"] - value["Swin-T DETR"],
    }


def speed_ranking(i: Inputs) -> Inputs:
    value = {row.name: row.fps for row in tables.PRINTED}
    assert value == i["fps"]
    return {
        "every_yolo_faster_than_detr": all(v > value["DETR"] for name, v in value.items() if name.startswith("YOLO")),
        "yolo_v8l_minus_detr_fps": value["YOLO-v8l"] - value["DETR"],
    }


def efficiencies(i: Inputs) -> Inputs:
    rows = [tables.find_printed(name) for name in i["models"]]
    every = {row.name: efficiency(row.map, latency_ms(row.fps)) for row in tables.PRINTED}
    four = {row.name: every[row.name] for row in rows}
    printed = [0.75, 1.67, 0.27, 0.9]
    return {
        "efficiency": list(four.values()),
        "latency_ms": [latency_ms(row.fps) for row in rows],
        "best_of_the_four": max(four, key=four.__getitem__),
        "best": max(every, key=every.__getitem__),
        "all_models": every,
        "pareto_frontier_fps_mAP": pareto_frontier({row.name: (row.fps, row.map) for row in tables.PRINTED}),
        "mAP_over_fps": [row.map / row.fps for row in rows],
        "latency_implied_by_printed_ms": [row.map / value * 100 for row, value in zip(rows, printed, strict=True)],
    }


def on_cpu(i: Inputs) -> Inputs:
    speed = tables.THROUGHPUT["YOLO-v8s"]["CPU"]
    assert tables.look_up("real-time on CPU")["YOLO"] == i["matrix"].lower()
    return {"real_time_at_30_fps": speed >= 30, "ms_per_image": latency_ms(speed)}


def driving(i: Inputs) -> Inputs:
    case = USE_CASES[0]
    assert case.fps == i["required_fps"]
    fitting = [row.name for row in case.fitting() if row.name.startswith("YOLO")]
    return {"meets_requirement": not case.contradicted(), "meets_among_yolo": fitting}


def mobile(i: Inputs) -> Inputs:
    case, row = USE_CASES[3], tables.find_printed("YOLO-v8n")
    assert (case.megabytes, case.latency) == (i["limit_MB"], i["limit_ms"])
    return {
        "int8_MB": row.parameters,
        "fp32_MB": 4 * row.parameters,
        "latency_ms": latency_ms(row.fps),
        "fits": not case.contradicted(),
        "int8_MB_true_count": yolo_v8.PARAMETERS["yolo-v8-n"] / 1e6,
    }


EXAMPLES: dict[str, Compute] = {
    "MF-27.5.2-throughput-vs-benchmark": throughput,
    "MF-27.5.3-accuracy-ranking": accuracy_ranking,
    "MF-27.5.3-speed-ranking": speed_ranking,
    "MF-28.5.1-yolov8n-params": yolo("yolo-v8-n"),
    "MF-28.5.1-yolov8s-params": yolo("yolo-v8-s"),
    "MF-28.5.1-yolov8m-params": yolo("yolo-v8-m"),
    "MF-28.5.1-yolov8l-params": yolo("yolo-v8-l"),
    "MF-29.4.1-efficiency": efficiencies,
    "MF-29.1-cpu-realtime": on_cpu,
    "MF-29.3.1-driving-fps": driving,
    "MF-29.3.4-mobile": mobile,
}

SET_ASIDE: dict[str, str] = {"MF-28.5.1-map": "needs training on COCO"}
