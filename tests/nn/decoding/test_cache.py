"""Cache = no cache: the same logits at every step, with the same keys computed once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from descend.models.gpt2 import GPT2, TINY
from descend.nn.decoding.cache import Cache, Layer
from descend.nn.decoding.cached import Angles
from descend.ops.attention.dot_product import attention, causal_mask
from tests.close import close


def model() -> GPT2:
    torch.manual_seed(0)
    found = GPT2(TINY)
    for p in found.parameters():
        nn.init.normal_(p, std=0.2)
    return found


def tokens(b: int = 3, t: int = 11) -> Tensor:
    return torch.randint(TINY.vocab, (b, t), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("causal-mask", "incremental")
@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "logits")
@pytest.mark.parametrize("b", [1, 3, 40])
@pytest.mark.parametrize("prompt", [1, 5])
def test_the_logits_of_every_step_are_those_of_the_full_pass(b: int, prompt: int) -> None:
    """b = 1, a few and many: one form of the linear maps each."""
    gpt2, x = model(), tokens(b)
    with torch.no_grad():
        full = gpt2(x)
    decoder = gpt2.decoder()
    close(decoder.start(x[:, :prompt], torch.zeros(b, dtype=torch.long), 11), full[:, prompt - 1])
    for i in range(prompt, 11):
        close(decoder.step(x[:, i]), full[:, i])


@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "logits")
def test_in_double_precision_too() -> None:
    gpt2, x = model().double(), tokens()
    decoder = gpt2.decoder()
    decoder.start(x[:, :4], torch.zeros(3, dtype=torch.long), 11)
    with torch.no_grad():
        for i in range(4, 11):
            close(decoder.step(x[:, i]), gpt2(x[:, : i + 1])[:, -1])


@pytest.mark.system("padding-mask", "causal")
@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "padding-and-beams")
@pytest.mark.system("padding-mask")
@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 2)])
def test_padding_on_the_left_changes_nothing(rows: slice) -> None:
    gpt2, x, pad = model(), tokens(), torch.tensor([0, 3, 5])
    decoder = gpt2.decoder()
    found = [decoder.start(x[rows, :6], pad[rows], 11), *(decoder.step(x[rows, i]) for i in range(6, 11))]
    with torch.no_grad():
        for n, (row, skip) in enumerate(zip(x[rows], pad[rows].tolist(), strict=True)):
            close(torch.stack(found, 1)[n], gpt2(row[None, skip:])[0, 5 - skip :])


@pytest.mark.system("causal-mask", "incremental")
@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "grows")
def test_one_query_against_the_cached_keys_is_a_row_of_masked_attention() -> None:
    """T = 6: the last query sees all keys so far, so row t of the masked form is the step t of the cached one."""
    q, k, v = torch.randn(3, 1, 1, 6, 4, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    cache = Cache(torch.zeros(1, 2, 1, 1, 6, 4, dtype=torch.float64))
    full, weights = attention(q, k, v, causal_mask(6))
    assert not weights.triu(1).any()
    for t in range(6):
        layer = cache.extend(1)[0]
        layer.new.copy_(torch.stack([k, v])[:, :, :, t : t + 1])
        assert layer.mask is None
        close(attention(q[:, :, t : t + 1], layer.k, layer.v)[0], full[:, :, t : t + 1])


@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "grows")
def test_every_key_is_computed_once() -> None:
    """T = 6 tokens one by one: 6 key projections with the cache, 1 + 2 + … + 6 = 21 without."""
    gpt2, x = model(), tokens(1, 6)
    counted = {"cached": 0, "again": 0}
    gpt2.h[0].register_forward_hook(lambda _, inputs, __: counted.update(again=counted["again"] + inputs[0].shape[1]))
    with torch.no_grad():
        for t in range(1, 7):
            gpt2(x[:, :t])
    decoder = gpt2.decoder()
    decoder.native, block = None, decoder.blocks[0]

    def count(x: Tensor, layer: Layer, angles: Angles) -> Tensor:
        counted["cached"] += x.shape[1]
        return block(x, layer, angles)

    decoder.blocks = [count, *decoder.blocks[1:]]  # type: ignore[list-item]
    decoder.cache = Cache(torch.zeros(len(gpt2.h), 2, 1, 4, 6, 8))
    with torch.no_grad():
        for t in range(6):
            decoder.step(x[:, t])
    assert counted == {"cached": 6, "again": 21}


@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "padding-and-beams")
def test_reorder_moves_whole_sequences() -> None:
    gpt2, x, pad = model(), tokens(), torch.tensor([0, 2, 4])
    decoder = gpt2.decoder()
    decoder.start(x[:, :6], pad, 11)
    expected = decoder.step(x[:, 6])
    rows = torch.tensor([2, 0, 0, 1])
    for order in (rows, torch.tensor([0, 2, 1])):  # more rows than before, then as many
        decoder.start(x[:, :6], pad, 11)
        decoder.reorder(order)
        close(decoder.step(x[order, 6]), expected[order])


def least(f: Callable[[], object], times: int = 7) -> float:
    """Seconds of the fastest of some calls: what the others take more is the machine's."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        f()
        taken.append(time.perf_counter() - began)
    return min(taken)


@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "time")
def test_the_time_of_a_token_hardly_grows_with_the_cache(record_property: Callable[[str, object], None]) -> None:
    """The 20th and the 400th token: without the cache all before it are computed again, with it looked up."""
    torch.set_num_threads(1)
    gpt2 = GPT2(replace(TINY, context=512, width=128, heads=4))
    x, decoder = torch.zeros(1, 512, dtype=torch.long), gpt2.decoder()
    with torch.no_grad():
        again = [least(lambda: gpt2(x[:, :t])) for t in (20, 400)]
        cached = []
        for t in (20, 400):
            decoder.start(x[:, :t], torch.zeros(1, dtype=torch.long), 512)
            cached.append(least(lambda: decoder.step(x[:, 0])))
    record_property("400th over 20th token, again", again[1] / again[0])
    record_property("400th over 20th token, cached", cached[1] / cached[0])
    assert again[1] > 4 * again[0]
    assert cached[1] < 3 * cached[0]


def test_padding_queries_are_not_nan() -> None:
    cache = Cache(torch.zeros(1, 2, 2, 1, 5, 4), pad=torch.tensor([0, 3]))
    mask = cache.extend(4)[0].mask
    assert mask is not None
    assert mask.shape == (2, 1, 4, 4)
    assert mask.softmax(-1).isfinite().all()
    assert (mask[1, 0] == 0).tolist() == torch.eye(4, dtype=torch.bool).tolist()
    assert cache.positions(1).tolist() == [[4], [1]]
