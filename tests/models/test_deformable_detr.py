"""Deformable DETR: transformers both ways in its three forms, heads that files share, learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import descend
from descend.contracts import Detects
from descend.losses.detection.set_prediction import FocalSetPrediction
from descend.models.deformable_detr import TINY, DeformableDetr
from tests.close import close
from tests.losses.detection.scenes import check_empty, draw_scenes, overfit
from tests.models.peers import check_both_ways, random_peer
from tests.models.test_detr import SMALL, images

transformers = pytest.importorskip("transformers")

FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "refining": {"with_box_refine": True},
    "two-stage": {"with_box_refine": True, "two_stage": True, "two_stage_num_proposals": 6},
}


def peer(form: str) -> Any:
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    values = SMALL | {"d_model": 32, "backbone_config": backbone, **FORMS[form]}
    config = transformers.DeformableDetrConfig(**values)
    return random_peer(transformers.DeformableDetrForObjectDetection, config, std=0.15)


@pytest.mark.system("detr", "deformable")
@pytest.mark.parametrize("form", FORMS)
def test_both_ways(form: str, tmp_path: Path) -> None:
    theirs, x = peer(form), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    with torch.no_grad():
        found, output = ours(x), theirs(x)
    close(found.boxes[-1], output.pred_boxes)
    if form != "plain":
        close(found.boxes, output.intermediate_reference_points.transpose(0, 1))
    assert ours.config.form == form
    assert isinstance(ours, Detects)


@pytest.mark.system("detr", "deformable")
def test_files_may_repeat_or_leave_out_shared_heads(tmp_path: Path) -> None:
    """A plain model has one head for all layers; older files hold a copy for each."""
    theirs, x = peer("plain"), images()
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    heads = {key: value for key, value in tensors.items() if key.startswith(("bbox_embed.0.", "class_embed.0."))}
    assert heads
    more = {key.replace("embed.0.", "embed.1."): value.clone() for key, value in heads.items()}
    save_file(tensors | more, path)
    close(DeformableDetr.from_pretrained(tmp_path)(x).boxes[-1], theirs(x).pred_boxes)
    save_file(tensors | {key: value + 1 for key, value in more.items()}, path)
    with pytest.raises(descend.errors.Mistake, match="differs"):
        descend.load(tmp_path)


@pytest.mark.system("detr", "deformable")
@pytest.mark.parametrize("form", ["plain", "refining", "two-stage"])
def test_it_learns(form: Any) -> None:
    torch.manual_seed(0)
    model = DeformableDetr(replace(TINY, form=form, proposals=6))
    first, last = overfit(model, FocalSetPrediction(), draw_scenes(), steps=30, lr=3e-3)
    assert last < 0.8 * first
    check_empty(model, FocalSetPrediction())
