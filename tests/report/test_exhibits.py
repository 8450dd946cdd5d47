from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from descend.contracts import Exhibit
from descend.report.exhibits import make_section


def shown(kind: str, content: Any) -> str:
    return make_section(Exhibit(kind, "Title <1>", content, "a note & more"))


def test_a_sample_is_escaped() -> None:
    html = shown("text", [{"prompt": "<b>go", "text": " on</pre><script>alert(1)</script>"}, "plain & simple"])
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert '<b class="prompt">&lt;b&gt;go</b>' in html
    assert "Title &lt;1&gt;" in html
    assert "a note &amp; more" in html


def test_confusion_counts_what_is_right() -> None:
    html = shown("confusion", {"labels": ["cat", "<dog>"], "counts": torch.tensor([[8, 2], [1, 9]])})
    assert "17 of 20 correct (85.00%)" in html
    assert "&lt;dog&gt;" in html
    assert re.findall(r'dy=".32em">(\d+)<', html) == ["8", "2", "1", "9"]


def test_heat_shades_by_value() -> None:
    html = shown("heatmap", {"values": [[0.0, 1.0], [-0.5, 0.25]]})
    data = re.search(r"base64,([\w+/=]+)", html)
    assert data is not None
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data[1]))))
    assert pixels[..., 3].tolist() == [[0, 255], [128, 64]]  # opacity is the size of the value
    assert pixels[1, 0, 0] > pixels[1, 0, 2]  # below zero is orange, above is blue
    assert pixels[0, 1, 0] < pixels[0, 1, 2]


def test_images_keep_their_pixels() -> None:
    images = np.linspace(0, 1, 2 * 3 * 4 * 3).reshape(2, 3, 4, 3)
    html = shown("images", {"images": images, "captions": ["a", "<b>"]})
    found = re.findall(r"base64,([\w+/=]+)", html)
    assert len(found) == 2
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))
    assert (pixels == (images[1] * 255).round()).all()
    assert "&lt;b&gt;" in html


def test_a_row_of_a_contact_sheet_stays_one_row() -> None:
    html = shown("sheet", {"rows": np.zeros((2, 8, 28, 28)), "captions": ["one", "<two>"]})
    assert html.count("<img") == 16
    assert "&lt;two&gt;" in html
    sides = {int(side) for side in re.findall(r"--side:(\d+)px", html)}
    assert all(8 * side + 7 * 12 <= 976 for side in sides)


def test_points_curve_and_table() -> None:
    html = shown("points", {"real": [[0, 0], [1, 1]], "generated": np.zeros((5000, 2))})
    assert html.count("<circle") <= 2 + 2000
    assert ">generated<" in html
    html = shown(
        "curve", {"x": [0, 1], "y": {"ours": [0, 1], "theirs": [1, 2]}, "x_label": "episode", "y_label": "return"}
    )
    assert html.count("<polyline") == 2
    assert ">episode<" in html
    html = shown("table", {"columns": ["name", "loss"], "rows": [["<a>", 0.123456789], ["b", 1234567]]})
    assert "<td>&lt;a&gt;</td>" in html
    assert '<td class="number">0.12346</td>' in html
    assert '<td class="number">1,234,567</td>' in html
    assert "<th>loss</th>" in shown("table", {"columns": ["loss"], "rows": []})


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("poem", "x", "the kinds are text, confusion"),
        ("confusion", {"labels": ["a"], "counts": [[1, 2]]}, "1 labels for counts of shape (1, 2)"),
        ("points", {"real": [1, 2]}, "real: points are pairs"),
        ("images", {"images": np.zeros((2, 3, 4, 5))}, "images have shape (n, h, w)"),
        ("curve", {"x": [1]}, "KeyError"),
        ("heatmap", {"values": [1, 2]}, "needs a matrix"),
    ],
)
def test_what_cannot_be_drawn_says_so(kind: str, content: Any, said: str) -> None:
    assert said in shown(kind, content)
    assert "could not be drawn" in shown(kind, content)
