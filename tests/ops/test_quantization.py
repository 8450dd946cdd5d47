"""Codes of a few bits: the books' numbers, torch's, and the bound of half a step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.quantization import (
    fake_quantize,
    fake_quantize_matrix,
    fake_quantize_range,
    min_max_codes,
    pack_nibbles,
    signed_codes,
    signed_values,
    unpack_nibbles,
)
from tests.close import close

PTQ, QAT = "post-training-quantization", "quantization-aware-training"


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system(PTQ, "books-form", "half-step")
@pytest.mark.system(PTQ)
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_codes_by_minimum_and_maximum(dim: int | None) -> None:
    """The ends of the range have the codes 0 and 255, torch's own quantizer gives the same codes."""
    x = draw(5, 40)
    found = min_max_codes(x, dim)
    assert found.codes.dtype == torch.uint8
    others = 1 if dim is None else x.shape[dim]
    assert (found.codes == 0).sum() == others
    assert (found.codes == 255).sum() == others
    error = (found.values() - x).abs()
    assert (error <= found.step / 2 * (1 + 1e-9)).all()
    assert (error > found.step / 3).any()
    if dim is None:  # torch shifts by a whole number of steps, so a minimum that is one
        y = torch.randint(0, 256, (300,), generator=torch.Generator().manual_seed(1)).float() * 0.25 - 3.0
        y[:2] = torch.tensor([-3.0, -3.0 + 255 * 0.25])
        close(min_max_codes(y).values(), torch.fake_quantize_per_tensor_affine(y, 0.25, 12, 0, 255))


@pytest.mark.system(PTQ, "zero-range")
def test_equal_numbers_come_back_exactly() -> None:
    x = torch.tensor([[3.7, 3.7, 3.7], [0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    found = min_max_codes(x, 0)
    assert torch.equal(found.values()[:2], x[:2])
    assert (found.step[:2] == 0).all()
    codes, steps = signed_codes(x, 8)
    assert torch.equal(signed_values(codes, steps)[1], x[1])
    with pytest.raises(ValueError, match="have no code"):
        min_max_codes(torch.tensor([1.0, torch.nan]))


@pytest.mark.system(PTQ, "channels-and-groups", "oracles", "half-step")
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [0, 8, 7])
def test_signed_codes(bits: int, group: int) -> None:
    w = draw(6, 45)
    codes, steps = signed_codes(w, bits, group)
    most = 2 ** (bits - 1) - 1
    size = group or 45
    of_weight = steps.repeat_interleave(size, 1)[:, :45]
    assert codes.abs().max() == most
    assert steps.shape == (6, -(-45 // size))
    assert ((signed_values(codes, steps, group) - w).abs() <= of_weight / 2 * (1 + 1e-9)).all()
    if not group:
        theirs = torch.fake_quantize_per_channel_affine(
            w.float(), steps[:, 0].float(), torch.zeros(6, dtype=torch.int32), 0, -most, most
        )
        close(signed_values(*signed_codes(w.float(), bits)), theirs)
    if bits == 4:
        assert torch.equal(unpack_nibbles(pack_nibbles(codes), 45), codes)


@pytest.mark.system(QAT, "oracles", "straight-through")
@pytest.mark.system(QAT)
def test_fake_quantization_is_torchs() -> None:
    """Values and gradients, per tensor and per channel; some numbers lie outside the range."""
    x, out = draw(4, 50).float() * 2, draw(4, 50, seed=1).float()
    for step in (torch.tensor(0.02), torch.tensor([[0.01], [0.02], [0.03], [0.04]])):
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        y = fake_quantize(ours, step, 8)
        if step.dim():
            z = torch.fake_quantize_per_channel_affine(
                theirs, step[:, 0], torch.zeros(4, dtype=torch.int32), 0, -127, 127
            )
        else:
            z = torch.fake_quantize_per_tensor_affine(theirs, float(step), 0, -127, 127)
        close(y, z)
        (y * out).sum().backward()
        (z * out).sum().backward()
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.equal(ours.grad, theirs.grad)
        assert (ours.grad == 0).any()
        assert (ours.grad == out).any()


@pytest.mark.system(QAT, "same-numbers")
def test_forward_is_reading_back_the_codes() -> None:
    w = draw(6, 45)
    for bits, group in ((8, 0), (4, 8), (3, 7)):
        close(fake_quantize_matrix(w, bits, group), signed_values(*signed_codes(w, bits, group), group))
    close(fake_quantize_range(w, w.min(), w.max()), min_max_codes(w).values())
    kernels = draw(3, 2, 3, 3)
    close(fake_quantize_matrix(kernels, 4).flatten(1), fake_quantize_matrix(kernels.flatten(1), 4))


@pytest.mark.system(QAT, "straight-through")
def test_slope_over_many_steps() -> None:
    """A step function has no derivative that helps; over many steps its slope is 1, and 0 beyond the range, and that is
    the gradient. torch's fake quantizer agrees for the books' form where its zero point is a whole number."""
    step = torch.tensor(0.1, dtype=torch.float64)
    x = torch.tensor([-20.0, -3.03, 0.26, 5.0, 20.0], dtype=torch.float64, requires_grad=True)
    wide = 4.0  # forty steps to both sides
    slope = (fake_quantize(x + wide, step, 8) - fake_quantize(x - wide, step, 8)) / (2 * wide)
    (found,) = torch.autograd.grad(fake_quantize(x, step, 8).sum(), x)
    assert ((found - slope.detach()).abs() <= 0.1 / (2 * wide)).all()
    assert found.tolist() == [0, 1, 1, 1, 0]
    low, high = torch.tensor(-3.0), torch.tensor(-3.0 + 255 * 0.25)
    ours = torch.tensor([-4.0, -3.1, -3.0, 0.3, 60.7, 60.8, 70.0], requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    y, z = fake_quantize_range(ours, low, high), torch.fake_quantize_per_tensor_affine(theirs, 0.25, 12, 0, 255)
    close(y, z)
    y.sum().backward()
    z.sum().backward()
    assert ours.grad is not None
    assert torch.equal(ours.grad, theirs.grad)
    same = torch.full((3,), 2.0, requires_grad=True)
    assert torch.equal(fake_quantize_range(same, torch.tensor(2.0), torch.tensor(2.0)), same)


def test_bits_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="9 bits; codes have 2 to 8"):
        signed_codes(draw(2, 2), 9)
