"""DETR: transformers both ways, the released naming, the text's form, counts of the books, symmetries, training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import descend
from descend.contracts import Boxes, Detects
from descend.errors import Mistake
from descend.losses.detection.set_prediction import SetPrediction
from descend.models.detr import SIZES, TINY, Detr, DetrConfig
from descend.models.resnet import TORCHVISION, ResNetConfig
from descend.models.swin import SwinConfig
from descend.weights.labels import Labels
from descend.weights.rules import find
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "use_timm_backbone": False, "num_queries": 5, "encoder_layers": 2, "decoder_layers": 2, "d_model": 16,
    "encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 24,
    "num_labels": 3,
}  # fmt: skip


def images(seed: int = 0) -> Tensor:
    return torch.randn(2, 3, 70, 100, generator=torch.Generator().manual_seed(seed))


def backbones() -> dict[str, Any]:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 12, 16, 20], "out_features": ["stage4"]}
    swin = {"embed_dim": 8, "depths": [1, 2, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 3, "image_size": 64}
    return {
        "basic": transformers.ResNetConfig(depths=[1, 2, 1, 1], layer_type="basic", **sizes),
        "bottleneck": transformers.ResNetConfig(depths=[2, 1, 1, 1], layer_type="bottleneck", **sizes),
        "swin": transformers.SwinConfig(out_features=["stage4"], **swin),
    }


def peer(backbone: str = "basic", places: str = "sine", seed: int = 0) -> Any:
    config = transformers.DetrConfig(backbone_config=backbones()[backbone], position_embedding_type=places, **SMALL)
    model = random_peer(transformers.DetrForObjectDetection, config, seed=seed)
    random = torch.Generator().manual_seed(3)
    for name, t in model.named_buffers():  # running moments of a trained net
        if "running" in name:
            t.add_(torch.rand(t.shape, generator=random))
    return model


@pytest.mark.system("detr")
@pytest.mark.system("detr", "files")
@pytest.mark.parametrize(
    ("backbone", "places"), [("basic", "sine"), ("bottleneck", "sine"), ("basic", "learned"), ("swin", "sine")]
)
def test_both_ways(backbone: str, places: str, tmp_path: Path) -> None:
    theirs, x = peer(backbone, places), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    close(ours(x).boxes[-1], theirs(x).pred_boxes)
    assert ours.config.labels == Labels(("LABEL_0", "LABEL_1", "LABEL_2"))
    assert isinstance(ours, Detects)


@pytest.mark.system("detr", "swin")
def test_swin_is_a_backbone(tmp_path: Path) -> None:
    theirs, x = peer("swin"), images(1)
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    assert isinstance(ours.config.backbone, SwinConfig)
    close(ours.backbone.maps(x), theirs.model.backbone.model(x).feature_maps[0])
    close(ours(x).boxes[-1], theirs(x).pred_boxes)


@pytest.mark.parametrize("places", ["sine", "learned"])
def test_padding_is_theirs(places: str, tmp_path: Path) -> None:
    """Images of different sizes in one batch: padding is hidden, and places count what is real."""
    theirs, x = peer(places=places), images()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    real = torch.ones(2, 70, 100, dtype=torch.bool)
    real[0, 40:], real[1, :, 64:] = False, False
    close(ours(x, real).boxes[-1], theirs(x, real.long()).pred_boxes)
    assert not torch.allclose(ours(x, real).boxes[-1], ours(x).boxes[-1])


@pytest.mark.system("detr", "timm-names")
def test_released_files_with_names_of_timm(tmp_path: Path) -> None:
    """The released folders name the backbone "resnet50" and its tensors conv1, bn1, layer1 .. : the same network."""
    theirs, x = peer("bottleneck"), images()
    theirs.save_pretrained(tmp_path)
    resnet, prefix = descend.models.resnet, "model.backbone.conv_encoder.model."
    tensors = load_file(tmp_path / "model.safetensors")
    named: dict[str, Tensor] = {}
    for key, tensor in tensors.items():
        found = key.startswith(prefix) and find("resnet." + key.removeprefix(prefix), resnet.KEYS, "theirs")
        timm = find(found[1], TORCHVISION, "ours") if found else None
        named[prefix + timm[1] if timm else key] = tensor
    assert prefix + "layer3.0.downsample.0.weight" in named
    assert prefix + "bn1.running_var" in named
    save_file(named, tmp_path / "model.safetensors")
    close(Detr.from_pretrained(tmp_path)(x).boxes[-1], theirs(x).pred_boxes)


@pytest.mark.system("detr", "timm-names")
def test_released_configs_are_read(tmp_path: Path) -> None:
    """As they were published (a name of timm) and as transformers writes them today (`timm_backbone`)."""
    old = {"model_type": "detr", "backbone": "resnet101", "use_timm_backbone": True, "dilation": False}
    new = {"model_type": "detr", "backbone_config": {"model_type": "timm_backbone", "backbone": "resnet101"}}
    for values in (old, new):
        backbone = descend.models.detr.read_values(values)["backbone_config"]
        assert backbone.depths == (3, 4, 23, 3)
    for wrong in ({"backbone": "resnet50", "dilation": True}, {"backbone_config": {"model_type": "convnext"}}):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "detr", **wrong}))
        with pytest.raises(Mistake, match="known: resnet"):
            descend.load(tmp_path)


@pytest.mark.system("detr", "parameters")
@pytest.mark.parametrize(("size", "count"), [("detr-resnet-50", 41_302_368), ("detr-resnet-101", 60_242_272)])
def test_trainable_parameters(size: str, count: int) -> None:
    with torch.device("meta"):
        model = Detr(SIZES[size])
    model.freeze_start()
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == count


def text_form() -> DetrConfig:
    return replace(TINY, places="index", heads=1, decoder_heads=1)


@pytest.mark.system("detr", "text-form")
def test_the_texts_form_by_its_equations() -> None:
    """Places over the flattened map, added once; scores over √d; queries that are the decoder's input."""
    torch.manual_seed(0)
    model, x = Detr(text_form()).eval(), images()
    e = model.project(model.backbone.maps(x)).flatten(2).mT
    i, j = torch.arange(e.shape[1], dtype=torch.float64)[:, None], torch.arange(16)
    angle = i / 10000 ** (2 * (j // 2) / 16)
    h = e + torch.where(j % 2 == 0, angle.sin(), angle.cos()).float()

    def look(attn: Any, a: Tensor, b: Tensor) -> Tensor:
        weights = (attn.q(a) @ attn.k(b).mT / 16**0.5).softmax(-1)
        found: Tensor = attn.out(weights @ attn.v(b))
        return found

    for layer in model.encoder:
        h = layer.norm_1(h + look(layer.attn, h, h))
        h = layer.norm_2(h + layer.mlp(h))
    y = model.queries.expand(2, -1, -1)
    for layer in model.decoder:
        y = layer.norm_1(y + look(layer.attn, y, y))
        y = layer.norm_2(y + look(layer.cross, y, h))
        y = layer.norm_3(y + layer.mlp(y))
    close(model(x).logits[-1], model.classify(model.norm(y)), loosen=5)  # a kernel against matrix products
    close(model(x).boxes[-1], model.locate(model.norm(y)).sigmoid())


@pytest.mark.system("detr", "shapes")
def test_shapes_of_the_walkthrough() -> None:
    """480×640: 15×20 maps of 2048, 300 tokens of 256, 100 queries, 81 logits with COCO's 80 classes."""
    with torch.device("meta"):
        model = Detr(DetrConfig(labels=Labels(tuple(map(str, range(80))))))
        maps = model.backbone.maps(torch.rand(1, 3, 480, 640))
        assert maps.shape == (1, 2048, 15, 20)
        assert model.project(maps).flatten(2).mT.shape == (1, 300, 256)
    assert model.queries.numel() == 25_600
    small = Detr(replace(TINY, labels=Labels(tuple(map(str, range(80))))))
    found = small(images())
    assert found.logits.shape == (2, 2, 5, 81)
    assert found.boxes.shape == (2, 2, 5, 4)


@pytest.mark.system("detr", "symmetries")
@pytest.mark.parametrize("config", [TINY, text_form()], ids=["original", "text"])
def test_queries_and_tokens_may_be_permuted(config: DetrConfig) -> None:
    torch.manual_seed(0)
    model, x = Detr(config).eval(), images()
    found, order = model(x), torch.tensor([3, 1, 4, 0, 2])
    with torch.no_grad():
        model.queries.copy_(model.queries[order])
    close(model(x).boxes[-1], found.boxes[-1][:, order])
    tokens, place = torch.randn(2, 12, 16), torch.randn(1, 12, 16)
    mixed, layer = torch.randperm(12), model.encoder[0]
    close(layer(tokens[:, mixed], place[:, mixed]), layer(tokens, place)[:, mixed])
    keys, y = tokens + place, torch.randn(2, 5, 16)
    cross = model.decoder[0]
    close(cross(y, None, keys[:, mixed], tokens[:, mixed]), cross(y, None, keys, tokens))


@pytest.mark.system("detr", "post-processing")
def test_post_processing_is_theirs() -> None:
    """max of the classes but "no object", above the threshold, boxes in pixels; at most N."""
    theirs, x = peer(), images()
    output = theirs(x)
    ours = Detr(TINY).eval()
    found = descend.ops.detection.sets.SetFound(
        output.logits[None], output.pred_boxes[None], torch.tensor([100.0, 70.0, 100.0, 70.0])
    )
    got = ours.decode(found, least=0.3)
    assert got.boxes.shape[1] <= 5
    processor = transformers.models.detr.image_processing_pil_detr.DetrImageProcessorPil()
    expected = processor.post_process_object_detection(output, threshold=0.3, target_sizes=[(70, 100)] * 2)
    for i, one in enumerate(expected):
        order, kept = one["scores"].argsort(descending=True), got.classes[i] >= 0
        close(got.scores[i][kept], one["scores"][order])
        close(got.boxes[i][kept], one["boxes"][order])
        assert torch.equal(got.classes[i][kept], one["labels"][order])
        assert (got.scores[i][~kept] == 0).all()


@pytest.mark.system("detr", "learns")
def test_it_learns_four_images_without_suppression() -> None:
    """Boxes of different colours: each is found once, in the right class, by the end of 120 steps."""
    torch.manual_seed(0)
    backbone = ResNetConfig(stem=8, widths=(8, 16, 24), depths=(1, 1, 1), block="basic")
    config = replace(TINY, backbone=backbone, queries=8, width=32, heads=4, decoder_heads=4, hidden=64)
    model, criterion = Detr(config), SetPrediction()
    truth = Boxes(
        torch.tensor([[[4.0, 4, 24, 20], [30, 30, 60, 62]], [[10, 34, 40, 60], [0, 0, 0, 0]], [[0, 0, 0, 0]] * 2]),
        torch.tensor([[0, 1], [2, -1], [-1, -1]]),
        torch.tensor([[1.0, 1], [1, 0], [0, 0]]),
    )
    x = torch.zeros(3, 3, 64, 64)
    for image, boxes, classes in zip(x, truth.boxes.int().tolist(), truth.classes.tolist(), strict=True):
        for (x0, y0, x1, y1), k in zip(boxes, classes, strict=True):
            image[max(k, 0), y0:y1, x0:x1] = 1
    optim = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(120):
        optim.zero_grad()
        criterion(model(x), truth, torch.zeros(3, 0)).total().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
    found = model.decode(model(x), least=0.5)
    assert (found.classes >= 0).sum(1).tolist() == [2, 1, 0]
    for i, j in ((0, 0), (0, 1), (1, 0)):
        iou = descend.ops.boxes.box_iou(found.boxes[i], truth.boxes[i, j])
        best = int(iou.argmax())
        assert iou[best] > 0.6
        assert found.classes[i, best] == truth.classes[i, j]
