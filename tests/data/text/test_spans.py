"""Span corruption: counts, order of the sentinels, the way back, and a stream that does not depend on its cut."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.data.text.spans import CorruptedWindows, SpanCorruption, corrupt, pieces, restore
from descend.errors import Mistake

FIRST = 999
SLUG = "span-corruption"


def drawn(b: int, n: int, corruption: SpanCorruption, seed: int = 0) -> torch.Tensor:
    return corruption.draw(torch.rand(b, n, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.system("span-corruption", "inverse", "sentinels")
@pytest.mark.system(SLUG)
@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(2, 80), st.floats(0.05, 0.9), st.floats(1, 8), st.integers(0, 99))
def test_the_spans_put_back_are_the_text(n: int, rate: float, mean: float, seed: int) -> None:
    corruption = SpanCorruption(rate, mean)
    tokens, gone = torch.randint(1, 900, (3, n), generator=torch.Generator().manual_seed(seed)), None
    gone = drawn(3, n, corruption, seed)
    noise, spans = corruption.counts(n)
    assert gone.sum(1).tolist() == [noise] * 3
    x, y = corrupt(tokens, gone, FIRST)
    assert x.shape == (3, n - noise + spans)
    assert y.shape == (3, noise + spans + 1)
    for text, source, target in zip(tokens.tolist(), x.tolist(), y.tolist(), strict=True):
        assert restore(source, target, FIRST) == text
        ordered = [FIRST - k for k in range(spans)]
        assert [t for t in source if t >= 900] == ordered
        assert [t for t in target if t >= 900] == [*ordered, FIRST - spans]
        assert source[0] < 900  # what stays comes first
        assert target[-1] == FIRST - spans


@pytest.mark.system("span-corruption", "sentinels")
@pytest.mark.system(SLUG)
def test_any_spans_of_any_rows() -> None:
    """Also at the ends of a text, one long, and rows of different counts, which are filled up."""
    tokens = torch.arange(1, 7).repeat(3, 1)
    gone = torch.tensor([[1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 0, 1]], dtype=torch.bool)
    x, y = corrupt(tokens, gone, FIRST)
    assert x.tolist() == [[999, 2, 3, 998, 6, 0], [1, 2, 3, 4, 5, 999], [999, 3, 998, 5, 997, 0]]
    assert y.tolist() == [
        [999, 1, 998, 4, 5, 997, 0, 0],
        [999, 6, 998, 0, 0, 0, 0, 0],
        [999, 1, 2, 998, 4, 997, 6, 996],
    ]


@pytest.mark.system("span-corruption", "rate-and-length")
@pytest.mark.system(SLUG)
def test_rate_and_mean_length_are_what_was_asked_for() -> None:
    gone = drawn(200, 512, SpanCorruption(0.15, 3.0))
    starts = gone & ~torch.nn.functional.pad(gone[:, :-1], (1, 0))
    assert gone.float().mean().item() == pytest.approx(0.15, abs=0.002)
    assert (gone.sum() / starts.sum()).item() == pytest.approx(3.0, abs=0.05)
    middle = gone.float().mean(0)[50:462]  # no place is preferred
    assert (middle - 0.15).abs().max() < 5 * (0.15 * 0.85 / 200) ** 0.5


def test_every_way_to_cut_is_equally_likely() -> None:
    """5 tokens in 3 pieces: 6 ways."""
    u = torch.rand(6000, 5, generator=torch.Generator().manual_seed(1))
    ways, counts = pieces(u, 3).unique(dim=0, return_counts=True)
    assert len(ways) == 6
    assert (ways.sum(1) == 5).all()
    assert (counts - 1000).abs().max() < 5 * (6000 / 6 * 5 / 6) ** 0.5


@pytest.mark.system(SLUG)
def test_the_stream_depends_on_seed_and_position_only() -> None:
    text = torch.randint(1, 900, (4000,), generator=torch.Generator().manual_seed(2))

    def stream(batch: int, seed: int = 0) -> CorruptedWindows:
        return CorruptedWindows(text, 40, batch, seed, FIRST, end=0)

    eight, four = stream(8), stream(4)
    for _ in range(14):  # beyond an epoch of 98 windows
        whole, halves = next(eight), [next(four), next(four)]
        for name in ("x", "y", "ids"):
            assert torch.equal(whole[name], torch.cat([half[name] for half in halves]))
    again = stream(8)
    again.load_state_dict(eight.state_dict())
    a, b = next(eight), next(again)
    assert torch.equal(a["x"], b["x"])
    start = int(a["ids"][0])
    assert restore(a["x"][0, :-1].tolist(), a["y"][0, :-1].tolist(), FIRST) == text[start : start + 40].tolist()
    assert not torch.equal(next(stream(8, seed=1))["x"], next(stream(8))["x"])
    assert (a["x"][:, -1] == 0).all()
    assert (a["y"][:, -1] == 0).all()


def test_mistakes() -> None:
    with pytest.raises(Mistake, match=r"rate 1.5"):
        SpanCorruption(1.5)
    with pytest.raises(Mistake, match="at least 2"):
        SpanCorruption().counts(1)
    with pytest.raises(Mistake, match="among the sentinels"):
        CorruptedWindows(torch.full((400,), FIRST), 40, 2, 0, FIRST, end=0)
