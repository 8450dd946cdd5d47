"""Small valid data files of every kind that descend reads, and the call that reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from descend.data.detection.source import DetectionSource
from descend.data.images.captions import Captions
from descend.data.images.idx import write_idx
from descend.data.images.labelled import Preprocessing
from descend.data.images.masks import Masks
from descend.data.images.source import ImageSource
from descend.data.tables.source import Table
from descend.data.text.labelled import LabelledText
from descend.data.text.plain import Text
from descend.data.text.sentiment import Opinions
from descend.data.text.tagged import TaggedText
from descend.data.text.text_to_text import TextPairs
from proofs import valid_graphs

SENTENCES = [f"the {noun} is {word} ." for noun in ("film", "plot", "cast") for word in ("good", "bad", "dull", "new")]


@dataclass(frozen=True)
class Reader:
    """Writes valid files into a folder, and reads what a folder holds."""

    write: Callable[[Path], None]
    read: Callable[[Path], object]


def one_file(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content

    def write(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return write


def first(folder: Path, *names: str) -> str:
    """The file of a reader that wants one; if it was renamed, the file that is there."""
    there = [folder / name for name in names] + sorted(p for p in folder.iterdir() if p.name != "cache")
    return str(next((p for p in there if p.exists() or p.is_symlink()), folder / names[0]))


def json_lines(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


LABELLED: list[dict[str, object]] = [{"text": t, "label": "ab"[i % 2]} for i, t in enumerate(4 * SENTENCES)]
TAGGED: list[dict[str, object]] = [{"tokens": t.split(), "tags": ["N"] * len(t.split())} for t in 2 * SENTENCES]
PAIRS: list[dict[str, object]] = [{"source": t, "target": t[::-1]} for t in 3 * SENTENCES]


def table(records: list[dict[str, object]], separator: str, header: bool = True) -> str:
    rows = [list(records[0])] * header + [list(map(str, record.values())) for record in records]
    return "".join(separator.join(row) + "\n" for row in rows)


def write_table(folder: Path) -> None:
    lines = [f"{i},{i % 7}.5,{'abc'[i % 3]},2024-01-{i % 28 + 1:02d},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (folder / "t.csv").write_text("n,x,k,d,y\n" + "\n".join(lines) + "\n")


def write_parallel(folder: Path) -> None:
    (folder / "train.de").write_text("\n".join(2 * SENTENCES) + "\n")
    (folder / "train.en.gz").write_bytes(gzip.compress("\n".join(2 * SENTENCES).encode(), mtime=0))


def write_documents(folder: Path) -> None:
    (folder / "a.txt").write_text("\n".join(20 * SENTENCES))
    (folder / "b.jsonl").write_text(json_lines([{"text": t} for t in 9 * SENTENCES]))
    (folder / "c.txt.gz").write_bytes(gzip.compress("\n".join(9 * SENTENCES).encode(), mtime=0))


def write_parts(folder: Path) -> None:
    for part in ("train", "dev", "test"):
        (folder / f"{part}.tsv").write_text(table(LABELLED, "\t"))


def picture(number: int, size: int = 8) -> Image.Image:
    return Image.fromarray(np.random.default_rng(number).integers(0, 255, (size, size, 3), dtype=np.uint8))


def write_idx_folder(folder: Path) -> None:
    pixels = np.arange(40 * 36, dtype=np.uint8).reshape(40, 6, 6)
    write_idx(folder / "train-images-idx3-ubyte", pixels)
    write_idx(folder / "train-labels-idx1-ubyte.gz", (np.arange(40) % 2).astype(np.uint8))


def write_cifar(folder: Path) -> None:
    records = np.zeros((80, 3073), np.uint8)
    records[:, 0] = np.arange(80) % 10
    records.tofile(folder / "data_batch_1.bin")
    (folder / "batches.meta.txt").write_text("\n".join("abcdefghij"))


def write_classes(folder: Path) -> None:
    for i in range(16):
        path = folder / "ab"[i % 2] / f"{i}.{'png' if i % 4 else 'jpg'}"
        path.parent.mkdir(exist_ok=True)
        picture(i).save(path)


def write_manifest(folder: Path) -> None:
    for i in range(12):
        picture(i).save(folder / f"{i}.png")
    (folder / "list.csv").write_text("path,label\n" + "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(12)))


def write_captions(folder: Path) -> None:
    for i in range(12):
        picture(i).save(folder / f"{i}.png")
    (folder / "list.jsonl").write_text(json_lines([{"image": f"{i}.png", "caption": f"no {i}"} for i in range(12)]))


def write_masks(folder: Path) -> None:
    for part in ("images", "masks"):
        (folder / part).mkdir()
    for i in range(8):
        picture(i).save(folder / "images" / f"{i}.png")
        Image.fromarray(np.full((8, 8), i % 2, np.uint8)).save(folder / "masks" / f"{i}.png")
    (folder / "classes.txt").write_text("ground\nsky\n")


def read_opinions(path: str) -> object:
    data = Opinions(path)
    parts = data.read()
    tokenizer = data.learn_tokenizer(parts["train"])
    names = sorted(set(parts["train"].labels))
    return [data.arrays(part, tokenizer, names) for part in parts.parts.values()]


def read_pairs(data: TextPairs) -> object:
    parts = data.read()
    return data.arrays(parts.train, data.learn_tokenizer(parts.train), "training")


def read_images(path: str) -> object:
    return Preprocessing.fit(ImageSource(path).read())


def read_plain(path: str, folder: Path) -> object:
    return Text(path, vocab=300, cache=str(folder.parent / "tokens")).open(8)


def write_photos(folder: Path, count: int = 6) -> list[tuple[str, int, int]]:
    """Images of several sizes: name, height, width."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for i in range(count):
        h, w = 16 + 2 * i, 24 - i
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (h, w, 3), np.uint8)).save(folder / f"{i}.png")
        found.append((f"{i}.png", h, w))
    return found


def write_coco_set(folder: Path) -> None:
    photos = write_photos(folder / "images")
    images = [{"id": i, "file_name": name, "height": h, "width": w} for i, (name, h, w) in enumerate(photos)]
    boxes = [{"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [1, 2.5, 9, 8], "area": 72} for i in range(6)]
    boxes[0] |= {"segmentation": [[1, 2, 10, 2, 10, 10]], "iscrowd": 0}
    values = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
    (folder / "annotations").mkdir()
    (folder / "annotations" / "train.json").write_text(json.dumps(values))


def write_yolo_set(folder: Path) -> None:
    (folder / "labels").mkdir(parents=True)
    for i, _ in enumerate(write_photos(folder / "images")):
        (folder / "labels" / f"{i}.txt").write_text("0 .5 .5 .4 .25\n1 .3 .4 .2 .3\n1 .1 .1 .6 .1 .5 .7\n")
    (folder / "data.yaml").write_text("path: .\ntrain: images\nnames: {0: a, 1: b}\n")


def write_voc_set(folder: Path) -> None:
    (folder / "Annotations").mkdir(parents=True)
    for i, (_, h, w) in enumerate(write_photos(folder / "JPEGImages")):
        box = "<xmin>2</xmin><ymin>3</ymin><xmax>11</xmax><ymax>12.5</ymax>"
        one = f"<object><name>a</name><difficult>0</difficult><bndbox>{box}</bndbox></object>"
        size = f"<size><width>{w}</width><height>{h}</height><depth>3</depth></size>"
        (folder / "Annotations" / f"{i}.xml").write_text(
            f"<annotation>{size}{one}{one.replace('>a<', '>b<')}</annotation>"
        )
    (folder / "ImageSets" / "Main").mkdir(parents=True)
    (folder / "ImageSets" / "Main" / "train.txt").write_text("0\n1\n2\n3\n4\n5\n")


def read_objects(path: str) -> object:
    return DetectionSource(path, size=32, masks=True).read().train.counts


READERS: dict[str, Reader] = {
    "text": Reader(one_file("a.txt", "\n".join(9 * SENTENCES)), lambda f: read_plain(first(f, "a.txt"), f)),
    "documents": Reader(write_documents, lambda f: read_plain(str(f), f)),
    "jsonl text": Reader(
        one_file("a.jsonl", json_lines([{"text": t} for t in 9 * SENTENCES])),
        lambda f: read_plain(first(f, "a.jsonl"), f),
    ),
    "labelled tsv": Reader(one_file("a.tsv", table(LABELLED, "\t")), lambda f: LabelledText(first(f, "a.tsv")).read()),
    "labelled csv": Reader(one_file("a.csv", table(LABELLED, ",")), lambda f: LabelledText(first(f, "a.csv")).read()),
    "labelled jsonl": Reader(
        one_file("a.jsonl", json_lines(LABELLED)), lambda f: LabelledText(first(f, "a.jsonl")).read()
    ),
    "opinions": Reader(write_parts, lambda f: read_opinions(str(f))),
    "opinions tsv": Reader(one_file("a.tsv", table(LABELLED, "\t", False)), lambda f: read_opinions(first(f, "a.tsv"))),
    "tagged jsonl": Reader(one_file("a.jsonl", json_lines(TAGGED)), lambda f: TaggedText(first(f, "a.jsonl")).read()),
    "tagged conll": Reader(
        one_file("a.conll", "".join(f"{w} N\n" if w != "." else ". M\n\n" for t in 2 * SENTENCES for w in t.split())),
        lambda f: TaggedText(first(f, "a.conll")).read(),
    ),
    "pairs tsv": Reader(
        one_file("a.tsv", table(PAIRS, "\t", False)), lambda f: read_pairs(TextPairs(first(f, "a.tsv")))
    ),
    "pairs jsonl": Reader(one_file("a.jsonl", json_lines(PAIRS)), lambda f: read_pairs(TextPairs(first(f, "a.jsonl")))),
    "parallel": Reader(write_parallel, lambda f: read_pairs(TextPairs(str(f)))),
    "table": Reader(write_table, lambda f: Table(first(f, "t.csv"), target="y").read()),
    "idx": Reader(write_idx_folder, lambda f: read_images(str(f))),
    "cifar": Reader(write_cifar, lambda f: read_images(str(f))),
    "class folders": Reader(write_classes, lambda f: read_images(str(f))),
    "manifest": Reader(write_manifest, lambda f: read_images(first(f, "list.csv"))),
    "captions": Reader(write_captions, lambda f: Captions(first(f, "list.jsonl"), size=8).read()),
    "masks": Reader(write_masks, lambda f: Masks(str(f)).read()),
    "coco": Reader(write_coco_set, lambda f: read_objects(str(f))),
    "yolo": Reader(write_yolo_set, lambda f: read_objects(str(f))),
    "voc": Reader(write_voc_set, lambda f: read_objects(str(f))),
    **{name: Reader(*both) for name, both in valid_graphs.VALID.items()},
}
