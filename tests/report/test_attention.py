from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from descend.report.attention import draw_heads, shade_tokens


@pytest.mark.system("attention-maps-analysis", "drawn")
def test_an_image_for_every_head() -> None:
    maps = np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.2, 0.8]]])
    html = draw_heads({"tokens": ["<a>", "b"], "layers": {"block 0": maps, "block 1": maps[:1]}})
    found = re.findall(r"base64,([\w+/=]+)", html)
    assert len(found) == 3
    opacity = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))[..., 3]
    assert opacity.tolist() == [[255, 0], [51, 204]]
    assert "&lt;a&gt; b" in html


def test_what_was_not_expected_is_dark() -> None:
    html = shade_tokens([
        {"token": "the<", "p": 1.0, "best": [["the", 1.0]]},
        {"token": "cat", "p": 2.0**-6, "best": [["dog", 0.5], ["cow", 0.25]]},
    ])  # fmt: skip
    assert [abs(float(x)) for x in re.findall(r"32,([\d.-]+)\)", html)] == [0.0, 0.5]
    assert "the&lt;" in html
    assert "most likely: dog 50%, cow 25%" in html
