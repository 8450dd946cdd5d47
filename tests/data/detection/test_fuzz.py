"""Whatever stands in an annotation: it is read, or one line says what is wrong.

Values of any type in COCO's fields, any words in YOLO's lines and data.yaml, any elements in VOC's XML."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from descend.data.detection.results import read_results
from descend.data.detection.source import DetectionSource
from descend.errors import Mistake
from tests.data.detection import sets

CASES = int(os.environ.get("DESCEND_FUZZ", "40"))
SETTINGS = settings(
    max_examples=CASES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
NUMBERS = st.one_of(st.integers(-3, 9), st.floats(), st.integers(-(10**30), 10**30))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=6,
)
PLACES = [("images", 0, name) for name in ("id", "file_name", "width", "height")] + [
    ("annotations", 1, name) for name in ("image_id", "category_id", "bbox", "area", "iscrowd", "segmentation")
]
PLACES += [("categories", 0, name) for name in ("id", "name")] + [(k, 0, "") for k in ("images", "annotations")]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "set"


def read(path: Path) -> None:
    """Read with its masks, or one line."""
    told = "a mistake of one line"
    try:
        train = DetectionSource(str(path), size=32, masks=True).read().train
        assert train.instances is not None
        for row in range(len(train)):
            train.instances.load(row)
    except Mistake as mistake:
        told = str(mistake)
    assert "\n" not in told
    assert len(told) > 20


def test_cocos_fields(root: Path) -> None:
    path = sets.coco(root) / "annotations" / "instances_train.json"
    valid = path.read_text()

    @SETTINGS
    @given(st.sampled_from(PLACES), VALUES)
    def every(place: tuple[str, int, str], value: Any) -> None:
        values = json.loads(valid)
        key, at, name = place
        if name:
            values[key][at][name] = value
        else:
            values[key][at] = value
        path.write_text(json.dumps(values))
        read(root)

    every()


@pytest.mark.parametrize(
    "text", ["", "{", "[", "null", "{}", '{"images": 3}', '{"images": [{}]}', "[" * 5000, "\ufeff{}"]
)
def test_other_json(root: Path, text: str) -> None:
    path = sets.coco(root) / "annotations" / "instances_train.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Mistake):
        DetectionSource(str(path), size=32).read()


@pytest.mark.parametrize(
    "outline",
    [
        [["a"] * 6],
        [[1e300] * 8],
        [[5, 5, None, 9, 9, 9]],
        {"counts": [1, -2]},
        {"counts": ["x"]},
        {"size": []},
        7,
        "far",
    ],
)
def test_outlines_that_are_none(root: Path, outline: Any) -> None:
    path = sets.coco(root) / "annotations" / "instances_train.json"
    values = json.loads(path.read_text())
    values["annotations"][2]["segmentation"] = outline
    path.write_text(json.dumps(values))
    with pytest.raises(Mistake, match=r"annotations\[2\]: segmentation is neither"):
        DetectionSource(str(root), size=32, masks=True).read()


def test_yolos_lines(root: Path) -> None:
    label = sets.yolo(root) / "labels" / "train" / "a.txt"
    words = st.one_of(
        st.floats(0, 1).map(repr), st.sampled_from(["0", "1", "2", "7", "-1", "nan", "1e999", "x", "0x1", "٣"])
    )

    @SETTINGS
    @given(st.lists(st.lists(words, max_size=9), max_size=4))
    def every(lines: list[list[str]]) -> None:
        label.write_text("\n".join(" ".join(line) for line in lines), encoding="utf-8")
        read(root)

    every()


def test_yolos_yaml(root: Path) -> None:
    path = sets.yolo(root) / "data.yaml"
    text = st.one_of(
        VALUES.map(json.dumps), st.sampled_from(["images/train", "../x", "[a, b", "&a [*a]", "!!python/none", "{}"])
    )

    @SETTINGS
    @given(st.dictionaries(st.sampled_from(["path", "train", "val", "names", "nc", "numbers"]), text))
    def every(values: dict[str, str]) -> None:
        given = {"train": "images/train", "names": "[cat, dog, red fox]"} | values
        path.write_text("\n".join(f"{k}: {v}" for k, v in given.items()), encoding="utf-8")
        read(root)

    every()


def test_vocs_elements(root: Path) -> None:
    path = sets.voc(root) / "Annotations" / "a.xml"
    names = ["object", "name", "bndbox", "xmin", "ymin", "xmax", "ymax", "size", "width", "height", "difficult", "x"]
    leaf = st.one_of(st.integers(-5, 99).map(str), st.sampled_from(["cat", "", "nan", "&lt;", "&x;", "1e400"]))
    tree = st.recursive(
        leaf,
        lambda inner: st.lists(st.tuples(st.sampled_from(names), inner), max_size=6).map(
            lambda parts: "".join(f"<{name}>{text}</{name}>" for name, text in parts)
        ),
        max_leaves=12,
    )

    @SETTINGS
    @given(tree)
    def every(inner: str) -> None:
        path.write_text(f"<annotation>{inner}</annotation>", encoding="utf-8")
        read(root)

    every()


def test_results_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "r.json"

    @SETTINGS
    @given(st.lists(st.dictionaries(st.sampled_from(["image_id", "category_id", "bbox", "score"]), VALUES), max_size=3))
    def every(values: list[dict[str, Any]]) -> None:
        path.write_text(json.dumps(values))
        told = ""
        try:
            read_results(path)
        except Mistake as mistake:
            told = str(mistake)
        assert "\n" not in told

    every()
