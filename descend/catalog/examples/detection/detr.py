"""Worked examples of set prediction: DETR's walk-through and counts, RT-DETR's tokens, the varifocal loss."""

from __future__ import annotations

from dataclasses import replace

import torch

from descend.catalog.examples import Compute, Inputs
from descend.contracts import Boxes
from descend.losses.detection.set_matching import certain_class_cost, scale_truth
from descend.losses.detection.set_prediction import CertainSetPrediction
from descend.losses.detection.varifocal import varifocal
from descend.models.detr import SIZES, Detr, DetrConfig
from descend.models.rt_detr import TINY as SMALL_RT
from descend.models.rt_detr import RTDetr
from descend.models.swin import SIZES as SWINS
from descend.models.swin import SwinStages
from descend.nn.detection.set_queries import PlacedAttention
from descend.ops.boxes import to_corners
from descend.ops.detection.sets import SetFound
from descend.theory.detector_cost import count_flops_by_part, decoder_macs, encoder_macs, projection_macs
from descend.theory.detector_tables import BUDGET
from descend.weights.labels import Labels

DOUBLE = torch.float64


def count(module: torch.nn.Module, trainable: bool = False) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trainable)


def feature_map(i: Inputs) -> Inputs:
    """The last map of ResNet-50, and its tokens."""
    with torch.device("meta"):
        maps = Detr(DetrConfig()).backbone.maps(torch.empty(1, 3, i["H"], i["W"]))
    channels, rows, columns = maps.shape[1:]
    return {"f": [rows, columns, channels], "tokens": rows * columns}


def shapes(i: Inputs) -> Inputs:
    """A whole pass of the size given, without memory."""
    labels = Labels(tuple(map(str, range(i["K"]))))
    with torch.device("meta"):
        model = Detr(DetrConfig(width=i["d"], queries=i["N"], labels=labels)).eval()
        x = torch.empty(1, 3, 480, 640)
        tokens = model.project(model.backbone.maps(x)).flatten(2).mT
        h = model.encoder[0](tokens)
        y = model.decoder[0](model.queries[None], None, h, h)
        logits, boxes = model.classify(y), model.locate(y)
    found = {"h_enc": h[0], "q": model.queries, "h_dec": y[0], "c": logits[0], "b": boxes[0]}
    return {**{name: list(part.shape) for name, part in found.items()}, "query_params": model.queries.numel()}


def parameters(i: Inputs) -> Inputs:
    """Counted on the models themselves, built without memory."""
    found: Inputs = {}
    for name in ("R50", "R101"):
        with torch.device("meta"):
            config = SIZES[f"detr-resnet-{name[1:]}"]
            model = Detr(replace(config, labels=Labels(tuple(map(str, range(i["class_logits"] - 1))))))
        found[f"{name}_all_without_bn"] = count(model)
        model.freeze_start()
        found[f"{name}_trainable"] = count(model, trainable=True)
        found[f"{name}_M"] = found[f"{name}_trainable"] / 1e6
        if name == "R50":
            found["encoder"] = count(model.encoder)
            found["decoder"] = count(model.decoder) + count(model.norm)
            found["transformer_and_heads"] = found["R50_all_without_bn"] - count(model.backbone)
            found["R50_trainable_81_logits"] = found["R50_trainable"] - (i["class_logits"] - 81) * (i["d"] + 1)
    return found


def swin_tiny(i: Inputs) -> Inputs:
    """DETR on a Swin-T, without the norm of the last map, which the count of the book leaves out."""
    with torch.device("meta"):
        model = Detr(SIZES["detr-swin-tiny"])
    norm = count(model.backbone.norm)  # type: ignore[arg-type]
    backbone = count(model.backbone) - norm
    return {"swin_t_plus_plain_detr_M": (count(model) - norm) / 1e6, "swin_t_backbone_M": backbone / 1e6}


def swin_large(i: Inputs) -> Inputs:
    """The backbone alone has more than the printed detector."""
    with torch.device("meta"):
        model = SwinStages(SWINS["swin-large"])
    backbone = count(model) - count(model.norm)
    head = count(model.norm) + 1000 * (SWINS["swin-large"].features + 1)
    return {"params_M": backbone / 1e6, "with_1000_class_head_M": (backbone + head) / 1e6}


def attention_scale(i: Inputs) -> Inputs:
    """The width of a head decides: one head of 256, or eight of 32."""
    sizes = {heads: PlacedAttention(i["d"], heads) for heads in (1, 8)}
    widths = {heads: attn.q.out_features // attn.heads for heads, attn in sizes.items()}
    return {"scale_argument": widths[1], "scale": widths[1] ** 0.5, "scale_per_head_with_8_heads": widths[8] ** 0.5}


def class_probabilities(i: Inputs) -> Inputs:
    c10, c47 = torch.tensor([i["c10"], i["c47"]], dtype=DOUBLE)
    with torch.device("meta"):
        classes = Detr(DetrConfig(labels=Labels(("person", "car")))).classify.out_features
    return {
        "sum_c10": float(c10.sum()),
        "sum_c47": float(c47.sum()),
        "c10_person": float(c10[1]),
        "argmax_c10": int(c10.argmax()),
        "argmax_c47": int(c47.argmax()),
        "shape": [DetrConfig().queries, classes],
    }


def box_format(i: Inputs) -> Inputs:
    """The four numbers are centre and size; as corners the box has negative sides."""
    box = torch.tensor(i["b10"], dtype=DOUBLE)
    width, height = (box[2:] - box[:2]).tolist()
    corners = to_corners(box)
    return {
        "xyxy_width": width,
        "xyxy_height": height,
        "valid_xyxy": width > 0 and height > 0,
        "as_cxcywh_to_xyxy": corners.tolist(),
        "pixels_480x640_xyxy": (corners * torch.tensor([640, 480, 640, 480])).tolist(),
    }


def walkthrough(p: float, loss: float) -> tuple[SetFound, Boxes]:
    """One query, sure of its class with p, and a box within its object that loses `loss` of its area."""
    logits = torch.tensor([[1 - p, p, 1e-12]], dtype=DOUBLE).log()
    box = torch.tensor([[(1 - loss) / 2, 0.5, 1 - loss, 1.0]], dtype=DOUBLE)
    truth = Boxes(torch.tensor([[[0.0, 0, 1, 1]]], dtype=DOUBLE), torch.tensor([[1]]), torch.ones(1, 1))
    return SetFound(logits[None, None], box[None, None], torch.ones(4, dtype=DOUBLE)), truth


def matching_cost(i: Inputs) -> Inputs:
    found, truth = walkthrough(i["p"], i["L_giou"])
    y = scale_truth(truth, found.sides)
    cost = CertainSetPrediction(box_cost=i["lambda"]).cost(found, y)
    weighted = cost - certain_class_cost(found.logits, y.classes)
    return {"cost": float(cost), "weighted": round(float(weighted), 12)}


def giou_loss(i: Inputs) -> Inputs:
    found, truth = walkthrough(0.8, 1 - i["giou"])
    return {"L_bbox": float(CertainSetPrediction(boxes=1.0)(found, truth, torch.zeros(1, 0)).terms["giou"])}


def total(i: Inputs) -> Inputs:
    """By the criterion: a query with p = 0.8 has the focal loss given."""
    found, truth = walkthrough(0.8, i["L_bbox"])
    loss = CertainSetPrediction(boxes=i["w_box"], classes=i["w_cls"])(found, truth, torch.zeros(1, 0))
    return {
        "box_part": round(float(loss.terms["giou"]), 12),
        "cls_part": float(loss.terms["class"]),
        "L": float(loss.total()),
    }


def attention_pairs(i: Inputs) -> Inputs:
    """Tokens of the three levels of RT-DETR at this size."""
    with torch.device("meta"):
        _, grids = RTDetr(SMALL_RT).encode(torch.empty(1, 3, i["H"], i["W"]))
    n3, n4, n5 = (rows * columns for rows, columns in grids)
    every, one = (n3 + n4 + n5) ** 2, n5**2
    return {
        "N3": n3, "N4": n4, "N5": n5, "L": n3 + n4 + n5, "pairs_all": every, "pairs_S5": one, "ratio": every / one,
    }  # fmt: skip


def varifocal_minimum(i: Inputs) -> Inputs:
    """The least of a fine row of probabilities, and the two extra values."""
    p = torch.linspace(0.001, 0.999, 999, dtype=DOUBLE)
    least = [float(p[varifocal(p, torch.full_like(p, q), i["alpha"], i["gamma"]).argmin()]) for q in i["q"]]

    def at(p: float, q: float) -> float:
        return float(varifocal(torch.tensor(p, dtype=DOUBLE), torch.tensor(q, dtype=DOUBLE), i["alpha"], i["gamma"]))

    return {"argmin_p": least, "vfl_p0.8_q0.9": at(0.8, 0.9), "vfl_p0.3_q0_alpha0.75_gamma2": at(0.3, 0.0)}


def training_time(i: Inputs) -> Inputs:
    """Of the release notes: epochs times minutes, on eight GPUs."""
    hours = i["published_epochs"] * i["published_minutes_per_epoch_8_gpus"] / 60
    return {"detr_wall_clock_hours_from_release_notes": hours, "gpu_hours_8": 8 * hours}


def flops(i: Inputs) -> Inputs:
    """Encoder, decoder and projection in closed form; the backbone counted on the model itself, without memory."""
    tokens, d, hidden, depth = i["tokens"], i["d"], i["ff"], i["layers"]
    with torch.device("meta"):
        model, x = Detr(SIZES["detr-resnet-50"]), torch.empty(1, 3, i["H"], i["W"])
        backbone = count_flops_by_part(model, x)["backbone"] / 2
        channels = model.project.in_channels
    macs = {
        "backbone": backbone,
        "encoder": encoder_macs(tokens, d, hidden, depth),
        "decoder": decoder_macs(i["queries"], tokens, d, hidden, depth),
        "input_projection": projection_macs(tokens, channels, d),
    }
    found = {f"{part}_gflops": 2 * n / 1e9 for part, n in macs.items()}
    return {
        **found,
        "total": sum(found.values()),
        **{f"{part}_gmacs": macs[part] / 1e9 for part in ("backbone", "encoder", "decoder")},
    }


def printed_sum(i: Inputs) -> Inputs:
    """The book's three parts add up to its total; each of them is an erratum (see `flops`)."""
    printed = {part: gflops for part, gflops in BUDGET["DETR"].items() if part != "total"}
    assert list(printed.values()) == i["parts"]
    return {"total_gflops": sum(printed.values())}


EXAMPLES: dict[str, Compute] = {
    "MF-25.2.1-feature-map": feature_map,
    "MF-25.4.1-shapes": shapes,
    "MF-28.5.1-detr-params": parameters,
    "MF-28.5.1-swin-t-params": swin_tiny,
    "MF-28.5.1-swin-l-params": swin_large,
    "MF-28.2.4-attention-scale": attention_scale,
    "MF-28.2.5-class-probs": class_probabilities,
    "MF-28.2.5-box-format": box_format,
    "MF-28.2.6-cost": matching_cost,
    "MF-28.2.7-giou": giou_loss,
    "MF-28.2.7-total": total,
    "MF-26.2.1-aifi-complexity": attention_pairs,
    "MF-26.4.2-vfl-minimum": varifocal_minimum,
    "MF-25.5-training-time": training_time,
    "MF-27.5.1-detr-flops": flops,
    "MF-27.5.1-detr-sum": printed_sum,
}
SET_ASIDE: dict[str, str] = {}
