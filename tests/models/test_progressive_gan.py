"""Growing: α = 0 is the old stage, enlarged, and α = 1 the new one; nothing is lost when layers are added."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import avg_pool2d

from descend.contracts import Wish
from descend.models.progressive_gan import (
    TINY,
    GrowingDiscriminator,
    ProgressiveGAN,
    ProgressiveGANConfig,
    enlarge,
    find_stage,
)
from descend.sampling.chance import PerExample
from tests.close import close

pytestmark = pytest.mark.system("progressive-gan")
CONFIG = replace(TINY, side=32, growth=-1.0)


def make() -> tuple[ProgressiveGAN, GrowingDiscriminator]:
    torch.manual_seed(0)
    return ProgressiveGAN(CONFIG).double(), GrowingDiscriminator(CONFIG).double()


@pytest.mark.system("progressive-gan", "alpha-0")
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_at_alpha_0_the_new_stage_is_the_old_one_enlarged(stage: int) -> None:
    g, d = make()
    z = torch.randn(3, 3, dtype=torch.float64)
    old = g.forward_at(z, stage - 1, 1.0)
    assert old.shape == (3, 2, 2 ** (stage + 1), 2 ** (stage + 1))
    close(g.forward_at(z, stage, 0.0), enlarge(old))
    close(d.forward_at(enlarge(old), stage, 0.0), d.forward_at(old, stage - 1, 1.0))
    finer = torch.randn(3, 2, 2 ** (stage + 2), 2 ** (stage + 2), dtype=torch.float64)
    close(d.forward_at(finer, stage, 0.0), d.forward_at(avg_pool2d(finer, 2), stage - 1, 1.0))


@pytest.mark.system("progressive-gan", "alpha-1")
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_at_alpha_1_it_is_the_new_stage_alone(stage: int) -> None:
    """The old way to colours and in takes no part, and in between both are mixed."""
    g, d = make()
    z = torch.randn(3, 3, dtype=torch.float64)
    new = g.forward_at(z, stage, 1.0)
    half = g.forward_at(z, stage, 0.5)
    close(half, (new + g.forward_at(z, stage, 0.0)) / 2)
    score = d.forward_at(new, stage, 1.0)
    with torch.no_grad():
        g.colours[stage - 1].weight.add_(1.0)
        d.inputs[stage - 1].weight.add_(1.0)
    close(g.forward_at(z, stage, 1.0), new)
    close(d.forward_at(new, stage, 1.0), score)
    assert not torch.allclose(g.forward_at(z, stage, 0.5), half)


def test_growth_names_a_stage_and_its_share() -> None:
    assert find_stage(0.0) == (0, 1.0)
    assert find_stage(1.0) == (1, 1.0)
    assert find_stage(1.25) == (2, 0.25)
    g, _ = make()
    assert float(g.growth) == 3.0
    assert g(torch.randn(2, 3, dtype=torch.float64)).shape[-1] == 32
    g.growth.fill_(0.5)
    assert g(torch.randn(2, 3, dtype=torch.float64)).shape[-1] == 8
    assert g.float().generate(PerExample(0, 2), Wish()).shape == (2, 2, 32, 32)


@pytest.mark.system("progressive-gan", "layers")
def test_widths_of_the_paper() -> None:
    config = ProgressiveGANConfig()
    assert config.widths == [512, 512, 512, 512, 256, 128, 64, 32, 16]
    with torch.device("meta"):
        model = ProgressiveGAN(config)
    assert sum(p.numel() for p in model.parameters()) == 23_079_115
    with pytest.raises(ValueError, match="side 24: it is doubled from 4 on"):
        ProgressiveGANConfig(side=24)
