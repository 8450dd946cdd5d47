"""The page of a ladder, and the contours of a law."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from descend.report.scaling import draw_contours, write_scaling
from descend.theory.scaling_laws import KAPLAN_JOINED
from tests.close import close

RUNG = {"values": {"model.width": 8}, "parameters": 900, "steps": 40, "compute": 1e9, "seconds": 0.01, "run": "sizes/0"}
FOUND: dict[str, Any] = {
    "recipe": "gpt2-chars",
    "state": "interrupted",
    "score": "loss",
    "times": 10.0,
    "law": None,
    "prediction": None,
    "warnings": ["below two <decades>"],
    "rungs": [{**RUNG, "loss": 2.5}, {**RUNG, "loss": None}],
}


def test_a_ladder_without_a_law_yet(tmp_path: Path) -> None:
    page = write_scaling(tmp_path, FOUND).read_text(encoding="utf-8")
    assert "Too few sizes" in page
    assert "below two &lt;decades&gt;" in page
    assert "width 8" in page


@pytest.mark.system("unified-scaling-law", "contours")
def test_contours_are_lines_of_equal_loss() -> None:
    shown = str(draw_contours(KAPLAN_JOINED, (2.0, 2.5, 3.0)))
    assert "2.5 nats" in shown
    for series in json.loads(re.search(r'data-hover="([^"]*)"', shown)[1].replace("&quot;", '"').replace("&#34;", '"')):  # type: ignore[index]
        loss = float(series["label"].split(" ")[0])
        middle = len(series["x"]) // 2
        close(KAPLAN_JOINED(series["x"][middle], 10 ** series["y"][middle]) / loss, 1.0, 100)  # four digits are drawn
    close(KAPLAN_JOINED(1e10, KAPLAN_JOINED.tokens_for(2.2, 1e10)), 2.2)
    assert KAPLAN_JOINED.tokens_for(2.0, 1e8) == math.inf
