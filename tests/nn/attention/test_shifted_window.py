"""Window attention against dense attention under an explicit mask, with and without shift, bias and padding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.nn.attention.shifted_window import (
    ImageWindowAttention,
    cut_windows,
    join_windows,
    offset_index,
    regions,
    sees,
    shifted_mask,
)
from descend.ops.attention.dot_product import additive
from tests.close import close

# height, width, window, shift: whole windows, padded maps, a shift of none, a window of all
SIZES = [(8, 12, 4, 2), (8, 12, 4, 0), (7, 9, 3, 1), (10, 5, 4, 2), (8, 8, 8, 0), (9, 9, 2, 1), (14, 14, 7, 3)]


def layer(window: int, shift: int, width: int = 8, heads: int = 2) -> ImageWindowAttention:
    torch.manual_seed(0)
    made = ImageWindowAttention(width, heads, window, shift).double()
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return made


def learned(made: ImageWindowAttention) -> list[Tensor]:
    """All parameters but the keys' bias: it adds the same to every score of a query, so its gradient is 0."""
    return [p for name, p in made.named_parameters() if name != "k.bias"]


def dense(made: ImageWindowAttention, x: Tensor) -> Tensor:
    """The same by full attention over the padded map: a loop over pairs for the bias, a mask for the windows."""
    b, height, width, d = x.shape
    m, s = made.window, made.shift
    padded = F.pad(x, (0, 0, 0, -width % m, 0, -height % m))
    tall, wide = padded.shape[1:3]
    flat = padded.reshape(b, tall * wide, d)
    q, k, v = (part(flat).view(b, -1, made.heads, d // made.heads).transpose(1, 2) for part in (made.q, made.k, made.v))
    places = [(y, z) for y in range(tall) for z in range(wide)]
    bias = torch.zeros(made.heads, len(places), len(places), dtype=x.dtype)
    mask = sees(tall, wide, m, s)
    for i, (yi, xi) in enumerate(places):
        for j, (yj, xj) in enumerate(places):
            if mask[i, j]:
                bias[:, i, j] = made.offsets[(yi - yj + m - 1) * (2 * m - 1) + xi - xj + m - 1]
    scores = q @ k.transpose(-2, -1) / (d // made.heads) ** 0.5 + bias + additive(mask, x.dtype)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, tall, wide, d)
    return made.out(y)[:, :height, :width]


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "windows", "padding", "bias")
@pytest.mark.parametrize(("height", "width", "window", "shift"), SIZES[:4])
def test_rolled_windows_are_dense_masked_attention(height: int, width: int, window: int, shift: int) -> None:
    """Values and every gradient, the bias's too."""
    made = layer(window, shift)
    x = torch.randn(2, height, width, 8, dtype=torch.float64, requires_grad=True)
    ours, theirs = made(x), dense(made, x)
    close(ours, theirs)
    dy = torch.randn_like(ours)
    wanted = torch.autograd.grad(theirs, [x, *learned(made)], dy)
    for found, right in zip(torch.autograd.grad(ours, [x, *learned(made)], dy), wanted, strict=True):
        close(found, right)


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "wrapped")
@pytest.mark.parametrize(("height", "width", "window", "shift"), SIZES)
def test_wrapped_regions_never_mix(height: int, width: int, window: int, shift: int) -> None:
    """What one position gets from another: nothing beyond its own shifted window, something from all of it."""
    made = layer(window, shift)
    x = torch.randn(1, height, width, 8, dtype=torch.float64, requires_grad=True)
    place = (0, height - 1, 0)  # the last row meets the first after the roll
    (slope,) = torch.autograd.grad(made(x)[place].sum(), x)
    tall, wide = (-(-n // window) * window for n in (height, width))
    region = regions(tall, wide, window, shift)[:height, :width]
    assert torch.equal(slope[0].abs().sum(-1) > 0, region == region[height - 1, 0])


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "global")
def test_a_window_of_the_whole_map_is_global_attention() -> None:
    made = layer(6, 3)  # no shift either: there is one window
    torch.nn.init.zeros_(made.offsets)
    x = torch.randn(2, 6, 6, 8, dtype=torch.float64)
    q, k, v = (part(x.flatten(1, 2)).view(2, 36, 2, 4).transpose(1, 2) for part in (made.q, made.k, made.v))
    expected = made.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    close(made(x).flatten(1, 2), expected)
    assert sees(6, 6, 6, 0).all()


@pytest.mark.system("window-attention")
def test_a_map_smaller_than_the_window_uses_the_middle_of_the_table() -> None:
    """A 4 × 4 map in a layer of window 6 is a layer of window 4 with the 7 × 7 offsets around 0."""
    large, small = layer(6, 3), layer(4, 0)
    state = large.state_dict()
    state["offsets"] = state["offsets"].view(11, 11, 2)[2:9, 2:9].reshape(49, 2)
    small.load_state_dict(state)
    x = torch.randn(2, 4, 4, 8, dtype=torch.float64)
    close(large(x), small(x))


@pytest.mark.system("window-attention")
def test_cut_and_joined_are_inverse_and_windows_lie_row_by_row() -> None:
    x = torch.arange(2 * 6 * 9).view(2, 6, 9, 1)
    windows = cut_windows(x, 3)
    assert torch.equal(windows[1, :, 0].view(3, 3), x[0, :3, 3:6, 0])
    assert torch.equal(windows[3, :, 0].view(3, 3), x[0, 3:, :3, 0])
    assert torch.equal(join_windows(windows, 3, 6, 9), x)


@pytest.mark.system("window-attention")
def test_shift_brings_neighbours_together_that_windows_part() -> None:
    """Over a W-MSA and an SW-MSA layer a position reaches beyond its window; two W-MSA layers never leave it."""
    plain, shifted = sees(8, 8, 4, 0).double(), sees(8, 8, 4, 2).double()
    assert ((plain @ plain > 0) == (plain > 0)).all()
    assert (plain @ shifted > 0).sum() > (plain > 0).sum()
    assert shifted.sum() < plain.sum()
    assert torch.equal(shifted_mask(8, 8, 4, 0), torch.ones(4, 16, 16, dtype=torch.bool))
    assert [int(m.sum()) for m in shifted_mask(8, 8, 4, 2)] == [256, 128, 128, 64]  # whole, halves, quarters


def test_the_index_has_every_offset_once() -> None:
    assert sorted(set(offset_index(3, 3).flatten().tolist())) == list(range(25))
    assert offset_index(3, 3)[0, 0] == 12  # no offset: the middle


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "bias")
def test_gradients() -> None:
    made = layer(2, 1, width=4)
    x = torch.randn(1, 4, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, table: torch.func.functional_call(made, {"offsets": table}, x),
                                    (x, made.offsets))  # fmt: skip


@pytest.mark.system("window-attention")
@pytest.mark.parametrize(("height", "width", "window", "shift"), SIZES)
def test_the_fast_form_is_the_plain_one(height: int, width: int, window: int, shift: int) -> None:
    """float32 on a CPU against float64: values and gradients."""
    made = layer(window, shift, width=48, heads=3)
    x = torch.randn(2, height, width, 48, dtype=torch.float64, requires_grad=True)
    dy = torch.randn_like(x)
    expected = [made(x), *torch.autograd.grad(made(x), [x, *learned(made)], dy)]
    single, y = made.float(), x.detach().float().requires_grad_()
    out = single(y)
    found = [out, *torch.autograd.grad(out, [y, *learned(single)], dy.float())]
    for ours, theirs in zip(found, expected, strict=True):
        close(ours, theirs.float(), loosen=5)  # sums of up to 288 positions


@pytest.mark.parametrize(("window", "shift", "heads", "said"), [(4, 4, 2, "a shift of 4"), (4, 0, 3, "width 8")])
def test_refusals(window: int, shift: int, heads: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ImageWindowAttention(8, heads, window, shift)
