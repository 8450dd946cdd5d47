"""Latent attention: the eleven equations, naive and absorbed decoding, the cache, sizes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.nn.attention.latent import LatentAttention, LatentSizes
from descend.nn.attention.rotary import Rope
from descend.ops.attention.dot_product import attention, causal_mask
from descend.ops.attention.rotary import frequencies, rotation
from tests.close import close

SIZES = LatentSizes(q_rank=5, kv_rank=7, plain=6, turned=4, value=8)


def layer(sizes: LatentSizes = SIZES) -> LatentAttention:
    torch.manual_seed(0)
    found = LatentAttention(12, 3, sizes).double()
    torch.nn.init.normal_(found.kv_norm.weight)
    return found


def x() -> Tensor:
    return torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def angles(t: Tensor) -> tuple[Tensor, Tensor]:
    a = t[:, None].double() * frequencies(4, dtype=torch.float64)
    return a.cos(), a.sin()


@pytest.mark.system("multi-head-latent-attention", "equations")
@pytest.mark.system("multi-head-latent-attention")
@pytest.mark.parametrize("q_rank", [5, None])
def test_the_equations_of_dln(q_rank: int | None) -> None:
    """With the norms of the release; every head written out, rotations as matrices."""
    attn, h = layer(SIZES._replace(q_rank=q_rank)), x()
    turn = rotation(torch.arange(5)[:, None].double() * frequencies(4, dtype=torch.float64))
    q = attn.q(h).view(2, 5, 3, 10)
    down = h @ attn.kv_down.weight.T
    c = torch.nn.functional.rms_norm(down[..., :7], (7,), attn.kv_norm.weight, 1e-6)
    k_r = (turn @ down[..., 7:, None])[..., 0]  # one rotary key for all heads
    up = attn.kv_up.weight.view(3, 14, 7)
    outputs = []
    for i in range(3):
        q_i = torch.cat([q[:, :, i, :6], (turn @ q[:, :, i, 6:, None])[..., 0]], -1)
        k_i = torch.cat([c @ up[i, :6].T, k_r], -1)
        outputs.append(attention(q_i, k_i, c @ up[i, 6:].T, causal_mask(5))[0])  # divides by √(d_h + d_R)
    close(attn(h, angles(torch.arange(5))), torch.cat(outputs, -1) @ attn.out.weight.T)
    assert attn.scale == 1 / math.sqrt(10)


@pytest.mark.system("multi-head-latent-attention", "decoding")
@pytest.mark.system("multi-head-latent-attention")
def test_naive_and_absorbed_decoding_are_the_full_pass() -> None:
    """Token by token from c^KV and k^R alone: 11 numbers a token, where plain attention would keep 2 · 3 · 10."""
    attn, h = layer(), x()
    full = attn(h, angles(torch.arange(5)))
    kept = torch.zeros(2, 0, 11, dtype=torch.float64)
    for t in range(5):
        at, new = angles(torch.tensor([t])), h[:, t : t + 1]
        kept = torch.cat([kept, attn.latents(new, at)], 1)
        q = attn.queries(new, at)
        k, v = attn.expand(kept)
        naive = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))[0].transpose(1, 2).flatten(-2)
        close(naive @ attn.out.weight.T, full[:, t : t + 1])
        close(attn.attend_absorbed(q, kept[:, None], None), full[:, t : t + 1])


@pytest.mark.system("multi-head-latent-attention")
def test_gradients_and_positions() -> None:
    attn = layer()
    rows = x()[:1, :3].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda h: attn(h, angles(torch.arange(3))), rows)
    close(attn(x(), angles(torch.arange(5))), attn(x(), angles(torch.arange(5) + 40)))  # distances alone count


def test_single_precision_takes_the_compiled_core() -> None:
    attn, h = layer(), x()
    close(attn.float()(h.float(), Rope().angles(torch.arange(5), 4)), layer()(h, angles(torch.arange(5))))


def test_values_longer_than_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="values of 11 numbers"):
        layer(SIZES._replace(value=11))


@pytest.mark.system("multi-head-latent-attention", "without-norms")
def test_without_norms_it_is_the_form_of_the_book() -> None:
    """DLN writes no norm on c^Q and c^KV: with the identity in their place every latent is linear in h."""
    attn, h = layer(), x()
    attn.kv_norm, attn.q.norm = torch.nn.Identity(), torch.nn.Identity()
    turn = rotation(torch.arange(5)[:, None].double() * frequencies(4, dtype=torch.float64))
    q = (h @ attn.q.down.weight.T @ attn.q.up.weight.T).view(2, 5, 3, 10)
    down, up = h @ attn.kv_down.weight.T, attn.kv_up.weight.view(3, 14, 7)
    k_r = (turn @ down[..., 7:, None])[..., 0]
    outputs = []
    for i in range(3):
        q_i = torch.cat([q[:, :, i, :6], (turn @ q[:, :, i, 6:, None])[..., 0]], -1)
        k_i = torch.cat([down[..., :7] @ up[i, :6].T, k_r], -1)
        outputs.append(attention(q_i, k_i, down[..., :7] @ up[i, 6:].T, causal_mask(5))[0])
    at = angles(torch.arange(5))
    close(attn(h, at), torch.cat(outputs, -1) @ attn.out.weight.T)
    close(attn.latents(2 * h, at), 2 * attn.latents(h, at))
    close(attn.attend_absorbed(attn.queries(h, at), attn.latents(h, at)[:, None], causal_mask(5)), attn(h, at))
