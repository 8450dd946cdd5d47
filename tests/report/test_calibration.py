"""The reliability diagram: a bar for each bin that has examples, as high as its accuracy."""

from __future__ import annotations

import re

import pytest

from descend.report.calibration import draw_reliability
from descend.web.axes import BOTTOM, TOP


def test_bars_are_as_high_as_the_accuracy() -> None:
    bins = {"count": [0, 4, 0, 12], "confidence": [0, 0.4, 0, 0.9], "accuracy": [0, 0.5, 0, 1.0], "of": "images"}
    drawn = str(draw_reliability(bins))
    heights = [float(h) for h in re.findall(r'class="bar"[^>]* height="([\d.]+)"', drawn)]
    whole = 420 - BOTTOM - TOP
    assert heights == pytest.approx([whole / 2, whole], abs=0.1)
    assert "confidence 0.25 to 0.5: 4 images, 50.0% correct" in drawn
    assert "perfect calibration" in drawn


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="2 counts, 2 confidences and 1 accuracies"):
        draw_reliability({"count": [1, 2], "confidence": [0.1, 0.6], "accuracy": [1.0], "of": "texts"})
