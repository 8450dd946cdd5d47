"""Charts: ticks, scales, peaks, and tooltips."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from xml.etree import ElementTree

import pytest

from descend.web.axes import Axis, format_tick, pad_limits, round_step
from descend.web.chart import BUCKETS, Series, draw_chart, draw_choices, draw_log_chart, gather_peaks, smooth
from tests.close import close


def test_axis_maps_ends_to_ends() -> None:
    even, log = Axis(2, 4, 100, 0), Axis(1, 100, 0, 200, log=True)
    close([even.at(2), even.at(4), even.at(3)], [100.0, 0.0, 50.0])
    close([log.at(1), log.at(100), log.at(10)], [0.0, 200.0, 100.0])


def test_ticks_are_round_and_inside() -> None:
    assert [text for _, text in Axis(0, 600, 0, 1).ticks(6)] == ["0", "100", "200", "300", "400", "500", "600"]
    assert [text for _, text in Axis(-0.1, 0.32, 0, 1).ticks(4)] == ["-0.1", "0", "0.1", "0.2", "0.3"]
    assert [text for _, text in Axis(0.05, 200, 0, 1, log=True).ticks(4)] == ["0.1", "1", "10", "100"]
    assert [text for _, text in Axis(0, 3, 0, 1, whole=True).ticks(12)] == ["0", "1", "2", "3"]
    for lo, hi in ((1.003, 1.004), (-5e6, 2e7), (0, 3e-9), (7, 7.5)):
        ticks = Axis(lo, hi, 0, 1).ticks(5)
        assert 3 <= len(ticks) <= 9
        assert all(lo - 1e-9 <= value <= hi + 1e-9 * abs(hi) for value, _ in ticks)
        assert len({text for _, text in ticks}) == len(ticks)


def test_nice_steps_and_labels() -> None:
    assert [round_step(x) for x in (0.9, 1.2, 3, 4, 8)] == [1, 1, 2, 5, 10]
    assert [format_tick(v, s) for v, s in ((20_000, 5000), (1500, 500), (0.003, 0.001), (2e-5, 1e-5), (0, 1))] == [
        "20k",
        "1.5k",
        "0.003",
        "2e-5",
        "0",
    ]


def test_limits_never_coincide() -> None:
    for values in ([3.0], [0.0, 0.0], [-2.0, -2.0]):
        lo, hi = pad_limits(values, 0.0)
        assert lo < hi


def test_smoothing_keeps_a_line_and_removes_noise() -> None:
    line = [0.5 * i for i in range(500)]
    close(smooth(line)[:490], line[:490])  # centred: a slope does not lag
    noisy = [1.0 + (-1) ** i for i in range(500)]
    assert max(abs(value - 1) for value in smooth(noisy)[20:]) < 0.1
    assert smooth([]) == []


def test_a_long_line_keeps_its_peaks() -> None:
    line = [(float(i), 0.0) for i in range(50_000)]
    line[31_415] = (31_415.0, 9.0)
    kept = gather_peaks(line)
    assert len(kept) <= 2 * BUCKETS
    assert (31_415.0, 9.0) in kept


def test_chart_is_xml_with_what_the_mouse_needs() -> None:
    x = [float(i) for i in range(300)]
    y = [math.nan if i == 7 else 1 / (1 + i) for i in range(300)]
    svg = draw_chart([Series('a "<b>" & c', x, y)], (400, 200), ("step", ""), (3.0, 0.25, "best"), "auto")
    ElementTree.fromstring(svg)
    assert "(log scale)" in svg
    data = re.search(r'data-hover="(.*?)"', svg)
    assert data is not None
    (series,) = json.loads(unescape(data[1]))
    assert series["label"] == 'a "<b>" & c'
    assert series["x"][0] == 0
    assert series["x"][-1] == 299
    assert series["y"][:3] == [float(f"{1 / (1 + x):.4g}") for x in series["x"][:3]]


def test_equal_scale_keeps_a_circle_round() -> None:
    angles = [i / 10 for i in range(63)]
    svg = draw_chart(
        [Series("o", [9 * math.cos(a) for a in angles], [9 * math.sin(a) for a in angles], "dots")], scale="equal"
    )
    points = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)]
    across, up = (max(c) - min(c) for c in zip(*points, strict=True))
    assert abs(across / up - 1) < 0.01


@pytest.mark.parametrize("y", [[], [math.nan, math.inf]])
def test_nothing_to_draw(y: list[float]) -> None:
    assert "nothing was measured" in draw_chart([Series("a", [0.0] * len(y), y)])


def test_an_axis_of_magnitudes_and_named_places() -> None:
    series = [Series("s", [1e-4, 1e-2, 1.0], [1.0, 2.0, 3.0], "line", 0)]
    drawn = draw_log_chart(series, labels=("rate", "loss"))
    xs = [float(pair.split(",")[0]) for pair in drawn.partition('points="')[2].partition('"')[0].split()]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    named = draw_choices([Series("s", [0.0, 1.0], [1.0, 2.0], "spots", 0)], ("one", "<two>"))
    assert "one" in named
    assert "&lt;two&gt;" in named
    assert "nothing was measured" in draw_log_chart([])
    assert "nothing was measured" in draw_choices([], ("one",))
