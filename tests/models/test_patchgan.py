"""PatchGAN: 70 pixels, exactly those, of any image."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.losses.adversarial import LeastSquares
from descend.models.patchgan import SIZES, TINY, PatchGAN, PatchGANConfig
from tests.close import close

pytestmark = pytest.mark.system("patchgan")


@pytest.mark.system("patchgan", "field")
@pytest.mark.system("pix2pix", "map")
@pytest.mark.parametrize(("depth", "pixels"), [(1, 16), (2, 34), (3, 70), (4, 142)])
def test_receptive_fields_of_the_stack(depth: int, pixels: int) -> None:
    """70 for the paper's stack of five; the paper also names 16 and 286 (five layers of stride 2)."""
    assert PatchGANConfig(depth=depth).field.size == pixels
    assert PatchGANConfig(depth=5).field.size == 286


@pytest.mark.system("patchgan", "support")
@pytest.mark.system("pix2pix", "map")
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_gradient_of_one_score_reaches_exactly_its_patch(depth: int) -> None:
    torch.manual_seed(0)
    config = replace(TINY, depth=depth, norm="none", width=2)
    model, field = PatchGAN(config).double(), config.field
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.rand_like(p) * 0.1 + 0.01)  # positive: nothing cancels
    side = 3 * field.size
    x = torch.rand(1, 2, side, side, dtype=torch.float64, requires_grad=True)
    scores = model(x)
    i, j = scores.shape[1] // 2, scores.shape[2] // 2
    (slope,) = torch.autograd.grad(scores[0, i, j], x)
    seen = slope[0].abs().sum(0) > 0
    rows, columns = seen.any(1).nonzero().flatten(), seen.any(0).nonzero().flatten()
    for place, found in ((i, rows), (j, columns)):
        start = field.start + place * field.jump
        assert (int(found[0]), int(found[-1])) == (start, start + field.size - 1)
    assert int(seen.sum()) == field.size**2


@pytest.mark.system("patchgan", "any-size")
def test_any_size_and_the_mean_over_patches() -> None:
    torch.manual_seed(0)
    model = PatchGAN(replace(TINY, channels=3)).eval()
    for height, width in ((16, 16), (23, 40), (70, 64)):
        scores = model(torch.rand(2, 2, height, width), torch.rand(2, 1, height, width))
        assert scores.shape == (2, height // 2 - 2, width // 2 - 2)
        each = torch.stack([LeastSquares().of_generator(s, s)["loss"] for s in scores.flatten()])
        close(LeastSquares().of_generator(scores, scores)["loss"], each.mean())


@pytest.mark.system("patchgan", "counts")
def test_sizes_of_the_papers() -> None:
    for name, count in (("pix2pix", 2_768_705), ("cyclegan", 2_764_737)):
        with torch.device("meta"):
            model = PatchGAN(SIZES[name])
        assert sum(p.numel() for p in model.parameters()) == count
        assert [layer.weight.shape[0] for layer in (model.first, *(b[0] for b in model.blocks), model.last)] == [
            64, 128, 256, 512, 1,
        ]  # fmt: skip
