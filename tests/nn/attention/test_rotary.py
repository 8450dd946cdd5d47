"""Longer contexts: factor 1 changes nothing, interpolated angles stay in the trained range, the ends of each rule."""

from __future__ import annotations

import math

import pytest
import torch

from descend.nn.attention.rotary import Rope, ntk_base, rope_of_older_files, rotate
from tests.close import close


@pytest.mark.system("rope-scaling", "identity")
@pytest.mark.system("rope-scaling")
@pytest.mark.parametrize("kind", ["linear", "llama3", "dynamic", "yarn"])
def test_factor_one_is_the_identity(kind: str) -> None:
    positions, rope = torch.arange(64), Rope(kind=kind, original=64)
    assert rope.reach(64) == 64
    for ours, plain in zip(rope.angles(positions, 16, 64), Rope().angles(positions, 16), strict=True):
        close(ours, plain)


@pytest.mark.system("rope-scaling", "further")
@pytest.mark.system("rope-scaling")
def test_dynamic_positions() -> None:
    """Within the trained context nothing changes; beyond it the base is that of the length, and grows."""
    rope = Rope(kind="dynamic", factor=2.0)
    close(rope.angles(torch.arange(64), 16, 64)[0], Rope().angles(torch.arange(64), 16)[0])
    long = rope.angles(torch.arange(128), 16, 64)[0]
    close(long, Rope(theta=ntk_base(1e4, 16, 3.0)).angles(torch.arange(128), 16)[0])  # 2 · 128 / 64 − 1 = 3
    assert rope.reach(64) == 128
    with pytest.raises(ValueError, match="needs the context"):
        rope.angles(torch.arange(4), 16)


@pytest.mark.system("rope-scaling", "ntk")
@pytest.mark.system("rope-scaling")
def test_the_base_keeps_the_shortest_wave_and_stretches_the_longest() -> None:
    plain, longer = Rope().frequencies(16), Rope(theta=ntk_base(1e4, 16, 4.0)).frequencies(16)
    assert longer[0] == plain[0]
    close(plain[-1] / longer[-1], torch.tensor(4.0))


@pytest.mark.system("rope-scaling", "interpolation")
@pytest.mark.system("rope-scaling")
def test_interpolated_angles_stay_in_the_trained_range() -> None:
    plain, linear = Rope(), Rope(kind="linear", factor=4.0)
    assert (255 * linear.frequencies(16) < 64 * plain.frequencies(16)).all()  # 256 positions as 64 were
    close(linear.angles(torch.tensor([40]), 16)[0], plain.angles(torch.tensor([10]), 16)[0])


@pytest.mark.system("rope-scaling", "further")
@pytest.mark.system("rope-scaling")
def test_yarn_leaves_fast_turns_and_interpolates_slow_ones() -> None:
    rope = Rope(kind="yarn", factor=8.0, original=1024)
    ratio = rope.frequencies(64) / Rope().frequencies(64)
    close(ratio[0], torch.tensor(1.0))
    close(ratio[-1], torch.tensor(1 / 8))
    assert (ratio[1:] <= ratio[:-1] + 1e-6).all()
    turns = 1024 * Rope().frequencies(64) / (2 * math.pi)
    close(ratio[turns > 40], torch.ones(int((turns > 40).sum())))
    close(ratio[turns < 0.7], torch.full((int((turns < 0.7).sum()),), 1 / 8))
    between = ratio[(ratio > 1 / 8 + 1e-4) & (ratio < 1 - 1e-4)]
    assert len(between) > 5, "the share that is interpolated grows by equal steps"
    close(between.diff(), between.diff()[:1].expand(len(between) - 1), loosen=100)  # differences of ratios
    assert rope.amplitude == pytest.approx(0.1 * math.log(8) + 1)
    assert Rope(kind="yarn", factor=8.0, attention=0.5).amplitude == 0.5


@pytest.mark.system("rope", "norm", "cache")
@pytest.mark.system("rope")
def test_position_zero_and_values() -> None:
    x = torch.randn(1, 3, 2, 8, generator=torch.Generator().manual_seed(0))
    turned = rotate(x, *Rope().angles(torch.arange(3), 8))
    assert torch.equal(turned[:, 0], x[:, 0])
    close(turned.norm(dim=-1), x.norm(dim=-1))
    late = rotate(x[:, 2:], *Rope().angles(torch.tensor([2]), 8))  # with a cache: only the new position
    close(late, turned[:, 2:])


def test_files() -> None:
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
    values = rope_of_older_files({"rope_parameters": yarn, "max_position_embeddings": 77})
    assert Rope.read(values["rope_parameters"]).original == 77
    assert rope_of_older_files({}, theta=5.0)["rope_parameters"] == {"rope_theta": 5.0, "rope_type": "default"}
    with pytest.raises(ValueError, match=r"partial_rotary_factor = 0\.5"):
        Rope.read({"partial_rotary_factor": 0.5})
