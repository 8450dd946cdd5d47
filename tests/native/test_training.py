"""The compiled attention and GELU are torch's own, forward and backward, alone and inside torch.compile."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.native.build import library
from descend.native.training import attend, attention, gelu_tanh, usable
from tests.close import close

pytestmark = pytest.mark.skipif(library() is None, reason="there is no C++ compiler here")

# b, t, s, heads, kv_heads, head size, causal: more than one piece of 24 queries; sizes that are no multiple of 16 or 8;
# grouped heads; fewer queries than keys; one query
SHAPES = [
    (2, 50, 50, 4, 4, 64, True),
    (1, 24, 24, 2, 2, 16, True),
    (1, 7, 30, 6, 2, 24, True),
    (2, 33, 17, 3, 3, 8, False),
    (1, 1, 5, 2, 1, 20, False),
    (2, 26, 26, 3, 1, 5, True),
]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


@pytest.mark.parametrize(("b", "t", "s", "heads", "kv_heads", "k", "causal"), SHAPES)
def test_attention(b: int, t: int, s: int, heads: int, kv_heads: int, k: int, causal: bool) -> None:
    x = [normal(b, t, heads, k), normal(b, s, kv_heads, k, seed=1), normal(b, s, kv_heads, k, seed=2)]
    dy = normal(b, t, heads, k, seed=3).detach()
    y = attention(x[0], x[1], x[2], causal)
    exact = [p.detach().double().transpose(1, 2).requires_grad_() for p in x]
    mask = torch.ones(t, s, dtype=torch.bool).tril(s - t) if causal else None
    expected = F.scaled_dot_product_attention(exact[0], exact[1], exact[2], mask, enable_gqa=True)
    close(y, expected.transpose(1, 2).float())
    slopes = torch.autograd.grad(expected, exact, dy.double().transpose(1, 2))
    for found, wanted in zip(torch.autograd.grad(y, x, dy), slopes, strict=True):
        close(found, wanted.transpose(1, 2).float())


@pytest.mark.parametrize(("b", "t", "s", "heads", "kv_heads", "k", "causal"), [x for x in SHAPES if x[5] % 2 == 0])
def test_attention_in_bfloat16(b: int, t: int, s: int, heads: int, kv_heads: int, k: int, causal: bool) -> None:
    """From the same rounded numbers, float32 and bfloat16 differ by a rounding; the sums stay float32."""
    shapes = ((b, t, heads, k), (b, s, kv_heads, k), (b, s, kv_heads, k))
    rounded = [normal(*shape, seed=i).detach().bfloat16().requires_grad_() for i, shape in enumerate(shapes)]
    exact = [x.detach().float().requires_grad_() for x in rounded]
    dy = normal(b, t, heads, k, seed=3).detach().bfloat16()
    y, expected = (attention(x[0], x[1], x[2], causal) for x in (rounded, exact))
    assert y.dtype == torch.bfloat16
    near(y, expected)
    pairs = zip(torch.autograd.grad(y, rounded, dy), torch.autograd.grad(expected, exact, dy.float()), strict=True)
    for found, wanted in pairs:
        near(found, wanted)
    assert attend(rounded[0], rounded[1], rounded[2], causal, 0.1)[1].dtype == torch.float32


def near(found: Tensor, wanted: Tensor) -> None:
    """To 1% of the tensor's norm: each number is rounded to 1/256, and the roundings are independent."""
    assert (found.float() - wanted).norm() < 0.01 * wanted.norm()
    assert (found.float() - 1.03 * wanted).norm() > 0.01 * wanted.norm()


def test_what_there_is_compiled_code_for() -> None:
    single, half = torch.zeros(2, 6), torch.zeros(2, 6, dtype=torch.bfloat16)
    assert usable(single)
    assert usable(half, half)
    assert not usable(half[:, :5])  # taken in pairs
    assert not usable(single, half)
    assert not usable(single.double())
    assert not usable(single.half())


def test_parts_of_one_tensor_and_a_turned_gradient() -> None:
    """Q, K and V lie side by side, as a layer makes them; the gradient comes with other strides."""
    qkv = normal(2, 9, 3, 2, 8)
    q, k, v = qkv.unbind(2)
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    expected = F.scaled_dot_product_attention(turned[0], turned[1], turned[2], is_causal=True)
    dy = normal(2, 8, 2, 9, seed=1).detach().permute(0, 3, 2, 1)
    (wanted,) = torch.autograd.grad(expected, qkv, dy.transpose(1, 2))
    (found,) = torch.autograd.grad(attention(q, k, v, True), qkv, dy)
    close(found, wanted)


def test_the_result_does_not_depend_on_the_threads() -> None:
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        q = normal(2, 30, 3, 8)
        y = attention(q, q, q, True)
        found.append(torch.cat([y.flatten(), torch.autograd.grad(y.square().sum(), q)[0].flatten()]))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_large_scores_stay_finite() -> None:
    q = (normal(1, 40, 1, 8).detach() * 1e3).requires_grad_()
    y = attention(q, q, q, True)
    close(y[:, 0], q[:, 0])
    assert torch.autograd.grad(y.sum(), q)[0].isfinite().all()


@pytest.mark.system("gelu")
@pytest.mark.parametrize("count", [1, 8, 1003, 9001])
def test_gelu(count: int) -> None:
    x = (normal(count) * 4).detach().requires_grad_()
    exact = x.detach().double().requires_grad_()
    expected = F.gelu(exact, approximate="tanh")
    close(gelu_tanh(x), expected.float())
    (found,), (wanted,) = torch.autograd.grad(gelu_tanh(x).sum(), x), torch.autograd.grad(expected.sum(), exact)
    close(found, wanted.float())


@pytest.mark.parametrize("count", [2, 8, 1002, 9006])
def test_gelu_in_bfloat16(count: int) -> None:
    """The float32 value of the same numbers, rounded once, to the bit."""
    x = (normal(count) * 4).detach().bfloat16().requires_grad_()
    exact, dy = x.detach().float().requires_grad_(), normal(count, seed=1).detach().bfloat16()
    y, expected = gelu_tanh(x), gelu_tanh(exact)
    assert torch.equal(y, expected.bfloat16())
    (found,), (wanted,) = torch.autograd.grad(y, x, dy), torch.autograd.grad(expected, exact, dy.float())
    assert torch.equal(found, wanted.bfloat16())


def test_gelu_far_out() -> None:
    x = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4], requires_grad=True)
    close(gelu_tanh(x), torch.tensor([0.0, 0.0, 0.0, 50.0, 1e4]))
    close(torch.autograd.grad(gelu_tanh(x).sum(), x)[0], torch.tensor([0.0, 0.0, 0.5, 1.0, 1.0]))


@pytest.mark.parametrize("test", ["test_schema", "test_autograd_registration", "test_faketensor"])
def test_they_are_sound_operators(test: str) -> None:
    """What torch.compile relies on."""
    q = normal(1, 5, 2, 8)
    torch.library.opcheck(torch.ops.descend.attention.default, (q, q, q, True, 0.3), test_utils=test)
    torch.library.opcheck(torch.ops.descend.gelu_tanh.default, (q,), test_utils=test)
