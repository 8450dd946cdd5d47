"""RT-DETR and v2: transformers both ways, its training with noisy queries, the text's form, selection, learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import descend
from descend.contracts import Boxes, Detects, count_units
from descend.errors import Mistake
from descend.losses.detection.varifocal import VarifocalSetPrediction
from descend.models.rt_detr import TINY, RTDetr, RTDetrConfig
from descend.models.rt_detr_resnet import RTDetrResNetConfig
from descend.nn.convolution.folding import fold
from descend.nn.detection.query_selection import grid_anchors
from descend.ops.boxes import box_iou, to_corners
from tests.close import close
from tests.losses.detection.scenes import check_empty, draw_scenes, overfit, share_found
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "encoder_hidden_dim": 16, "encoder_in_channels": [12, 16, 20], "encoder_ffn_dim": 20, "encoder_attention_heads": 2,
    "d_model": 16, "num_queries": 7, "decoder_in_channels": [16] * 3, "decoder_ffn_dim": 24, "decoder_n_points": 2,
    "decoder_layers": 3, "decoder_attention_heads": 4, "num_labels": 3, "num_denoising": 12,
}  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "basic": {"layer_type": "basic", "hidden_expansion": 0.5},
    "bottleneck": {"layer_type": "bottleneck", "freeze_backbone_batch_norms": False},
    "attention on all levels": {"layer_type": "basic", "encode_proj_layers": [0, 1, 2], "encoder_layers": 2},
    "v2": {"layer_type": "basic", "decoder_offset_scale": 0.7},
    "v2, discrete": {"layer_type": "bottleneck", "decoder_method": "discrete"},
}


def images(seed: int = 0) -> Tensor:
    return torch.randn(2, 3, 96, 64, generator=torch.Generator().manual_seed(seed))


def backbone(layers: str) -> Any:
    return transformers.RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1], layer_type=layers, out_indices=[2, 3, 4]
    )


def peer(form: str) -> Any:
    values = SMALL | {"backbone_config": backbone(FORMS[form]["layer_type"]), **FORMS[form]}
    values.pop("layer_type")
    name = "RTDetrV2" if form.startswith("v2") else "RTDetr"
    config = getattr(transformers, f"{name}Config")(**values)
    model = random_peer(getattr(transformers, f"{name}ForObjectDetection"), config, std=0.25)
    random = torch.Generator().manual_seed(3)
    for part in model.modules():  # batch norms of a trained net
        if "BatchNorm" in type(part).__name__:
            for t in (part.weight, part.bias, part.running_mean, part.running_var):
                t.data.copy_(torch.rand(t.shape, generator=random) + 0.5)
    return model


@pytest.mark.system("rt-detr")
@pytest.mark.system("rt-detr", "files")
@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith("v2")])
def test_both_ways(form: str, tmp_path: Path) -> None:
    theirs, x = peer(form), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    check_layers(ours, theirs, x)
    assert isinstance(ours, Detects)


@pytest.mark.system("rt-detr", "version-2")
@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("v2")])
def test_version_2_both_ways(form: str, tmp_path: Path) -> None:
    theirs, x = peer(form), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    check_layers(ours, theirs, x)


def check_layers(ours: Any, theirs: Any, x: Tensor) -> None:
    """The selected rows, and every layer; places of points that differ move boxes, so they must differ."""
    with torch.no_grad():
        found, output = ours(x), theirs(x)
        close(found.logits[0], output.enc_topk_logits)
        close(found.boxes[0], output.enc_topk_bboxes)
        close(found.logits[1:], output.intermediate_logits.transpose(0, 1), loosen=5)  # three layers of float32
        close(found.boxes[1:], output.intermediate_reference_points.transpose(0, 1))
    assert found.boxes[-1].std(dim=1).min() > 2e-4


@pytest.mark.system("rt-detr-hybrid-encoder")
@pytest.mark.system("rt-detr-hybrid-encoder", "original-form")
def test_the_encoder_is_theirs(tmp_path: Path) -> None:
    theirs, x = peer("basic"), images()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    with torch.no_grad():
        maps = [project(one) for project, one in zip(ours.project, ours.backbone.pyramid(x)[1:], strict=True)]
        for one, other in zip(maps, theirs.model.backbone(x, torch.ones(2, 96, 64)), strict=True):
            assert one.shape[2:] == other[0].shape[2:]
        expected = theirs.model.encoder([one.clone() for one in maps]).last_hidden_state
        maps[2] = ours.attention[0](maps[2])
        for one, other in zip(ours.fusion(maps), expected, strict=True):
            close(one, other)


@pytest.mark.system("rt-detr", "backbone")
@pytest.mark.parametrize("layers", ["basic", "bottleneck"])
def test_the_backbone_both_ways(layers: str, tmp_path: Path) -> None:
    x, kind = images(), transformers.models.rt_detr.modeling_rt_detr_resnet.RTDetrResNetBackbone
    theirs = random_peer(kind, backbone(layers))
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x)[-1], lambda m: m(x).feature_maps[-1])
    for one, other in zip(ours.pyramid(x)[1:], theirs(x).feature_maps, strict=True):
        close(one, other)
    assert [96 // one.shape[2] for one in ours.pyramid(x)] == [4, 8, 16, 32]


@pytest.mark.system("rt-detr", "backbone")
def test_tokens_at_640() -> None:
    """S3, S4, S5 give L = 6400 + 1600 + 400 = 8400 tokens."""
    with torch.device("meta"):
        tokens, grids = RTDetr(TINY).eval().encode(torch.empty(1, 3, 640, 640))
    assert tokens.shape == (1, 8400, 16)
    assert grids == [(80, 80), (40, 40), (20, 20)]


@pytest.mark.system("rt-detr", "denoising")
def test_noisy_queries_are_decoded_as_in_one_pass(tmp_path: Path) -> None:
    """transformers decodes them with the others, under a mask; here they follow in a pass of their own."""
    theirs, x = peer("basic"), images()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    boxes = torch.tensor([[[0.3, 0.4, 0.2, 0.3], [0.6, 0.5, 0.4, 0.4]], [[0.5, 0.5, 0.5, 0.2], [0.2, 0.7, 0.3, 0.2]]])
    given = [{"class_labels": torch.tensor([0, 2]), "boxes": one} for one in boxes]
    names: list[Tensor] = []
    theirs.model.denoising_class_embed.register_forward_hook(lambda m, args, out: names.append(args[0]))
    for part in theirs.modules():  # training mode, without new moments
        part.training = not isinstance(part, nn.BatchNorm2d)
    output = theirs(x, labels=given)
    q = output.denoising_meta_values["dn_num_split"][0]
    start = output.init_reference_points[:, :q].sigmoid()
    group = torch.arange(q) // 4
    seen = (group[:, None] == group).expand(2, q, q)
    found = ours(x)
    logits, repaired = found.denoise(names[0].long(), start, seen)
    close(logits, output.intermediate_logits[:, :, :q].transpose(0, 1), loosen=5)
    close(repaired, output.intermediate_reference_points[:, :, :q].transpose(0, 1))
    close(found.logits[1:], output.intermediate_logits[:, :, q:].transpose(0, 1), loosen=5)


@pytest.mark.system("rt-detr", "denoising")
def test_a_step_with_noise_can_be_split() -> None:
    torch.manual_seed(0)
    model = RTDetr(replace(TINY, denoising=1)).eval()
    criterion = VarifocalSetPrediction(groups=2)
    x, truth = draw_scenes(3, 64)
    u = torch.rand(3, criterion.chance)
    whole = criterion(model(x), truth, u)
    parts = torch.zeros(())
    for rows in (slice(0, 1), slice(1, 3)):
        some = Boxes(*(part[rows] for part in truth))
        parts += criterion(model(x[rows]), some, u[rows]).total() * count_units(some)
    close(parts / count_units(truth), whole.total(), loosen=5)
    whole.total().backward()
    assert model.noisy.weight.grad is not None
    assert (model.noisy.weight.grad[:3].abs().sum(1) > 0).all()
    assert model.noisy.weight.grad[3].abs().sum() == 0


@pytest.mark.system("query-selection")
@pytest.mark.system("query-selection", "top-k")
def test_queries_are_encoder_rows() -> None:
    torch.manual_seed(0)
    model, x = RTDetr(TINY).eval(), images()
    seen: list[Tensor] = []
    model.decoder.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    found = model(x)
    tokens, grids = model.encode(x)
    rows = model.rows(tokens * grid_anchors(grids, x.device).used)
    scores = model.score(rows).amax(-1)
    for image in range(2):
        best = scores[image].argsort(descending=True)[:6]
        close(seen[0][image], rows[image, best])
        close(found.logits[0, image].amax(-1), scores[image, best])


@pytest.mark.system("rt-detr", "text-decoder")
@pytest.mark.system("query-selection", "logit-refinement")
@pytest.mark.parametrize("cross", ["all", "deformable"])
def test_boxes_without_deltas_are_the_first_ones(cross: Any) -> None:
    """A new model's deltas are 0, so every layer repeats the selected boxes."""
    torch.manual_seed(0)
    found = RTDetr(replace(TINY, cross=cross)).eval()(images())
    for boxes in found.boxes[1:]:
        close(boxes, found.boxes[0])


def text_form() -> RTDetrConfig:
    return replace(TINY, cross="all", fusion="down")


@pytest.mark.system("rt-detr", "text-decoder")
def test_the_texts_decoder_by_its_equations(tmp_path: Path) -> None:
    """Self-attention, attention to all tokens, MLP, each added and normed; and its folder opens again."""
    torch.manual_seed(0)
    model, x = RTDetr(text_form()).eval(), images()
    found, (tokens, _) = model(x), model.encode(x)
    start: list[Tensor] = []
    model.decoder.register_forward_pre_hook(lambda m, args: start.append(args[0]))
    model(x)
    y, boxes = start[0], found.boxes[0]

    def look(attn: Any, a: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (attn.q(a), attn.k(k), attn.v(v)))
        joined: Tensor = attn.out(((q @ k.mT / 8**0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))
        return joined

    for i, layer in enumerate(model.decoder.layers):
        place = model.decoder.place(boxes)
        y = layer.norm_1(y + look(layer.attn, y + place, y + place, y))
        y = layer.norm_2(y + look(layer.cross.attn, y + place, tokens, tokens))
        y = layer.norm_3(y + layer.mlp(y))
        close(found.logits[i + 1], model.decoder.classify[i](y), loosen=5)  # a kernel against matrix products
    model.save_pretrained(tmp_path)
    close(descend.load(tmp_path)(x).logits, found.logits)


def test_learned_queries(tmp_path: Path) -> None:
    """The contents do not depend on the image, the first boxes do. (transformers 5 fails on this setting.)"""
    torch.manual_seed(0)
    model, x = RTDetr(replace(TINY, start="learned")).eval(), images()
    seen: list[Tensor] = []
    model.decoder.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    found = model(x)
    assert torch.equal(seen[0][0], seen[0][1])
    assert not torch.equal(found.boxes[0, 0], found.boxes[0, 1])
    model.save_pretrained(tmp_path)
    again: Any = descend.load(tmp_path)
    assert again.config.start == "learned"
    close(again(x).logits, found.logits)


def test_folded_for_inference() -> None:
    """Batch norms and branches of RepConvs gone, the same boxes."""
    torch.manual_seed(0)
    model, x = RTDetr(TINY), images()
    model(x)
    found = model.eval()(x)
    folded = fold(model)
    close(folded(x).boxes, found.boxes, loosen=10)  # folded in float64, rounded once
    assert not any(isinstance(part, nn.BatchNorm2d) for part in folded.modules())


@pytest.mark.system("rt-detr", "learns")
@pytest.mark.system("query-selection", "uncertainty")
def test_it_learns_a_few_scenes() -> None:
    """Every object once, nothing in the empty image; and scores come near to the IoU of their boxes."""
    torch.manual_seed(0)
    resnet = RTDetrResNetConfig(stem=8, widths=(8, 16, 24, 32), depths=(1, 1, 1, 1), block="basic")
    config = replace(TINY, backbone=resnet, width=32, decoder_width=32, heads=4, decoder_heads=4, hidden=48, queries=12,
                     denoising=1)  # fmt: skip
    model, scenes = RTDetr(config), draw_scenes()
    before = measure_uncertainty(model, scenes)
    first, last = overfit(model, VarifocalSetPrediction(groups=2), scenes, steps=150, lr=2e-3)
    assert last < 0.4 * first
    model.eval()
    assert share_found(model, scenes, least=0.4) == (1.0, 1.0)
    assert ((model.decode(model(scenes[0]), 0.4).classes >= 0).sum(1) == (scenes[1].classes >= 0).sum(1)).all()
    assert measure_uncertainty(model, scenes) < 0.5 * before


@torch.no_grad()
def measure_uncertainty(model: RTDetr, scenes: tuple[Tensor, Boxes]) -> float:
    """The mean of |P_loc − P_cls| of the last layer's queries: IoU with the best object of any class, and score."""
    x, truth = scenes
    found = model.eval()(x)
    boxes = to_corners(found.boxes[-1]) * found.sides
    iou = box_iou(boxes[:, :, None], truth.boxes[:, None]).amax(-1)
    model.train()
    return float((iou - found.logits[-1].sigmoid().amax(-1)).abs().mean())


def test_images_without_objects() -> None:
    torch.manual_seed(0)
    check_empty(RTDetr(replace(TINY, denoising=1)), VarifocalSetPrediction(groups=2))


def test_wrong_values_are_refused(tmp_path: Path) -> None:
    theirs = peer("basic")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"normalize_before": false', '"normalize_before": true'))
    with pytest.raises(Mistake, match="normalize_before"):
        descend.load(tmp_path)
    with pytest.raises(ValueError, match="3 are read"):
        replace(TINY, attended=(3,))
