"""COCO, YOLO and VOC, read, written and converted: the same set in every form."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from descend.data.detection.annotated import AnnotatedSet
from descend.data.detection.formats import FORMS, read_annotated, write_annotated
from descend.data.detection.results import Results, read_results, write_results
from descend.data.detection.source import DetectionSource
from descend.errors import Mistake
from descend.verbs.convert import convert
from tests.close import close
from tests.data.detection import sets

MAKE: dict[str, Callable[[Path], Path]] = {"coco": sets.coco, "yolo": sets.yolo, "voc": sets.voc}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def contents(found: AnnotatedSet) -> dict[str, Any]:
    """What the set says, whatever its form: part, image, and its objects by name."""
    said = {}
    for part, rows in found.parts.items():
        own = found.objects.take(rows)
        for i, name in enumerate(own.names):
            which = own.owner == i
            boxes = [tuple(round(v, 4) for v in box) for box in own.boxes[which].tolist()]
            labels = [found.labels[k] for k in own.classes[which].tolist()]
            flags = zip(boxes, labels, own.crowd[which].tolist(), strict=True)
            said[part, Path(name).stem] = (tuple(own.sizes[i].tolist()), sorted(flags))
    return said


EXPECTED = {
    ({"val": "valid"}.get(part, part), stem): (
        sets.SIZES[stem],
        sorted((box, sets.NAMES[label], False) for label, box in sets.BOXES[stem]),
    )
    for part, stems in sets.PARTS.items()
    for stem in stems
}


@pytest.mark.system("vision-datasets")
@pytest.mark.system("vision-datasets", "readers")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str, tmp_path: Path) -> None:
    found = read_annotated(MAKE[form](tmp_path / "set"))
    said = contents(found)
    if form == "coco":
        size, objects = said["train", "d"]
        assert [crowd for *_, crowd in objects].count(True) == 1
        said["train", "d"] = size, sorted((box, label, False) for box, label, _ in objects)
        assert found.numbers == (1, 3, 7)
        assert {100 + ord(stem) for stem in "abcdef"} == set(found.objects.ids.tolist())
    assert said == EXPECTED
    assert found.form == form
    assert not found.notes.found


@pytest.mark.system("vision-datasets", "round-trip")
@pytest.mark.parametrize(("one", "other"), list(itertools.product(FORMS, FORMS)))
def test_there_and_back_is_the_same(one: str, other: str, tmp_path: Path) -> None:
    """Of all pairs of forms; what a form cannot hold (crowds in YOLO, outlines) is the only loss."""
    first = read_annotated(MAKE[one](tmp_path / "set"))
    said = convert(tmp_path / "set", tmp_path / "there", other)
    convert(tmp_path / "there", tmp_path / "back", one)
    there, back = read_annotated(tmp_path / "there"), read_annotated(tmp_path / "back")
    expected = contents(first)
    if "yolo" in (one, other):
        expected = {k: (size, [o for o in objects if not o[2]]) for k, (size, objects) in expected.items()}
        assert said["left out"].get("crowds, which YOLO's files cannot hold", 0) == (1 if one == "coco" else 0)
    assert contents(there) == contents(back) == expected
    assert back.labels == there.labels == first.labels
    assert back.numbers == first.numbers
    assert there.numbers == first.numbers


def test_coco_keeps_ids_areas_and_outlines(tmp_path: Path) -> None:
    sets.coco(tmp_path / "set")
    convert(tmp_path / "set", tmp_path / "new", "coco")
    first, again = read_annotated(tmp_path / "set").objects, read_annotated(tmp_path / "new").objects
    assert torch.equal(first.ids, again.ids)
    close(first.area, again.area)
    assert first.outlines == again.outlines
    assert 260.0 in first.area.tolist()


def test_a_public_library_reads_what_is_written(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    sets.yolo(tmp_path / "set")
    convert(tmp_path / "set", tmp_path / "new", "coco")
    found = coco.COCO(str(tmp_path / "new" / "annotations" / "train.json"))
    boxes = {tuple(round(v, 3) for v in entry["bbox"]) for entry in found.loadAnns(found.getAnnIds())}
    expected = {(x0, y0, x1 - x0, y1 - y0) for s in sets.PARTS["train"] for _, (x0, y0, x1, y1) in sets.BOXES[s]}
    assert boxes == expected


def test_gaps_in_yolos_numbers_are_kept(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set", "names: {0: cat, 1: dog, 2: red fox, 5: owl}")
    for form in FORMS:
        convert(root, tmp_path / form, form)
        convert(tmp_path / form, tmp_path / f"{form}-back", "yolo")
        back = read_annotated(tmp_path / f"{form}-back")
        assert back.numbers == (0, 1, 2, 5)
        assert back.labels == ("cat", "dog", "red fox", "owl")
        assert (tmp_path / f"{form}-back" / "labels" / "train" / "a.txt").read_text().split()[0] == "0"


def test_polygons_become_boxes_and_are_told(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set")
    (root / "labels" / "train" / "b.txt").write_text("1 0.1 0.2 0.5 0.2 0.5 0.8\n")
    found = read_annotated(root)
    assert "polygons that became boxes" in found.notes.found
    row = found.listed.names.index("train/b.jpg")
    own = found.objects.boxes[found.objects.owner == row]
    close(own[0], torch.tensor([3.0, 10, 15, 40], dtype=torch.float64))
    close(found.objects.area[found.objects.owner == row][0], torch.tensor(180.0, dtype=torch.float64))


def test_roboflows_layouts(tmp_path: Path) -> None:
    """Parts as folders, the annotations inside; data.yaml with ../train/images."""
    one = sets.coco(tmp_path / "set")
    root = tmp_path / "flow"
    for part, new in (("train", "train"), ("val", "valid"), ("test", "test")):
        (root / new).mkdir(parents=True)
        for image in (one / "images" / part).iterdir():
            image.rename(root / new / image.name)
        (one / "annotations" / f"instances_{part}.json").rename(root / new / "_annotations.coco.json")
    assert {k: v[0] for k, v in contents(read_annotated(root)).items()} == {k: v[0] for k, v in EXPECTED.items()}
    two = sets.yolo(tmp_path / "other")
    for part in ("train", "val", "test"):
        for kind in ("images", "labels"):
            (two / part).mkdir(exist_ok=True)
            (two / kind / part).rename(two / part / kind)
    (two / "data.yaml").write_text(
        "train: ../train/images\nval: ../val/images\ntest: ../test/images\nnc: 3\nnames: ['cat', 'dog', 'red fox']\n"
    )
    (two / "images").rmdir()
    (two / "labels").rmdir()
    assert contents(read_annotated(two)) == EXPECTED


def test_a_list_of_images(tmp_path: Path) -> None:
    root = sets.yolo(tmp_path / "set")
    (root / "train.txt").write_text("./images/train/a.jpg\n./images/train/b.jpg\n")
    (root / "data.yaml").write_text("path: .\ntrain: train.txt\nval: images/val\nnames: [cat, dog, red fox]\n")
    assert len(read_annotated(root).parts["train"]) == 2


def test_xml_beside_images_and_a_single_json(tmp_path: Path) -> None:
    root = sets.voc(tmp_path / "set")
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in [*(root / "Annotations").iterdir(), *(root / "JPEGImages").iterdir()]:
        file.rename(flat / file.name)
    assert len(read_annotated(flat).objects) == 6
    single = sets.coco(tmp_path / "coco") / "annotations" / "instances_train.json"
    assert len(read_annotated(single).objects) == 4


def test_results_both_ways(tmp_path: Path) -> None:
    found = Results(
        torch.tensor([7, 7, 9]),
        torch.tensor([[0.0, 1, 10, 21], [2.5, 3, 4, 5], [1, 1, 2, 2]], dtype=torch.float64),
        torch.tensor([1, 3, 7]),
        torch.tensor([0.9, 0.25, 0.125], dtype=torch.float64),
    )
    write_results(tmp_path / "r.json", found)
    again = read_results(tmp_path / "r.json")
    for name in ("ids", "boxes", "categories", "scores"):
        close(getattr(again, name), getattr(found, name))
    assert json.loads((tmp_path / "r.json").read_text())[0] == {
        "image_id": 7,
        "category_id": 1,
        "bbox": [0, 1, 10, 20],
        "score": 0.9,
    }
    (tmp_path / "r.json").write_text("[]")
    assert read_results(tmp_path / "r.json").boxes.shape == (0, 4)


def test_conversion_leaves_no_half_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = sets.voc(tmp_path / "set")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(Mistake, match="not empty"):
        convert(root, tmp_path / "full", "coco")
    monkeypatch.setattr("descend.data.detection.formats.write_coco", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        convert(root, tmp_path / "new", "coco")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["full", "set"]


def test_links_instead_of_copies(tmp_path: Path) -> None:
    convert(sets.voc(tmp_path / "set"), tmp_path / "new", "yolo", link=True)
    image = tmp_path / "new" / "images" / "train" / "a.jpg"
    assert image.is_symlink()
    assert contents(read_annotated(tmp_path / "new")) == EXPECTED


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_trains(form: str, tmp_path: Path) -> None:
    source = DetectionSource(str(MAKE[form](tmp_path / "set")), size=64)
    splits = source.read()
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (4, 1, 1)
    assert splits.labels == ("cat", "dog", "red fox")
    assert splits.facts["format"] == form
    assert splits.facts["images without objects"] == 1
    unseen = source.read_unseen(str(tmp_path / "set"), ("owl", "red fox", "cat", "dog"))
    assert set(unseen.classes.tolist()) == {1, 2, 3}
    with pytest.raises(Mistake, match="does not know the class 'red fox'"):
        source.read_unseen(str(tmp_path / "set"), ("cat", "dog", "red"))


def test_missing_parts_are_cut_from_train(tmp_path: Path) -> None:
    root = sets.voc(tmp_path / "set")
    for name in ("val", "test"):
        (root / "ImageSets" / "Main" / f"{name}.txt").unlink()
    (root / "ImageSets" / "Main" / "train.txt").write_text("".join(f"{stem}\n" for stem in sets.SIZES))
    splits = DetectionSource(str(root), size=64).read()
    parts = [set(part.names) for part in (splits.train, splits.valid, splits.test)]
    assert [len(part) for part in parts] == [4, 1, 1]
    assert len(set.union(*parts)) == 6


def test_writing_needs_a_form(tmp_path: Path) -> None:
    found = read_annotated(sets.voc(tmp_path / "set"))
    with pytest.raises(Mistake, match="choose coco, yolo, voc"):
        write_annotated(found, tmp_path / "new", "pascal")
