"""The compiled step is the equation written with torch, whatever the sizes, the threads and the kind of block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.native.build import library
from descend.native.decoding import ACTIVATIONS, Map, NativeStep, Norm, Weights
from tests.close import close

pytestmark = pytest.mark.skipif(library() is None, reason="there is no C++ compiler here")

FUNCTIONS = (lambda x: F.gelu(x, approximate="tanh"), F.gelu, F.silu, F.relu)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


class Small:
    """Random weights of two blocks: width 20, `heads` queries of size 8, hidden 27, vocabulary 13."""

    def __init__(self, heads: int = 4, kv_heads: int = 4, gated: bool = False, rms: bool = False):
        self.g = torch.Generator().manual_seed(0)
        self.heads, self.kv_heads = heads, kv_heads

        def norm() -> Norm:
            return Norm(self.draw(20) + 1, None if rms else self.draw(20), 1e-5)

        def map_(out: int, inputs: int) -> Map:
            return Map(self.draw(out, inputs), None if rms else self.draw(out))

        self.blocks = [
            Weights(
                norm(), norm(), map_(8 * heads, 20), map_(8 * kv_heads, 20), map_(8 * kv_heads, 20),
                map_(20, 8 * heads), map_(27, 20) if gated else None, map_(27, 20), map_(20, 27),
            )
            for _ in range(2)
        ]  # fmt: skip
        self.last, self.head = norm(), Map(self.draw(13, 20), None)

    def draw(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.g) / 3

    def native(self, activation: str) -> NativeStep:
        step = NativeStep(self.blocks, self.last, self.head, self.heads, activation)
        assert step.usable
        return step

    def step(self, x: Tensor, cache: Tensor, used: int, pad: Tensor | None, rotary: Tensor | None, f: int) -> Tensor:
        """The same in torch."""
        b = len(x)
        for w, kv in zip(self.blocks, cache, strict=True):
            n = normed(x, w.norm_1)
            q, k, v = (F.linear(n, *m).view(b, -1, 8) for m in (w.q, w.k, w.v))
            if rotary is not None:
                q, k = turned(q, rotary), turned(k, rotary)
            kv[0, :, :, used], kv[1, :, :, used] = k, v
            seen = torch.arange(used + 1) >= (torch.zeros(b, 1) if pad is None else pad[:, None])
            a = F.scaled_dot_product_attention(
                q[:, :, None], kv[0, :, :, : used + 1], kv[1, :, :, : used + 1], seen[:, None, None], enable_gqa=True
            )
            x = x + F.linear(a.reshape(b, -1), *w.out)
            n = normed(x, w.norm_2)
            u = F.linear(n, *w.up)
            u = FUNCTIONS[f](u) if w.gate is None else FUNCTIONS[f](F.linear(n, *w.gate)) * u
            x = x + F.linear(u, *w.down)
        return F.linear(normed(x, self.last), *self.head)


def normed(x: Tensor, f: Norm) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], f.w, f.eps) if f.b is None else F.layer_norm(x, x.shape[-1:], f.w, f.b, f.eps)


def turned(x: Tensor, angle: Tensor) -> Tensor:
    """Rotary positions: halves (a, b) -> (a cos − b sin, b cos + a sin)."""
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 64])
def test_any_number_of_rows(rows: int, threads: int) -> None:
    """Also twice in a row: the second step sees the first one's keys."""
    small = Small()
    native = small.native("gelu-tanh")
    cache = small.draw(2, 2, rows, 4, 11, 8)
    other = cache.clone()
    for used in (7, 8):
        x = small.draw(rows, 20)
        expected = small.step(x, other, used, None, None, 0)
        close(native.step(x.clone(), cache, used), expected)
        close(cache, other)


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2), (3, 1)])
@pytest.mark.parametrize("f", range(4), ids=ACTIVATIONS)
def test_grouped_heads_gates_rotary_positions_and_padding(f: int, heads: int, kv_heads: int, rows: int) -> None:
    small = Small(heads, kv_heads, gated=True, rms=True)
    x, cache, pad = small.draw(rows, 20), small.draw(2, 2, rows, kv_heads, 9, 8), torch.arange(rows) % 4
    angle = small.draw(rows, 4) * 5
    expected = small.step(x, cache.clone(), 6, pad, angle, f)
    close(small.native(ACTIVATIONS[f]).step(x.clone(), cache, 6, pad, (angle.cos(), angle.sin())), expected)


@pytest.mark.parametrize("f", range(4), ids=ACTIVATIONS)
def test_plain_feed_forward(f: int) -> None:
    small = Small()
    x, cache = small.draw(3, 20) * 30, small.draw(2, 2, 3, 4, 9, 8)
    expected = small.step(x, cache.clone(), 0, None, None, f)
    close(small.native(ACTIVATIONS[f]).step(x.clone(), cache, 0), expected)


def test_the_result_does_not_depend_on_the_threads() -> None:
    small = Small()
    x, cache = small.draw(7, 20), small.draw(2, 2, 7, 4, 9, 8)
    before, found = torch.get_num_threads(), []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        found.append(small.native("gelu").step(x.clone(), cache.clone(), 5))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("f", range(4), ids=ACTIVATIONS)
def test_a_row_does_not_depend_on_the_others(f: int) -> None:
    """Bit for bit, although width 20 and hidden 27 leave a rest everywhere; each with its own place and length."""
    small = Small(gated=True)
    native, x, cache = small.native(ACTIVATIONS[f]), small.draw(13, 20), small.draw(2, 2, 15, 4, 9, 8)
    used, first, places = torch.arange(13) % 8, torch.arange(13) % 2, torch.arange(14, 1, -1)
    one = [cache[:, :, place : place + 1].clone() for place in places.tolist()]
    together = native.step(x.clone(), cache, used, first, None, places)
    for n, own in enumerate(one):
        assert torch.equal(native.step(x[n : n + 1].clone(), own, int(used[n]), first[n : n + 1]), together[n : n + 1])
        assert torch.equal(own, cache[:, :, places[n] : places[n] + 1])


def test_large_scores_stay_finite() -> None:
    small = Small()
    cache = small.draw(2, 2, 1, 4, 9, 8) * 1e4
    x = small.draw(1, 20)
    close(small.native("relu").step(x.clone(), cache.clone(), 5), small.step(x, cache.clone(), 5, None, None, 3))


def test_the_weights_are_shared() -> None:
    small = Small()
    native, x, cache = small.native("silu"), small.draw(2, 20), small.draw(2, 2, 2, 4, 9, 8)
    small.blocks[0].up.w.mul_(2)
    close(native.step(x.clone(), cache.clone(), 3), small.step(x, cache.clone(), 3, None, None, 2))


def test_other_types_and_layouts_are_refused() -> None:
    small = Small()
    blocks = [w._replace(q=Map(w.q.w.double(), w.q.b)) for w in small.blocks]
    assert not NativeStep(blocks, small.last, small.head, 4, "relu").usable
    turned_q = [w._replace(q=Map(w.q.w.t().contiguous().t(), w.q.b)) for w in small.blocks]
    assert not NativeStep(turned_q, small.last, small.head, 4, "relu").usable
