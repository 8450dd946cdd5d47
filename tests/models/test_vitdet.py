"""ViTDet against transformers' own, both ways; windows, positions, pyramids; a detector in both forms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

import descend
from descend.contracts import Boxes, Detects
from descend.errors import Mistake
from descend.losses.detection.task_aligned import TaskAligned
from descend.models.vit_detector import TINY as TINY_DETECTOR
from descend.models.vit_detector import TINY_INPUT as DETECTOR_INPUT
from descend.models.vit_detector import TINY_PLAIN, VitDetector, VitDetectorConfig
from descend.models.vitdet import TINY, TINY_INPUT, ConvBottleneck, VitDet, VitDetConfig
from descend.nn.attention.decomposed_positions import DecomposedAttention, MapAttention, attend_in_windows
from descend.nn.detection.plain_pyramid import PlainPyramid
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "mlp_ratio": 2, "image_size": 24,
         "pretrain_image_size": 16, "patch_size": 4}  # fmt: skip
FORMS = {
    "global": {},
    "windows": {"window_size": 3, "window_block_indices": [0, 2]},
    "relative": {"window_size": 4, "window_block_indices": [0, 1], "use_relative_position_embeddings": True},
    "residual": {"residual_block_indices": [1]},
    "no-bias": {"qkv_bias": False, "use_relative_position_embeddings": True},
}


def pixels(height: int = 24, width: int = 24) -> Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.system("vit-det")
@pytest.mark.system("vit-det", "transformers")
@pytest.mark.parametrize("form", FORMS)
def test_both_ways(form: str, tmp_path: Path) -> None:
    """Windows that tile the map and that do not, relative and absolute positions, convolutions between blocks."""
    theirs = random_peer(transformers.VitDetModel, transformers.VitDetConfig(**SMALL, **FORMS[form]), std=0.1)
    x = pixels()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).last_hidden_state)
    maps = theirs(x, output_hidden_states=True).hidden_states
    for a, b in zip(ours.walk(x), maps, strict=True):
        close(a, b)
    wide = pixels(16, 28)  # absolute and relative positions are interpolated
    close(ours(wide), theirs(wide).last_hidden_state)
    backbone = transformers.VitDetBackbone.from_pretrained(tmp_path / "ours").eval()
    close(ours(x), backbone(x).feature_maps[-1])


@pytest.mark.system("vit-det", "transformers")
def test_gradients(tmp_path: Path) -> None:
    theirs = random_peer(transformers.VitDetModel, transformers.VitDetConfig(**SMALL, **FORMS["relative"]), std=0.1)
    theirs.save_pretrained(tmp_path)
    ours, x = descend.load(tmp_path), pixels()
    ours(x).square().sum().backward()
    theirs(x).last_hidden_state.square().sum().backward()
    close(ours.blocks[0].attn.rows.grad, theirs.encoder.layer[0].attention.rel_pos_h.grad)
    close(ours.blocks[2].attn.columns.grad, theirs.encoder.layer[2].attention.rel_pos_w.grad)
    close(ours.patches.weight.grad, theirs.embeddings.projection.weight.grad)


@pytest.mark.system("vit-det", "windows")
@pytest.mark.parametrize("relative", [False, True])
def test_a_window_that_is_the_whole_map_is_global(relative: bool) -> None:
    torch.manual_seed(0)
    whole = VitDet(replace(TINY, side=16, relative=relative, window=0, windowed=())).eval()
    windows = VitDet(replace(TINY, side=16, relative=relative, window=4, windowed=(0, 1))).eval()
    windows.load_state_dict(whole.state_dict())
    x = pixels(16, 16)
    close(windows(x), whole(x))


@pytest.mark.system("vit-det", "windows")
def test_windows_do_not_see_each_other() -> None:
    """A pixel changes its own window alone; after a global block, everything."""
    torch.manual_seed(0)
    x, other = pixels(), pixels()
    other[:, :, 1, 1] += 1
    for windowed, reached in (((0, 1), 9), ((0,), 36)):
        model = VitDet(replace(TINY, window=3, windowed=windowed)).eval()
        moved = (model(x) - model(other)).abs().amax(dim=(0, 1)) > 1e-7
        assert int(moved.sum()) == reached
        assert moved[:3, :3].all()


@pytest.mark.system("vit-det", "windows")
def test_attention_with_decomposed_positions_by_hand() -> None:
    """The n² matrix E written down, against one longer dot product; float64, with gradients."""
    torch.manual_seed(0)
    attn = DecomposedAttention(12, 2, 3, 4).double()
    x = torch.randn(2, 3, 4, 12, dtype=torch.float64, requires_grad=True)
    q, k, v = attn.qkv(x).flatten(1, 2).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT / 6**0.5
    for a in range(12):
        for b in range(12):
            (i, j), (r, c) = divmod(a, 4), divmod(b, 4)
            place = attn.rows[i - r + 2] + attn.columns[j - c + 3]
            scores[:, :, a, b] = scores[:, :, a, b] + q[:, :, a] @ place
    expected = attn.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2).unflatten(1, (3, 4)))
    close(attn(x), expected)
    weight = torch.randn(2, 3, 4, 12, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((y * weight).sum(), attn.rows)[0] for y in (attn(x), expected))
    close(ours, theirs)


def test_padding_of_windows_takes_part() -> None:
    """Zeros are keys like others (as released), so a window at the edge differs from attention without them."""
    torch.manual_seed(0)
    attn = MapAttention(8, 2)
    x = torch.randn(1, 2, 3, 8)
    padded = F.pad(x, (0, 0, 0, 1, 0, 2))
    close(attend_in_windows(attn, x, 4), attn(padded)[:, :2, :3])
    assert not torch.allclose(attend_in_windows(attn, x, 4), attn(x), atol=1e-3)


@pytest.mark.system("vit-det", "plain-pyramid")
def test_the_plain_pyramid_by_hand() -> None:
    """Deconvolutions as blocks of 2 × 2, norms over channels, every level by the equations."""
    torch.manual_seed(0)
    pyramid = PlainPyramid(8, 6).double()
    for p in pyramid.parameters():
        nn.init.normal_(p)
    x = torch.randn(2, 8, 4, 6).double()

    def up(x: Tensor, layer: Any) -> Tensor:
        blocks = torch.einsum("bchw,cdij->bdhiwj", x, layer.weight)
        return blocks.flatten(4, 5).flatten(2, 3) + layer.bias[:, None, None]

    def norm(x: Tensor, layer: Any) -> Tensor:
        mean, var = x.mean(1, keepdim=True), x.var(1, keepdim=True, unbiased=False)
        return (x - mean) / (var + 1e-6).sqrt() * layer.weight[:, None, None] + layer.bias[:, None, None]

    fine, half, same, coarse = pyramid.levels
    two = F.gelu(norm(up(x, fine[0][0]), fine[0][1]))
    starts = [up(two, fine[0][3]), up(x, half[0][0]), x, x.unfold(2, 2, 2).unfold(3, 2, 2).amax(dim=(4, 5))]
    for level, start, found in zip((fine, half, same, coarse), starts, pyramid(x), strict=True):
        y = norm(torch.einsum("bchw,dc->bdhw", start, level[1].weight[:, :, 0, 0]), level[2])
        close(found, norm(F.conv2d(y, level[3].weight, padding=1), level[4]))
    with pytest.raises(ValueError, match="give a multiple of 4"):
        PlainPyramid(6, 4)


@pytest.mark.system("vit-det", "strides")
@pytest.mark.parametrize("config", [TINY_DETECTOR, TINY_PLAIN], ids=["hierarchical", "plain"])
def test_maps_at_four_strides(config: VitDetectorConfig, tmp_path: Path) -> None:
    """4, 8, 16, 32, of either backbone; the folder opens again."""
    torch.manual_seed(0)
    model, x = VitDetector(config).eval(), DETECTOR_INPUT()
    assert config.strides == (4, 8, 16, 32)
    assert [tuple(m.shape[1:]) for m in model.body(x)] == [(8, 64 // s, 96 // s) for s in config.strides]
    found = model(x)
    assert found.logits.shape == (2, sum(64 * 96 // s**2 for s in config.strides), 3)
    assert isinstance(model, Detects)
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert again.config == config
    assert torch.equal(again(x).boxes, found.boxes)


@pytest.mark.system("vit-det", "backbones")
@pytest.mark.parametrize("config", [TINY_DETECTOR, TINY_PLAIN], ids=["hierarchical", "plain"])
def test_the_backbone_is_the_one_of_transformers(config: VitDetectorConfig, tmp_path: Path) -> None:
    """What is below `backbone.` in the file, as a folder of its own, opens in transformers and gives the same maps."""
    torch.manual_seed(0)
    model, x = VitDetector(config).eval(), DETECTOR_INPUT()
    model.save_pretrained(tmp_path / "ours")
    values = load_file(tmp_path / "ours" / "model.safetensors")
    inner = {k.removeprefix("backbone."): v for k, v in values.items() if k.startswith("backbone.")}
    named = json.loads((tmp_path / "ours" / "config.json").read_text())["backbone_config"]
    (tmp_path / "inner").mkdir()
    save_file(inner, tmp_path / "inner" / "model.safetensors", {"format": "pt"})
    stages = [f"stage{i}" for i in (1, 2, 3, 4)] if named["model_type"] == "swin" else ["stage2"]
    (tmp_path / "inner" / "config.json").write_text(json.dumps(named | {"out_features": stages}))
    kind = transformers.SwinBackbone if named["model_type"] == "swin" else transformers.VitDetBackbone
    with torch.no_grad():
        maps = kind.from_pretrained(tmp_path / "inner").eval()(x).feature_maps
        ours = model.body.backbone.pyramid(x) if len(maps) == 4 else [model.body.backbone.maps(x)]
    for a, b in zip(ours, maps, strict=True):
        if len(maps) == 4:  # there each map goes through a norm, which is new
            a = F.layer_norm(a.movedim(1, -1), a.shape[1:2]).movedim(-1, 1)
        close(a, b)


@pytest.mark.system("vit-det", "learns")
@pytest.mark.parametrize("config", [TINY_DETECTOR, TINY_PLAIN], ids=["hierarchical", "plain"])
def test_it_learns_two_images(config: VitDetectorConfig) -> None:
    torch.manual_seed(0)
    model, x = VitDetector(replace(config, bins=8)), DETECTOR_INPUT()[:, :, :, :64]
    boxes = torch.tensor([[[4.0, 6, 30, 40], [34, 20, 60, 60]], [[10.0, 10, 50, 50], [0, 0, 0, 0]]])
    truth = Boxes(boxes, torch.tensor([[0, 2], [1, -1]]), torch.ones(2, 2))
    rule, loss = torch.optim.AdamW(model.parameters(), 1e-2), TaskAligned()
    for _ in range(60):
        rule.zero_grad()
        loss(model(x), truth, torch.zeros(2, 0)).total().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        rule.step()
    found = model.eval().decode(model(x), least=0.3)
    assert found.classes[1, 0] == 1
    assert (found.boxes[1, 0] - boxes[1, 0]).abs().max() < 8
    assert set(found.classes[0, :2].tolist()) == {0, 2}


@pytest.mark.system("vit-det", "windows")
def test_without_absolute_positions() -> None:
    """The same as positions of 0."""
    torch.manual_seed(0)
    placed, bare = VitDet(TINY).eval(), VitDet(replace(TINY, absolute=False)).eval()
    nn.init.zeros_(placed.position)
    bare.load_state_dict({k: v for k, v in placed.state_dict().items() if k != "position"})
    close(bare(TINY_INPUT()), placed(TINY_INPUT()))


def test_the_convolution_between_blocks_begins_as_nothing() -> None:
    x = torch.randn(2, 3, 4, 8)
    assert torch.equal(ConvBottleneck(8)(x), x)


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="but the window is 0"):
        VitDetConfig(windowed=(1,))
    with pytest.raises(ValueError, match="do not tile"):
        VitDet(TINY)(TINY_INPUT()[..., :27])
    with pytest.raises(ValueError, match="a multiple of 4"):
        VitDetectorConfig(backbone=VitDetConfig(patch=14))
    VitDetector(TINY_DETECTOR).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"swin"', '"resnet"'))
    with pytest.raises(Mistake, match="'resnet' is not known; known: swin, vitdet"):
        descend.load(tmp_path)
