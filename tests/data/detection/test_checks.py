"""What is wrong with a set of annotated images is named, with its file and record, and mended or refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from descend.data.detection.formats import read_annotated
from descend.data.detection.source import DetectionSource
from descend.errors import Mistake
from tests.data.detection import sets


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def facts(root: Path, size: int = 64) -> dict[str, Any]:
    return DetectionSource(str(root), size=size).read().facts


def add_lines(*lines: str) -> Callable[[Path], None]:
    """More lines for an image of 50 × 30."""
    return lambda root: (root / "labels/train/b.txt").write_text("\n".join(lines) + "\n") and None


def edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change of COCO's training file."""

    def apply(root: Path) -> None:
        path = root / "annotations/instances_train.json"
        values = json.loads(path.read_text())
        change(values)
        path.write_text(json.dumps(values))

    return apply


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda root: (root / name).write_text(text) and None


NOTED = [
    ("yolo", add_lines("0 .5 .5 0 .2"), "boxes without area, left out", "labels/train/b.txt, line 1"),
    (
        "yolo",
        add_lines("0 .5 .5 .2 .2", "0 .5 .5 -.2 .2"),
        "boxes with corners the wrong way round, left out",
        "line 2",
    ),
    ("yolo", add_lines("0 1.4 .5 .2 .2"), "boxes outside the image, left out", "line 1"),
    ("yolo", add_lines("0 .95 .5 .4 .2"), "boxes cut to the image", "line 1"),
    ("yolo", add_lines("0 .5 .5 .2 .2", "1 .5 .5 .2 .2", "0 .5 .5 .2 .2"), "the same box twice, left out", "line 3"),
    ("yolo", add_lines("0 .1 .1 .9 .1 .5 .8"), "polygons that became boxes", "b.txt, line 1"),
    (
        "yolo",
        lambda r: (r / "labels/train/b.txt").unlink(),
        "images without a label file, taken as empty",
        "train/b.jpg",
    ),
    (
        "yolo",
        lambda r: (r / "images/train/b.jpg").unlink(),
        "label files without an image, left out",
        "labels/train/b.txt",
    ),
    ("voc", lambda r: (r / "Annotations/b.xml").unlink(), "images without a label file, left out", "JPEGImages/b.jpg"),
    ("voc", lambda r: (r / "JPEGImages/b.jpg").unlink(), "label files without an image, left out", "Annotations/b.xml"),
    (
        "voc",
        lambda r: sets.write_xml(r / "Annotations/b.xml", (500, 300), [("cat", (1, 1, 9, 9))]),
        "sizes that are not the image's",
        "b.xml: 500×300, not 50×30",
    ),
    (
        "voc",
        lambda r: sets.write_xml(r / "Annotations/b.xml", (50, 30), [("cat", (1, 1, 9, 9)), ("dog", (5, 5, 5, 9))]),
        "boxes without area, left out",
        "Annotations/b.xml, object 2",
    ),
    (
        "voc",
        write("ImageSets/Main/val.txt", "e\nzebra\n"),
        "names in lists without image or label, left out",
        "line 2: zebra",
    ),
    ("coco", lambda r: (r / "images/train/b.jpg").unlink(), "annotated images that are missing", "b.jpg"),
    (
        "coco",
        edit(lambda v: v["annotations"][0].update(image_id=5)),
        "annotations of images that are not listed",
        "annotations[0] (image_id 5)",
    ),
    ("coco", edit(lambda v: v["images"][0].update(width=999)), "sizes that are not the image's", "40×999 in the file"),
    (
        "coco",
        edit(lambda v: v["annotations"][1].update(bbox=[5, 5, 0, 9])),
        "boxes without area, left out",
        "instances_train.json, annotation 1",
    ),
]


@pytest.mark.system("vision-datasets", "checks")
@pytest.mark.parametrize(("form", "spoil", "kind", "where"), NOTED, ids=[f"{f}-{k}" for f, _, k, _ in NOTED])
def test_what_is_odd_is_named_and_the_rest_is_read(
    form: str, spoil: Callable[[Path], None], kind: str, where: str, tmp_path: Path
) -> None:
    root = getattr(sets, form)(tmp_path / "set")
    spoil(root)
    found = facts(root)
    assert where in found[kind]
    with pytest.raises(Mistake, match=r"--data\.strict") as caught:
        DetectionSource(str(root), size=64, strict=True).read()
    assert "\n" not in str(caught.value)


REFUSED = [
    ("yolo", add_lines("0 300 20 50 50"), "b.txt, line 1: 300 is no share"),
    ("yolo", add_lines("0 .5 .5 .2"), "line 1: 4 numbers"),
    ("yolo", add_lines("0 .5 .5 .2 .2 .9"), "line 1: 6 numbers"),
    ("yolo", add_lines("cat .5 .5 .2 .2"), "could not convert"),
    ("yolo", add_lines("0.5 .5 .5 .2 .2"), "the class is 0.5"),
    ("yolo", add_lines("0 nan .5 .2 .2"), "all numbers finite"),
    (
        "yolo",
        add_lines("0 .5 .5 .2 .2", "", "9 .5 .5 .2 .2"),
        "b.txt, line 3: class 9, but the names are those of 0 to 2",
    ),
    ("yolo", lambda r: shutil.rmtree(r / "labels"), r"0 of 6 images have labels; looked in .*labels/train for a.txt"),
    ("yolo", write("data.yaml", "train: images/train"), "has no names"),
    ("yolo", write("data.yaml", "names: [a]"), "has no train"),
    ("yolo", write("data.yaml", "train: nowhere\nnames: [a]"), "train: nowhere was not found; looked at"),
    ("yolo", write("data.yaml", "train: images/train\nnc: 5\nnames: [a, b]"), "nc is 5, but names lists 2"),
    ("yolo", write("data.yaml", "[1, 2"), "not valid YAML"),
    ("yolo", write("data.yaml", "- 1"), "no table of names"),
    ("yolo", write("data.yaml", "train: 3\nnames: [a]"), "train is 3"),
    ("yolo", write("data.yaml", "train: images/train\nnames: {x: a}"), "the number 'x'"),
    ("yolo", lambda r: shutil.rmtree(r / "images/train"), "was not found"),
    ("voc", lambda r: shutil.rmtree(r / "Annotations") or (r / "Annotations").mkdir(), "0 of 6 images have labels"),
    ("voc", write("Annotations/b.xml", "<annotation><object></object></annotation>"), "b.xml, object 1 has no name"),
    (
        "voc",
        write("Annotations/b.xml", "<annotation><object><name>a</name></object></annotation>"),
        "xmin is 'missing'",
    ),
    ("voc", write("Annotations/b.xml", "<annotation>"), "not valid XML"),
    ("voc", write("Annotations/b.xml", "<other/>"), "outermost element is 'other'"),
    ("voc", write("Annotations/b.xml", '<!DOCTYPE x [<!ENTITY a "b">]><annotation/>'), "declares doctype"),
    ("voc", write("classes.txt", "cat\n"), "is none of the names"),
    ("coco", write("annotations/instances_train.json", "{"), "not valid JSON"),
    ("coco", write("annotations/instances_train.json", "[]"), None),
    ("coco", write("annotations/instances_train.json", "[1]"), "is a list, as results are"),
    ("coco", edit(lambda v: v["annotations"][0].update(category_id=2)), r"annotations\[0\]: category_id 2 is none"),
    ("coco", edit(lambda v: v["annotations"][0].update(bbox=[1, 2, 3])), r"annotations\[0\]: bbox"),
    ("coco", edit(lambda v: v["annotations"][0].update(bbox="wide")), "bbox"),
    ("coco", edit(lambda v: v["annotations"][0].pop("image_id")), "lacks 'image_id'"),
    ("coco", edit(lambda v: v["annotations"][0].update(iscrowd=5)), "iscrowd is 5"),
    ("coco", edit(lambda v: v["images"][1].update(id=v["images"][0]["id"])), "too; give it once"),
    ("coco", edit(lambda v: v["images"].append(3)), r"images\[4\] is int"),
    ("coco", edit(lambda v: v["categories"][0].pop("name")), "lacks 'name'"),
    ("coco", edit(lambda v: v["categories"][0].update(name="other")), "category 1 is"),
    ("coco", edit(lambda v: v.update(categories=[])), None),
    ("coco", lambda r: shutil.rmtree(r / "images/train"), "none of its 4 images was found"),
]


@pytest.mark.system("vision-datasets", "checks")
@pytest.mark.parametrize(("form", "spoil", "told"), REFUSED, ids=[f"{f}-{t}" for f, _, t in REFUSED])
def test_what_cannot_be_read_is_one_line(
    form: str, spoil: Callable[[Path], None], told: str | None, tmp_path: Path
) -> None:
    root = getattr(sets, form)(tmp_path / "set")
    spoil(root)
    if told is None:  # what is left is a set of its own
        assert len(read_annotated(root).objects) >= 2
        return
    with pytest.raises(Mistake, match=told) as caught:
        DetectionSource(str(root), size=64).read()
    assert "\n" not in str(caught.value)


def test_a_folder_of_another_kind_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(Mistake, match=r"looked for a .yaml file.*annotations/\*.json.*Annotations/\*.xml.*labels/"):
        read_annotated(tmp_path / "x")
    (tmp_path / "x" / "a.txt").write_text("")
    with pytest.raises(Mistake, match="is one file"):
        read_annotated(tmp_path / "x" / "a.txt")
    with pytest.raises(Mistake, match="no such file or folder"):
        read_annotated(tmp_path / "nowhere")


@pytest.mark.system("vision-datasets", "checks")
def test_small_objects_imbalance_gaps_and_classes_never_seen(tmp_path: Path) -> None:
    root = sets.coco(tmp_path / "set")
    found = facts(root, 16)
    assert found["small objects"].startswith("7 (88%) have a side below 8 pixels")
    assert found["imbalance"] == "1.5 : 1"
    assert found["objects per class"] == "cat 3, dog 3, red fox 2"
    assert found["class numbers"] == "1 to 7 with gaps in the files, 0 to 2 here"
    assert found["crowds or difficult"] == 1
    edit(lambda v: v.update(annotations=[a for a in v["annotations"] if a["category_id"] != 7]))(root)
    assert facts(root)["classes without a training object"] == "1: red fox"


@pytest.mark.system("vision-datasets", "checks")
def test_leaks_between_parts_are_named(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set")
    shutil.copy(root / "images/train/a.jpg", root / "images/val/copy.jpg")
    found = facts(root)
    assert "train/a.jpg (train)" in found["leaks between parts"]
    assert found["in training too"] == "1 of 2 valid records"


def test_equal_images_are_cut_into_the_same_part(tmp_path: Path) -> None:
    root = sets.voc(tmp_path / "set")
    shutil.rmtree(root / "ImageSets")
    for i in range(12):
        shutil.copy(root / "JPEGImages/a.jpg", root / f"JPEGImages/a{i}.jpg")
        shutil.copy(root / "Annotations/a.xml", root / f"Annotations/a{i}.xml")
    for seed in range(8):
        sets.write_image(root / f"JPEGImages/new{seed}.jpg", (40, 40), seed)
        sets.write_xml(root / f"Annotations/new{seed}.xml", (40, 40), [("cat", (1, 1, 20, 20))])
    assert "in training too" not in facts(root)


@pytest.mark.system("vision-datasets", "checks")
def test_turned_photographs_are_turned_and_told(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set")
    sets.write_image(root / "images/train/b.jpg", (30, 50), exif=6)  # lies on its side: seen, it is 50 high
    found = DetectionSource(str(root), size=64).read()
    row = found.train.names.index("train/b.jpg")
    assert found.train.sizes[row].tolist() == [50, 30]
    assert found.train.pixels.load(row).shape == (50, 30, 3)
    assert "train/b.jpg; boxes are taken to mean the turned image" in found.facts["turned by their EXIF note"]


def test_odd_images(tmp_path: Path) -> None:
    """An image of one pixel is an image; a damaged one is a mistake that names it."""
    root = sets.yolo(tmp_path / "set")
    sets.write_image(root / "images/train/dot.png", (1, 1))
    (root / "labels/train/dot.txt").write_text("0 .5 .5 1 1\n")
    splits = DetectionSource(str(root), size=64).read()
    assert [1, 1] in splits.train.sizes.tolist()
    (root / "images/train/dot.png").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(Mistake, match=r"dot\.png cannot be read as an image"):
        DetectionSource(str(root), size=64).read()


def test_too_few_images_for_three_parts(tmp_path: Path) -> None:
    root = sets.voc(tmp_path / "set")
    (root / "ImageSets/Main/train.txt").write_text("a\n")
    (root / "ImageSets/Main/val.txt").unlink()
    with pytest.raises(Mistake, match="1 training images are too few to cut valid"):
        facts(root)


def test_a_file_without_a_box_to_learn(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set")
    for label in (root / "labels").rglob("*.txt"):
        label.write_text("0 .5 .5 0 0\n")
    with pytest.raises(Mistake, match="not one box that can be learned"):
        facts(root)


BLOOD = os.environ.get("DESCEND_BCCD", "")


@pytest.mark.skipif(not BLOOD, reason="DESCEND_BCCD names no folder of the blood cells")
@pytest.mark.system("vision-datasets", "real-set")
def test_blood_cells() -> None:
    splits = DetectionSource(BLOOD, size=320).read()
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (205, 87, 72)
    assert splits.labels == ("Platelets", "RBC", "WBC")
    told = splits.facts["boxes without area, left out"]
    assert told == "2: Annotations/BloodImage_00338.xml, object 13; Annotations/BloodImage_00343.xml, object 4"
