from __future__ import annotations

import json
import math
from html import unescape

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.ops.attention import positions
from descend.ops.attention.positions import alibi, alibi_slopes, band, shift, sinusoidal, wavelengths
from descend.ops.attention.rotary import frequencies
from descend.web.heatmap import Names, draw_heatmap
from tests.close import close

PE = "sinusoidal-positional-encoding"
ANALYSIS = "sinusoidal-encoding-analysis"


def table(n: int, d: int) -> torch.Tensor:
    return sinusoidal(torch.arange(n, dtype=torch.float64), d)


@pytest.mark.system(PE, "formula")
@pytest.mark.system(PE)
def test_is_the_formula_element_by_element() -> None:
    p = table(40, 12)
    for t in (0, 1, 7, 39):
        for i in range(6):
            angle = t / 10000 ** (2 * i / 12)
            close(p[t, 2 * i], torch.tensor(math.sin(angle), dtype=torch.float64))
            close(p[t, 2 * i + 1], torch.tensor(math.cos(angle), dtype=torch.float64))


@pytest.mark.system(PE, "any-size")
@pytest.mark.system(PE)
def test_is_the_table_of_transformers() -> None:
    """Marian keeps the sines in the first half and the cosines in the second; the numbers are the same."""
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(64, 16)
    weight = torch.as_tensor(theirs.create_weight())
    ours = sinusoidal(torch.arange(64), 16)
    assert ours.dtype == torch.float32
    close(torch.cat([ours[:, ::2], ours[:, 1::2]], dim=1), weight)


@pytest.mark.system(PE, "one-based")
@pytest.mark.system(PE)
@given(st.integers(1, 20), st.integers(1, 4000))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_counting_from_one_gives_the_same_values(half: int, t: int) -> None:
    from_one = positions.sinusoidal_from_one(torch.tensor([t + 1.0], dtype=torch.float64), 2 * half)
    close(from_one, sinusoidal(torch.tensor([float(t)], dtype=torch.float64), 2 * half))


@pytest.mark.system(PE, "properties")
@pytest.mark.system(PE)
def test_bounded_unique_and_of_one_length() -> None:
    p = table(512, 64)
    assert p.abs().max() <= 1
    close(p.square().sum(-1), torch.full((512,), 32.0, dtype=torch.float64))
    close(p[:, ::2].square() + p[:, 1::2].square(), torch.ones(512, 32, dtype=torch.float64))
    assert torch.pdist(p).min() > 0.1


@pytest.mark.system(PE, "any-size")
@pytest.mark.system(PE)
@pytest.mark.parametrize("width", [0, 1, 7])
def test_an_odd_width_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"width {width}"):
        sinusoidal(torch.arange(3), width)


@pytest.mark.system(ANALYSIS, "rotation")
@pytest.mark.system(PE, "offset")
@pytest.mark.system(ANALYSIS)
@given(st.integers(0, 3000), st.integers(-50, 50))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_an_offset_is_one_rotation_for_all_positions(t: int, k: int) -> None:
    near, far = sinusoidal(torch.tensor([float(t), t + k], dtype=torch.float64), 16)
    turn = shift(k, 16)
    close(turn @ near, far)
    close(turn @ turn.T, torch.eye(16, dtype=torch.float64))
    close(near @ far, torch.tensor(positions.offset_product(k, 16), dtype=torch.float64))


@pytest.mark.system(ANALYSIS, "look-back")
@pytest.mark.system(ANALYSIS)
def test_look_three_back_is_learned_as_one_linear_map() -> None:
    """Fitted on the first 40 positions by least squares, it holds at every other."""
    p = table(500, 8)
    fitted = torch.linalg.lstsq(p[3:40], p[:37]).solution.T
    close(fitted, shift(-3, 8), loosen=1e3)  # the slow bands hardly move within 40 positions
    close(p[3:] @ fitted.T, p[:-3], loosen=1e3)


@pytest.mark.system(ANALYSIS, "bands", "base")
@pytest.mark.system(ANALYSIS)
def test_wavelengths_are_geometric_and_end_below_the_printed_limit() -> None:
    """VOM 11.3.5 and DLN print 2π · 10000; the last band has exponent 510/512."""
    waves = wavelengths(frequencies(512, dtype=torch.float64))
    close(waves[0], torch.tensor(2 * math.pi, dtype=torch.float64))
    close(waves[1:] / waves[:-1], torch.full((255,), 10000 ** (2 / 512), dtype=torch.float64))
    assert 60_611 < positions.slowest_wavelength(512) < 60_612 < 62_800
    assert positions.slowest_wavelength(512, 100) < 628 < positions.slowest_wavelength(512, 100_000)


@pytest.mark.system(ANALYSIS)
def test_a_band_repeats_after_its_wavelength() -> None:
    t = torch.arange(50, dtype=torch.float64)
    close(band(t + float(wavelengths(torch.tensor(0.1, dtype=torch.float64))), 0.1), band(t, 0.1))


@pytest.mark.system(ANALYSIS, "ambiguity")
@pytest.mark.system(ANALYSIS)
def test_the_pair_gives_the_position_and_the_sine_alone_does_not() -> None:
    t = torch.arange(62, dtype=torch.float64)  # λ = 62.8 at ω = 0.1
    pairs = band(t, 0.1)
    close(positions.position_in_band(pairs, 0.1), t)
    degrees = band(torch.tensor([30.0, 150.0], dtype=torch.float64), math.pi / 180)
    close(degrees[0, 0], degrees[1, 0])
    assert abs(float(degrees[0, 1] - degrees[1, 1])) > 1.7


@pytest.mark.system(ANALYSIS, "bands")
@pytest.mark.system(ANALYSIS)
def test_positions_5_and_50_are_not_nearly_identical() -> None:
    """VOM 11.3.1: true of ω = 0.001 only."""
    at = torch.tensor([5.0, 50.0], dtype=torch.float64)
    a, b = band(at, 0.01)
    close((a - b).norm(), torch.tensor(2 * math.sin(0.45 / 2), dtype=torch.float64))  # a chord of 0.45 radians
    a, b = band(at, 0.001)
    assert (a - b).norm() < 0.05


@pytest.mark.system("position-encoding-labs", "rejected")
@pytest.mark.system("position-encoding-labs")
def test_the_rejected_codes_have_the_defects_that_are_named() -> None:
    assert positions.fractions(5)[1] != positions.fractions(10)[1], "the same position, another code"
    assert 0 < positions.fractions(7).min() < positions.fractions(7).max() < 1
    assert positions.relative_step(1, 2) == 1
    assert positions.relative_step(100, 101) == 0.01


@pytest.mark.system("position-encoding-labs", "orthogonal")
@pytest.mark.system("position-encoding-labs")
@pytest.mark.parametrize("d", [128, 512])
def test_random_vectors_are_nearly_orthogonal(d: int) -> None:
    x = torch.nn.functional.normalize(torch.randn(400, d, generator=torch.Generator().manual_seed(1)), dim=-1)
    cosines = (x[:200] @ x[200:].T).abs()
    expected = positions.mean_cosine(d)
    assert abs(float(cosines.mean()) - expected) < 0.02 * expected
    assert round(positions.mean_cosine(512), 4) == 0.0353


@pytest.mark.system(PE, "binary")
@pytest.mark.system(PE)
def test_binary_digits_are_the_discrete_relative() -> None:
    bits = positions.binary(torch.arange(16), 4)
    assert ["".join(map(str, row)) for row in bits.tolist()] == [f"{n:04b}" for n in range(16)]
    for bit in range(3):
        period = round(1 / positions.bit_frequency(bit))
        column = bits[:, 3 - bit]
        assert torch.equal(column[period:], column[:-period])
        assert not torch.equal(column[period // 2 :], column[: -(period // 2)])


@pytest.mark.system("alibi", "slopes")
@pytest.mark.system("alibi")
@pytest.mark.parametrize("heads", [1, 4, 8, 12, 16, 20])
def test_alibi_is_that_of_the_released_models(heads: int) -> None:
    """Bloom adds m j instead of −m (i − j): a row of scores differs by the constant m i, which the softmax ignores."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    t = 6
    theirs = build_alibi_tensor(torch.ones(1, t), heads, torch.float32).view(heads, 1, t)
    slopes = alibi_slopes(heads)
    close(slopes, theirs[:, 0, 1])
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    ours = alibi(heads, t, t).masked_fill(~causal, -math.inf).softmax(-1)
    close(ours, theirs.expand(-1, t, -1).masked_fill(~causal, -math.inf).softmax(-1))


@pytest.mark.system("alibi", "slopes", "distance")
@pytest.mark.system("alibi")
def test_alibi_slopes_and_distances() -> None:
    close(alibi_slopes(8), torch.tensor([0.5**h for h in range(1, 9)]))
    bias = alibi(4, 5, 5)
    for gap in range(-4, 5):
        diagonal = bias.diagonal(gap, dim1=-2, dim2=-1)
        assert torch.equal(diagonal, diagonal[:, :1].expand_as(diagonal)), "it depends on i − j alone"
    close(bias[:, 4, 0], -4 * alibi_slopes(4))
    assert torch.equal(alibi(4, 2, 5), bias[:, 3:]), "with a cache only the last rows are new"
    with pytest.raises(ValueError, match="0 heads"):
        alibi_slopes(0)


@pytest.mark.system(ANALYSIS, "heatmap")
def test_the_heat_map_of_64_positions_and_16_dimensions() -> None:
    """VOM figure 11.1: a cell for each number; the left columns oscillate, the right ones hardly move."""
    p = table(64, 16)
    drawn = str(draw_heatmap(p, Names(row_label="position", column_label="dimension")))
    assert "position ↓  dimension →" in drawn
    cells = json.loads(unescape(drawn.partition('data-cells="')[2].partition('"')[0]))["values"]
    assert torch.tensor(cells).shape == (64, 16)
    assert (torch.tensor(cells) - p).abs().max() <= 0.0005, "three digits are written"
    moves = p.diff(dim=0).abs().mean(0)
    assert moves[:2].min() > 0.5
    assert moves[-2:].max() < 0.001
    assert torch.pdist(p).min() > 1
