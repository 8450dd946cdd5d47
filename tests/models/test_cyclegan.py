"""CycleGAN's generators: the papers' layers and counts, and two directions that share nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models.cyclegan import TINY, CycleGAN, CycleGANConfig, ResidualTranslator
from tests.close import close

pytestmark = pytest.mark.system("cyclegan")


@pytest.mark.system("cyclegan", "generators")
@pytest.mark.parametrize(("blocks", "count"), [(9, 11_378_179), (6, 7_837_699)])
def test_layers_of_the_paper(blocks: int, count: int) -> None:
    with torch.device("meta"):
        one = ResidualTranslator(3, 64, 2, blocks)
    assert sum(p.numel() for p in one.parameters()) == count
    kernels = [m.kernel_size[0] for m in one.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    assert kernels == [7, 3, 3, *[3, 3] * blocks, 3, 3, 7]
    assert one(torch.zeros(1, 3, 32, 40, device="meta")).shape == (1, 3, 32, 40)


@pytest.mark.system("cyclegan", "both-ways")
def test_each_direction_is_a_network_of_its_own() -> None:
    torch.manual_seed(0)
    model = CycleGAN(TINY)
    x, y = torch.randn(2, 2, 2, 8, 8)
    to_y, to_x = model(x, y)
    close(to_y, model.y(x))
    close(to_x, model.x(y))
    assert not {id(p) for p in model.x.parameters()} & {id(p) for p in model.y.parameters()}
    assert not torch.allclose(model.x(x), model.y(x))


def test_sides_that_do_not_halve_are_refused() -> None:
    with pytest.raises(ValueError, match="9×8: sides must be multiples of 2"):
        CycleGAN(TINY).x(torch.zeros(1, 2, 9, 8))
    assert CycleGANConfig().blocks == 9
