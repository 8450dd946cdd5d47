"""The diffusion U-Net against diffusers' own, both ways, and by its properties."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import descend
from descend.errors import Mistake
from descend.models.unet_2d import PARAMETERS, SIZES, TINY, UNet2D
from descend.nn.diffusion.blocks import ResidualBlock
from descend.nn.diffusion.levels import UpLevel, count_kept
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time
from descend.ops.attention.positions import sinusoidal
from tests.close import close

diffusers = pytest.importorskip("diffusers")
SHAPE: dict[str, Any] = {
    "sample_size": 16,
    "block_out_channels": (32, 48, 64),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 2,
    "norm_num_groups": 8,
}
FORMS: dict[str, dict[str, Any]] = {
    "standard": {"attention_head_dim": 16},
    "first-ddpm": {
        "attention_head_dim": None, "downsample_padding": 0, "flip_sin_to_cos": False, "freq_shift": 1, "norm_eps": 1e-6
    },
    "classes": {"attention_head_dim": 8, "num_class_embeds": 11, "in_channels": 1, "out_channels": 2},
}  # fmt: skip


def make(form: str, folder: Path) -> Any:
    """A network of diffusers with random weights, saved."""
    torch.manual_seed(0)
    model: Any = diffusers.UNet2DModel(**SHAPE, **FORMS[form]).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.1) if p.dim() < 2 else None
    model.save_pretrained(folder)
    return model


def settings(folder: Path) -> dict[str, Any]:
    """config.json without the release and the path."""
    values: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return {name: value for name, value in values.items() if name not in ("_diffusers_version", "_name_or_path")}


def inputs(form: str) -> tuple[Tensor, Tensor, Tensor | None]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(3, FORMS[form].get("in_channels", 3), 16, 16, generator=random)
    y = torch.tensor([0, 10, 4]) if "num_class_embeds" in FORMS[form] else None
    return x, torch.tensor([0, 37, 999]), y


@pytest.mark.system("diffusion-unet")
@pytest.mark.system("diffusion-unet", "diffusers-both-ways")
@pytest.mark.parametrize("form", FORMS)
def test_outputs_are_those_of_diffusers_both_ways(form: str, tmp_path: Path) -> None:
    theirs = make(form, tmp_path / "theirs")
    ours, (x, t, y) = descend.load(tmp_path / "theirs"), inputs(form)
    assert isinstance(ours, UNet2D)
    with torch.no_grad():
        expected = theirs(x, t, class_labels=y).sample
        close(ours(x, t, y), expected)
        ours.save_pretrained(tmp_path / "ours")
        again = diffusers.UNet2DModel.from_pretrained(tmp_path / "ours").eval()
        assert torch.equal(again(x, t, class_labels=y).sample, expected)
    assert settings(tmp_path / "ours") == settings(tmp_path / "theirs")


@pytest.mark.system("diffusion-unet", "paper-size")
def test_the_papers_configuration_has_35_746_307_parameters() -> None:
    with torch.device("meta"):
        ours = UNet2D(SIZES["ddpm-cifar10-32"])
    assert sum(p.numel() for p in ours.parameters()) == PARAMETERS["ddpm-cifar10-32"] == 35_746_307


@pytest.mark.system("diffusion-unet", "blocks")
def test_two_blocks_down_and_three_up_so_that_every_kept_map_is_taken_once() -> None:
    with torch.device("meta"):
        ours: Any = UNet2D(SIZES["ddpm-cifar10-32"])
    assert [len(level.resnets) for level in ours.down_blocks] == [2, 2, 2, 2]
    assert [len(level.resnets) for level in ours.up_blocks] == [3, 3, 3, 3]
    assert len(count_kept((128, 256, 256, 256), 2)) == 12
    kept = [torch.zeros(1, 8, 4, 4) for _ in range(3)]
    up = UpLevel([ResidualBlock(16, 8, 4, 1e-5) for _ in range(3)], [], None)
    up(torch.zeros(1, 8, 4, 4), kept)
    assert kept == []


@pytest.mark.system("diffusion-unet", "time-embedding")
def test_the_time_embedding_is_the_transformers_encoding() -> None:
    """The same numbers at position t, sines and cosines in two halves instead of in turn."""
    t = torch.tensor([0, 1, 17, 999])
    encoding = sinusoidal(t, 32)
    close(embed_time(t, 32), torch.cat([encoding[:, 0::2], encoding[:, 1::2]], -1), loosen=5)  # float32 of 999
    close(embed_time(t, 32, cosine_first=True), torch.cat([encoding[:, 1::2], encoding[:, 0::2]], -1), loosen=5)
    slowest = embed_time(torch.tensor([10000.0 * torch.pi / 2]), 32, shift=1)[0, 15]
    close(slowest, torch.tensor(1.0), loosen=5)  # shift 1: the slowest wave has the frequency 1/10000
    assert embed_time(t, 33).shape == (4, 33)
    layer = TimeEmbedding(8, 12)
    waves = embed_time(t, 8)
    by_hand = nn.functional.silu(waves @ layer.linear_1.weight.T + layer.linear_1.bias)
    close(layer(waves), by_hand @ layer.linear_2.weight.T + layer.linear_2.bias)


@pytest.mark.system("diffusion-unet", "any-size")
def test_any_size_that_can_be_halved_and_no_other() -> None:
    torch.manual_seed(0)
    ours = UNet2D(replace(TINY, classes=None)).eval()
    for sides in ((8, 8), (4, 10), (12, 6)):
        assert ours(torch.randn(2, 1, *sides), torch.tensor([1, 2])).shape == (2, 1, *sides)
    with pytest.raises(ValueError, match="multiples of 2"):
        ours(torch.randn(1, 1, 9, 8), torch.tensor([1]))
    x = torch.randn(1, 1, 8, 8)
    assert not torch.allclose(ours(x, torch.tensor([1])), ours(x, torch.tensor([400])))
    close(ours(x, 5), ours(x, torch.tensor([5])))


@pytest.mark.system("diffusion-unet", "class-embedding")
def test_the_class_changes_the_output_and_must_be_told() -> None:
    torch.manual_seed(0)
    ours, x, t = UNet2D(TINY).eval(), torch.randn(2, 1, 8, 8), torch.tensor([3, 3])
    assert not torch.allclose(ours(x, t, torch.tensor([0, 0])), ours(x, t, torch.tensor([1, 1])))
    with pytest.raises(ValueError, match="5 classes"):
        ours(x, t)
    with pytest.raises(ValueError, match="no classes"):
        UNet2D(replace(TINY, classes=None))(x, t, torch.tensor([0, 0]))


@pytest.mark.system("diffusion-unet", "images-alone")
def test_an_image_does_not_depend_on_the_others_of_its_batch() -> None:
    torch.manual_seed(0)
    ours, x = UNet2D(TINY).double().eval(), torch.randn(3, 1, 8, 8).double()
    t, y = torch.tensor([3, 90, 700]), torch.tensor([0, 1, 2])
    alone = torch.cat([ours(x[i : i + 1], t[i : i + 1], y[i : i + 1]) for i in range(3)])
    close(ours(x, t, y), alone)


@pytest.mark.system("diffusion-unet", "images-alone")
def test_gradients_are_those_of_diffusers(tmp_path: Path) -> None:
    theirs = make("standard", tmp_path)
    ours, (x, t, _) = descend.load(tmp_path), inputs("standard")
    ours(x, t).square().mean().backward()
    theirs(x, t).sample.square().mean().backward()
    there = dict(theirs.named_parameters())
    for name in ("conv_in.weight", "time_embedding.linear_1.weight", "up_blocks.2.resnets.2.conv_shortcut.weight"):
        close(dict(ours.named_parameters())[name].grad, there[name].grad, loosen=20)  # sums over all places
    query = dict(ours.named_parameters())["mid_block.attentions.0.q.weight"].grad
    close(query, there["mid_block.attentions.0.to_q.weight"].grad, loosen=20)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"down_block_types": ("SkipDownBlock2D",) * 3}, "SkipDownBlock2D"),
        ({"up_block_types": ("AttnUpBlock2D", "UpBlock2D", "UpBlock2D")}, "mirror"),
        ({"resnet_time_scale_shift": "scale_shift"}, "scale_shift"),
    ],
)
def test_what_is_computed_otherwise_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    make("standard", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Mistake, match=said):
        descend.load(tmp_path)


def test_a_pickle_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    theirs = make("standard", tmp_path)
    expected = theirs(*inputs("standard")[:2]).sample
    (tmp_path / "diffusion_pytorch_model.safetensors").unlink()
    torch.save(theirs.state_dict(), tmp_path / "diffusion_pytorch_model.bin")
    with pytest.raises(Mistake, match="is a pickle") as told:
        descend.load(tmp_path)
    command = str(told.value).partition('python -c "')[2].removesuffix('"')
    exec(command, {})  # the way that it says
    close(descend.load(tmp_path)(*inputs("standard")[:2]), expected)


def test_files_with_the_older_names_of_attention_open(tmp_path: Path) -> None:
    theirs = make("standard", tmp_path)
    path = tmp_path / "diffusion_pytorch_model.safetensors"
    older = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    tensors = {}
    for key, tensor in load_file(path).items():
        for new, old in older.items():
            key = key.replace(f".{new}.", f".{old}.")
        tensors[key] = tensor
    save_file(tensors, path)
    x, t, _ = inputs("standard")
    with torch.no_grad():
        close(descend.load(tmp_path)(x, t), theirs(x, t).sample)


@pytest.mark.system("diffusion-unet", "trained")
def test_it_learns_the_noise_of_one_image() -> None:
    torch.manual_seed(0)
    ours = UNet2D(replace(TINY, classes=None, widths=(16, 32), head_size=None))
    x0 = torch.randn(1, 1, 8, 8).expand(32, -1, -1, -1)
    t, noise = torch.arange(0, 1000, 1000 // 32)[:32], torch.randn(32, 1, 8, 8)
    share = (1 - t / 1000)[:, None, None, None]
    xt = share.sqrt() * x0 + (1 - share).sqrt() * noise
    optimizer = torch.optim.AdamW(ours.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        loss = (ours(xt, t) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
