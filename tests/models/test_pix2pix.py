"""pix2pix's generator: the paper's layers, skips at every level, and the same answer each time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.models.pix2pix import TINY, Pix2Pix, Pix2PixConfig

pytestmark = pytest.mark.system("pix2pix")


@pytest.mark.system("pix2pix", "generator")
def test_layers_of_the_paper() -> None:
    """54,413,955 = down + up + norms, by hand."""
    with torch.device("meta"):
        model = Pix2Pix(Pix2PixConfig())
    widths = [64, 128, 256, 512, 512, 512, 512, 512]
    assert [layer.weight.shape[0] for layer in (model.first, *(d[1] for d in model.downs), model.bottom)] == widths
    down = 16 * sum(a * b for a, b in zip([3, *widths], widths, strict=False))
    up_in, up_out = [512, 1024, 1024, 1024, 1024, 512, 256, 128], [512, 512, 512, 512, 256, 128, 64, 3]
    assert [u[1].weight.shape[0] for u in model.ups] + [model.last.weight.shape[0]] == up_in
    up = 16 * sum(a * b for a, b in zip(up_in, up_out, strict=True)) + 3
    norms = 2 * (sum(widths[1:-1]) + sum(up_out[:-1]))
    assert down + up + norms == 54_413_955 == sum(p.numel() for p in model.parameters())
    assert [u[3].p for u in model.ups] == [0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0]


@pytest.mark.system("pix2pix", "generator")
def test_every_level_reaches_the_output_by_its_skip() -> None:
    """With the bottom cut off the answer still depends on the source; the finest skip alone carries single pixels."""
    torch.manual_seed(0)
    model = Pix2Pix(TINY).eval()
    with torch.no_grad():
        model.bottom.weight.zero_()
        x = torch.randn(1, 2, 16, 16)
        for part in (model.first, *model.downs):
            found: list[torch.Tensor] = []
            hook = part.register_forward_hook(lambda _, __, out, found=found: found.append(out))
            before = model(x)
            hook.remove()
            change = part.register_forward_hook(lambda _, __, out: out + 1)
            assert not torch.allclose(model(x), before)
            change.remove()


@pytest.mark.system("pix2pix", "generator")
def test_dropout_is_noise_in_training_only() -> None:
    torch.manual_seed(0)
    model = Pix2Pix(replace(TINY, dropout=0.5, depth=4))
    x = torch.randn(2, 2, 16, 16)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))
    assert model(x).abs().max() <= 1


def test_sides_that_do_not_halve_are_refused() -> None:
    with pytest.raises(ValueError, match="12×16: sides must be multiples of 8"):
        Pix2Pix(TINY)(torch.zeros(1, 2, 12, 16))
    with pytest.raises(ValueError, match="at least 2"):
        Pix2PixConfig(depth=1)
