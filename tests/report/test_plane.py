"""Decision regions, and predicted against true, as plots."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from PIL import Image

from descend.contracts import Exhibit
from descend.report.exhibits import make_section

REGIONS = {
    "x": [0.0, 2.0],
    "y": [-1.0, 1.0],
    "winner": [[0, 0], [1, 1], [1, 1]],
    "lead": [[1.0, 0.0], [0.5, 1.0], [1.0, 1.0]],
    "points": {"a <b>": [[0.5, -0.5]], "c": [[1.5, 0.5], [1.0, 0.5]]},
    "labels": ["width", "height"],
}


def test_regions_are_drawn_upright() -> None:
    page = make_section(Exhibit("regions", "Regions", REGIONS))
    assert "could not be drawn" not in page
    assert page.count("<circle") == 3
    assert "a &lt;b&gt;" in page
    assert "width" in page
    code = re.search(r"base64,([^\"]+)", page)
    assert code
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(code[1]))))
    assert pixels.shape == (3, 2, 4)
    assert tuple(pixels[2, 0, :3]) == (43, 108, 216)  # the lowest y is the image's last row
    assert pixels[2, 1, 3] == 0  # where no class leads, nothing is tinted
    assert tuple(pixels[0, 0, :3]) == (214, 104, 32)


def test_against_has_its_diagonal() -> None:
    page = make_section(Exhibit("against", "Fit", {"true": [1, 2, 4], "predicted": [1.5, 2, 3], "name": "price"}))
    assert "could not be drawn" not in page
    assert page.count("<circle") == 3
    assert "true price" in page
    assert "predicted price" in page
    assert "<polyline" in page


def test_what_does_not_fit_says_so() -> None:
    assert "could not be drawn" in make_section(Exhibit("against", "Fit", {"true": [1], "predicted": []}))
    assert "could not be drawn" in make_section(Exhibit("regions", "R", {**REGIONS, "lead": [[1.0]]}))
