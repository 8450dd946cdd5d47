"""The conditioned U-Net against diffusers' own, both ways; cross-attention and concatenation by their properties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.models.unet_2d_condition import PARAMETERS, SIZES, TINY, UNet2DCondition
from descend.nn.diffusion.conditioning import ConditionedMap, ContextAttention
from tests.close import close
from tests.models.test_unet_2d import settings

diffusers = pytest.importorskip("diffusers")
SHAPE: dict[str, Any] = {
    "sample_size": 16,
    "block_out_channels": (32, 64, 64),
    "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    "norm_num_groups": 8,
}
FORMS: dict[str, dict[str, Any]] = {
    "version-1": {"attention_head_dim": 4, "cross_attention_dim": 24},
    "version-2": {"attention_head_dim": (2, 4, 4), "cross_attention_dim": 20, "use_linear_projection": True},
    "inpainting": {"attention_head_dim": 8, "cross_attention_dim": 24, "in_channels": 9, "layers_per_block": 1},
}


def make(form: str, folder: Path) -> Any:
    """A network of diffusers with random weights, saved."""
    torch.manual_seed(0)
    model: Any = diffusers.UNet2DConditionModel(**SHAPE, **FORMS[form]).eval()
    model.save_pretrained(folder)
    return model


def inputs(form: str) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(3, FORMS[form].get("in_channels", 4), 16, 16, generator=random)
    return x, torch.tensor([0, 37, 999]), torch.randn(3, 7, FORMS[form]["cross_attention_dim"], generator=random)


@pytest.mark.system("diffusion-conditioning")
@pytest.mark.system("diffusion-conditioning", "cross-attention")
@pytest.mark.parametrize("form", FORMS)
def test_outputs_are_those_of_diffusers_both_ways(form: str, tmp_path: Path) -> None:
    theirs = make(form, tmp_path / "theirs")
    ours, (x, t, y) = descend.load(tmp_path / "theirs"), inputs(form)
    assert isinstance(ours, UNet2DCondition)
    with torch.no_grad():
        expected = theirs(x, t, encoder_hidden_states=y).sample
        close(ours(x, t, y), expected)
        ours.save_pretrained(tmp_path / "ours")
        again = diffusers.UNet2DConditionModel.from_pretrained(tmp_path / "ours").eval()
        assert torch.equal(again(x, t, encoder_hidden_states=y).sample, expected)
    there = settings(tmp_path / "theirs")
    assert settings(tmp_path / "ours").items() <= there.items()


@pytest.mark.system("diffusion-conditioning", "cross-attention")
def test_the_published_sizes() -> None:
    for name, count in PARAMETERS.items():
        with torch.device("meta"):
            model = UNet2DCondition(SIZES[name])
        assert sum(p.numel() for p in model.parameters()) == count
    assert PARAMETERS["stable-diffusion-1"] == 859_520_964
    assert PARAMETERS["stable-diffusion-2"] == 865_910_724


@pytest.mark.system("diffusion-conditioning", "scale")
def test_the_scale_is_the_root_of_the_size_of_a_head() -> None:
    torch.manual_seed(0)
    layer = ContextAttention(12, 3, 7).double()
    x, source = torch.randn(2, 5, 12).double(), torch.randn(2, 4, 7).double()
    heads = []
    for i in range(3):
        rows = slice(4 * i, 4 * i + 4)
        q, k, v = x @ layer.q.weight[rows].T, source @ layer.k.weight[rows].T, source @ layer.v.weight[rows].T
        heads.append((q @ k.mT / 4**0.5).softmax(-1) @ v)
    close(layer(x, source), layer.out(torch.cat(heads, -1)))


@pytest.mark.system("diffusion-conditioning", "properties")
def test_cross_attention_by_its_properties() -> None:
    torch.manual_seed(0)
    layer = ContextAttention(8, 2, 6).double()
    x, source = torch.randn(2, 9, 8).double(), torch.randn(2, 5, 6).double()
    equal = source[:, :1].expand(-1, 5, -1)
    close(layer(x, equal), layer.out(layer.v(equal[:, :1])).expand(-1, 9, -1))  # constant V rows give that row
    close(layer(x, source[:, torch.tensor([3, 0, 4, 1, 2])]), layer(x, source))
    ours = UNet2DCondition(TINY).double().eval()
    z, t = torch.randn(2, 2, 8, 8).double(), torch.tensor([5, 9])
    for length in (1, 3, 77):
        y = torch.randn(2, length, 6).double()
        assert ours(z, t, y).shape == z.shape
        close(ours(z, t, y.flip(1)), ours(z, t, y))
    with pytest.raises(ValueError, match="needs a condition"):
        ours(z, t)
    with pytest.raises(ValueError, match="7 wide"):
        ours(z, t, torch.randn(2, 3, 7).double())


@pytest.mark.system("diffusion-conditioning", "levels")
def test_the_condition_enters_at_several_levels() -> None:
    """Each ConditionedMap has a gradient with respect to the condition: down, bottom and up."""
    torch.manual_seed(0)
    ours = UNet2DCondition(replace(TINY, widths=(8, 16, 16), attention=(True, True, False), blocks=2))
    maps = {name: module for name, module in ours.named_modules() if isinstance(module, ConditionedMap)}
    assert {name.split(".")[0] for name in maps} == {"down_blocks", "mid_block", "up_blocks"}
    assert len(maps) == 2 * 2 + 1 + 2 * 3
    seen: dict[str, Tensor] = {}
    for name, module in maps.items():
        module.register_forward_pre_hook(lambda _, args, name=name: (args[0], seen.setdefault(name, own(args[1]))))
    x = torch.randn(1, 2, 8, 8)
    ours(x, torch.tensor([4]), torch.randn(1, 3, 6)).square().sum().backward()
    assert len(seen) == len(maps)
    assert all(y.grad is not None and y.grad.abs().sum() > 0 for y in seen.values())


def own(y: Tensor) -> Tensor:
    """A copy of the condition for one level."""
    return y.detach().clone().requires_grad_()


@pytest.mark.system("diffusion-conditioning", "concatenation")
def test_new_channels_change_nothing_until_they_are_trained(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ours = UNet2DCondition(TINY).eval()
    x, t, y = torch.randn(2, 2, 8, 8), torch.tensor([5, 9]), torch.randn(2, 3, 6)
    extra = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        before = ours(x, t, y)
        ours.widen(5)
        close(ours(torch.cat([x, extra], 1), t, y), before)
        assert torch.equal(ours(torch.cat([x, extra], 1), t, y), ours(torch.cat([x, 0 * extra], 1), t, y))
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    ours(torch.cat([x, extra], 1), t, y).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        assert not torch.allclose(ours(torch.cat([x, extra], 1), t, y), ours(torch.cat([x, 0 * extra], 1), t, y))
    ours.save_pretrained(tmp_path)
    assert descend.load(tmp_path).config.channels == 5
    with pytest.raises(ValueError, match="cannot have only 3"):
        ours.widen(3)
