"""Swin against transformers' own, both ways; patch merging against a convolution; maps of every size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.errors import Mistake
from descend.models.swin import TINY, PatchMerging, Swin, SwinConfig, SwinForImageClassification, neighbours
from descend.weights.labels import Labels
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(kind: str = "SwinForImageClassification", window: int = 3, classes: int = 5) -> Any:
    config = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=8, depths=[2, 3], num_heads=[2, 4], window_size=window,
        num_labels=classes, mlp_ratio=3.0,
    )  # fmt: skip
    return random_peer(getattr(transformers, kind), config)


def pixels(height: int, width: int) -> Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("swin")
@pytest.mark.system("swin", "transformers")
@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "padding")
@pytest.mark.parametrize(
    ("height", "width", "window"), [(32, 32, 4), (48, 24, 3), (45, 54, 3), (32, 32, 3)],
    ids=["whole windows", "not square", "padded everywhere", "padded windows"],
)  # fmt: skip
def test_classifier_both_ways(height: int, width: int, window: int, tmp_path: Path) -> None:
    """In float64: the same to the last digits, gradients too."""
    theirs, x = peer(window=window), pixels(height, width)
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    theirs, ours, x = theirs.double(), ours.double(), x.double()
    close(ours(x), theirs(x).logits)
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    block = theirs.swin.encoder.layers[0].blocks[1].attention
    close(ours.stages[0][1].attn.offsets.grad, block.relative_position_bias.relative_position_bias_table.grad)
    close(ours.stages[0][1].attn.k.weight.grad, block.k_proj.weight.grad)
    close(ours.embed.weight.grad, theirs.swin.embeddings.patch_embeddings.projection.weight.grad)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "transformers")
def test_the_bare_model_both_ways(tmp_path: Path) -> None:
    theirs, x = peer("SwinModel"), pixels(38, 26)

    def flat(m: Any) -> Tensor:
        out = m(x)
        return torch.cat([out[0].flatten(), out[1].flatten()])

    ours = check_both_ways(theirs, tmp_path, flat, flat)
    assert ours(x).hidden.shape == (2, 5 * 4, 16)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "pyramid")
def test_maps_of_the_stages(tmp_path: Path) -> None:
    """The pyramid is made of transformers' maps before each merge; a classifier's missing head is named."""
    theirs, x = peer("SwinModel"), pixels(32, 48)
    theirs.save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="missing key 'classifier"):
        SwinForImageClassification.from_pretrained(tmp_path)
    states, size = theirs.embeddings(x)
    for ours, layer in zip(Swin.from_pretrained(tmp_path).pyramid(x), theirs.encoder.layers, strict=True):
        before = layer(states, size, output_hidden_states_before_downsampling=True)
        close(ours, before[1])
        states, size = before[0], (size[0] // 2, size[1] // 2)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "pyramid")
def test_feature_maps_halve_and_channels_double() -> None:
    config = SwinConfig(width=8, heads=(1, 2, 2, 4), depths=(1, 1, 1, 1), window=4, drop_path=0.0)
    model = SwinForImageClassification(config).eval()
    maps = model.pyramid(pixels(64, 96))
    assert [tuple(m.shape[1:]) for m in maps] == [(8, 16, 24), (16, 8, 12), (32, 4, 6), (64, 2, 3)]  # h/4 .. h/32
    assert model.maps(pixels(64, 96)).shape == (2, 64, 2, 3)
    close(model.features(pixels(64, 96)), model.maps(pixels(64, 96)).mean((2, 3)))


@pytest.mark.system("swin")
@pytest.mark.system("swin", "merging")
def test_merging_is_a_strided_convolution_with_its_weights_in_another_order() -> None:
    """4d -> 2d ((27.8) is garbled), after the norm of the four."""
    torch.manual_seed(0)
    layer, x = PatchMerging(3).double(), torch.randn(2, 4, 6, 3, dtype=torch.float64)
    four = layer.norm(neighbours(x)).unflatten(-1, (2, 2, 3))  # column, row, channel
    spread = four.permute(0, 5, 1, 4, 2, 3).reshape(2, 3, 4, 6)  # back in place, normed
    kernel = layer.reduce.weight.unflatten(1, (2, 2, 3)).permute(0, 3, 2, 1)  # out, channel, row, column
    close(layer(x), F.conv2d(spread, kernel, stride=2).permute(0, 2, 3, 1))
    rows = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
    assert torch.equal(neighbours(x), torch.cat(rows, dim=-1))
    assert layer(torch.randn(1, 5, 3, 3, dtype=torch.float64)).shape == (1, 3, 2, 6)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "learns")
def test_it_learns() -> None:
    """A dozen images by heart, stochastic depth on."""
    torch.manual_seed(0)
    config = SwinConfig(side=16, width=16, depths=(2, 2), heads=(2, 4), window=2, labels=Labels(tuple("abc")))
    model, x, y = SwinForImageClassification(config), torch.randn(12, 3, 16, 16), torch.arange(12) % 3
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert F.cross_entropy(model.eval()(x), y) < 0.05


def test_stochastic_depth_grows_to_the_last_block() -> None:
    with torch.device("meta"):
        model = SwinForImageClassification(SwinConfig())
    close([block.path.p for stage in model.stages for block in stage], torch.linspace(0, 0.1, 12))


def test_older_files_with_the_index_in_them(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = SwinForImageClassification(TINY)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    name = "swin.encoder.layers.0.blocks.0.attention.self.relative_position_index"
    save_file(tensors | {name: torch.zeros(9, 9, dtype=torch.long)}, tmp_path / "model.safetensors")
    assert SwinForImageClassification.from_pretrained(tmp_path).config == TINY


def test_depths_and_heads_must_agree() -> None:
    with pytest.raises(ValueError, match="2 depths and 3 numbers of heads"):
        SwinConfig(depths=(2, 2), heads=(2, 4, 8))
