"""Sources of images: class folders, parts, manifests, CIFAR; what plan tells of them; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.data.images.cifar import cifar_folder
from descend.data.images.files import decode
from descend.data.images.frame import Frame
from descend.data.images.idx import write_idx
from descend.data.images.labelled import Preprocessing, statistics
from descend.data.images.lazy import Bytes, Files
from descend.data.images.manifest import read_manifest
from descend.data.images.source import ImageSource
from descend.errors import Mistake
from tests.close import close
from tests.data.photos import CLASSES, folder, pixels, save


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def read(path: Path, **changes: object) -> ImageSource:
    return ImageSource(path=str(path), **{"size": 16, "valid": 0.2, "test": 0.2, **changes})  # type: ignore[arg-type]


def test_class_folders_are_cut_in_three(tmp_path: Path) -> None:
    parts = read(folder(tmp_path, each=10)).read()
    assert parts.labels == CLASSES
    assert [torch.bincount(p.y).tolist() for p in (parts.train, parts.valid, parts.test)] == [[6] * 3, [2] * 3, [2] * 3]
    assert isinstance(parts.train.x, Bytes)
    assert parts.train.x.shape == (18, 3, 16, 16)
    everything = torch.cat([parts.train.ids, parts.valid.ids, parts.test.ids])
    assert sorted(everything.tolist()) == list(range(30))
    for part in (parts.train, parts.valid, parts.test):
        for i, record in enumerate(part.ids.tolist()):
            name = parts.names[record]
            assert name.startswith(CLASSES[int(part.y[i])])
            shown = decode(tmp_path / name, 3, Frame(16, 16, (16,)))
            close(part.x[torch.tensor([i])][0], torch.from_numpy(shown / 255).movedim(-1, 0).float())
    again = read(tmp_path).read()
    assert again.test.ids.tolist() == parts.test.ids.tolist()


def test_large_sets_are_left_in_their_files(tmp_path: Path) -> None:
    root = folder(tmp_path)
    memory, files = read(root).read(), read(root, memory=0.0).read()
    assert isinstance(files.valid.x, Files)
    rows = torch.tensor([2, 0])
    assert torch.equal(files.train.x[rows], memory.train.x[rows])
    assert torch.equal(files.test.x[:2], memory.test.x[:2])
    assert read(root).processes(memory.train) == 0
    assert read(root, memory=0.0).processes(files.train) >= 1
    close(statistics(files.train.x)[0], statistics(memory.train.x)[0])
    theirs = memory.train.x[:].double()
    close(statistics(memory.train.x)[0], theirs.mean((0, 2, 3)))
    close(statistics(memory.train.x)[1], theirs.std((0, 2, 3), correction=0))


def test_parts_as_they_are(tmp_path: Path) -> None:
    folder(tmp_path / "train", each=10)
    folder(tmp_path / "val", each=2)
    parts = read(tmp_path).read()
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (24, 6, 6)
    assert {parts.names[i].split("/")[0] for i in parts.valid.ids.tolist()} == {"val"}
    assert {parts.names[i].split("/")[0] for i in parts.test.ids.tolist()} == {"train"}
    folder(tmp_path / "test", each=1)
    parts = read(tmp_path).read()
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (30, 6, 3)


def test_numbers_are_in_the_order_of_their_values(tmp_path: Path) -> None:
    assert read(folder(tmp_path, classes=("10", "9", "2"))).read().labels == ("2", "9", "10")


def test_sizes_and_channels(tmp_path: Path) -> None:
    root = folder(tmp_path)
    with pytest.raises(Mistake, match=r"2 different sizes \(cat/0.png 24×32, cat/2.png 32×24\); give --data.size"):
        read(root, size=0).read()
    assert read(root, channels=1).read().train.x.shape[1] == 1
    stretched = read(root, frame="stretch").read()
    shown = decode(root / stretched.names[int(stretched.train.ids[0])], 3, Frame(16, 16)) / 255
    close(stretched.train.x[:1][0, 0], torch.from_numpy(shown)[..., 0].float())
    for name in CLASSES:
        for k in range(8):
            save(tmp_path / "grey" / name / f"{k}.png", pixels(k, 9, 7, 1))
    grey = read(tmp_path / "grey", size=0).read()
    assert grey.train.x.shape[1:] == (1, 9, 7)


@pytest.mark.parametrize("form", ["csv", "jsonl", "folder"])
def test_manifests(tmp_path: Path, form: str) -> None:
    root = folder(tmp_path / "files", each=5)
    rows = [(f"{name}/{k}.png", name) for name in CLASSES for k in range(5)]
    if form == "jsonl":
        path = root / "list.jsonl"
        path.write_text("\n".join(json.dumps({"image": p, "label": c, "caption": f"a {c}"}) for p, c in rows) + "\n")
        assert read_manifest(path).captions[0] == "a cat"
    else:
        path = root / ("list.csv" if form == "csv" else "metadata.csv")
        path.write_text("file_name,label\n" + "\n".join(f'"{p}",{c}' for p, c in rows))
    parts = read(path if form != "folder" else root).read()
    assert parts.labels == CLASSES
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (9, 3, 3)
    assert parts.names[0] == "cat/0.png"


def test_a_manifest_may_name_the_parts(tmp_path: Path) -> None:
    folder(tmp_path, each=5)
    lines = [f"{n}/{k}.png,{n},{'val' if k == 0 else 'test' if k == 1 else 'train'}" for n in CLASSES for k in range(5)]
    (tmp_path / "list.csv").write_text("path,label,split\n" + "\n".join(lines))
    parts = read(tmp_path / "list.csv").read()
    assert {parts.names[i] for i in parts.valid.ids.tolist()} == {f"{n}/0.png" for n in CLASSES}
    assert {parts.names[i] for i in parts.test.ids.tolist()} == {f"{n}/1.png" for n in CLASSES}


def bin_file(path: Path, n: int, label_bytes: int, classes: int) -> np.ndarray:
    random = np.random.default_rng(n)
    rows = random.integers(0, 256, (n, label_bytes + 3072)).astype(np.uint8)
    rows[:, label_bytes - 1] = np.arange(n) % classes
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(rows.tobytes())
    return rows


def test_cifar(tmp_path: Path) -> None:
    ten = tmp_path / "ten"
    rows = np.concatenate([bin_file(ten / f"data_batch_{i}.bin", 40 + i, 1, 10) for i in (1, 2)])
    held = bin_file(ten / "test_batch.bin", 20, 1, 10)
    (ten / "batches.meta.txt").write_text("\n".join(f"name{i}" for i in range(10)) + "\n\n")
    parts = ImageSource(path=str(ten), valid=0.2).read()
    assert parts.labels[3] == "name3"
    assert len(parts.test.y) == 20
    assert len(parts.train.y) + len(parts.valid.y) == len(rows)
    record = int(parts.train.ids[7])
    expected = rows[record, 1:].reshape(3, 32, 32) / 255
    close(parts.train.x[7:8][0], torch.from_numpy(expected).float())
    assert int(parts.train.y[7]) == rows[record, 0]
    close(parts.test.x[:1][0, 2, 5], torch.from_numpy(held[0, 1 + 2048 + 160 : 1 + 2048 + 192] / 255).float())
    assert ImageSource(path=str(ten), size=16).read().train.x.shape[2:] == (16, 16)
    hundred = tmp_path / "hundred"
    rows = bin_file(hundred / "train.bin", 500, 2, 100)
    parts = cifar_folder(hundred, 0.2, 0.2)
    assert len(parts.labels) == 100
    assert int(parts.valid.y[0]) == rows[int(parts.valid.ids[0]), 1]


@pytest.mark.parametrize("names", [("data_batch_1", "test_batch"), ("train", "test", "meta")])
def test_pickles_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"\x80\x02}q\x01.")
    with pytest.raises(Mistake, match=r"pickled version of CIFAR.* descend never opens; download the binary version"):
        ImageSource(path=str(tmp_path)).read()


def test_idx_files_are_recognised(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", np.zeros((40, 6, 5), np.uint8))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(40, dtype=np.uint8) % 4)
    assert ImageSource(path=str(tmp_path)).read().train.x.shape[1:] == (1, 6, 5)


def test_the_scenes_inside() -> None:
    parts = ImageSource(size=16).read()
    assert parts.train.x.shape[1:] == (3, 16, 16)
    assert len(set(parts.train.y.tolist())) == len(parts.labels) >= 3
    assert torch.equal(parts.test.x, ImageSource(size=16).read().test.x)


def test_facts(tmp_path: Path) -> None:
    folder(tmp_path / "train", each=10)
    folder(tmp_path / "test", each=2)
    for k in range(2):  # those of test are the first of train: make them others, but for one
        for c, name in enumerate(CLASSES):
            save(tmp_path / "test" / name / f"{k}.png", pixels(1000 + 10 * c + k))
    (tmp_path / "test/dog/0.png").write_bytes((tmp_path / "train/dog/4.png").read_bytes())
    (tmp_path / "train/owl/9.png").unlink()
    (tmp_path / "train/cat/note.txt").write_text("x")
    found = read(tmp_path, valid=0.3).read().facts
    assert found["images per class"] == "cat 12, dog 12, owl 11"
    assert found["imbalance"] == "1.09 : 1"
    assert found["sizes"] == "2 different, from 24×32 to 32×24"
    assert found["other files"].startswith("1 left out")
    assert found["exact duplicates"].startswith("1: ")
    assert found["near duplicates"] == 0
    assert found["leaks between parts"].startswith("1: ")
    assert "test/dog/0.png (test)" in found["leaks between parts"]
    assert "train/dog/4.png (" in found["leaks between parts"]


def unlabelled(root: Path) -> Path:
    save(root / "a.png", pixels(0))
    return root


def one_class(root: Path) -> Path:
    return folder(root, classes=("cat",))


def empty_class(root: Path) -> Path:
    (folder(root) / "yak").mkdir()
    return root


def strange_class(root: Path) -> Path:
    folder(root / "train")
    folder(root / "test", classes=("cat", "dogs"))
    return root


def stray_folder(root: Path) -> Path:
    folder(root / "train")
    folder(root / "extra")
    return root


def listing(text: str, name: str = "list.csv") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        folder(root)
        (root / name).write_text(text)
        return root / name

    return make


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda root: root / "nowhere", r"nowhere: no such file or folder"),
        (lambda root: save(root / "a.png", pixels(0)), r"a.png is one file; give the folder it is in"),
        (unlabelled, r"a.png lies in no class folder; .*path,label"),
        (one_class, r"holds 1 class folders; a classifier needs two"),
        (empty_class, r"yak holds no images"),
        (strange_class, r"test/dogs is a class that .*train does not have. Did you mean 'dog'\?"),
        (stray_folder, r"holds extra beside its parts"),
        (listing("name,label\ncat/0.png,a\n"), r"line 2: the columns are name, label; a manifest needs path and label"),
        (
            listing("path,label\ncat/0.png,a\ncat/x.png,b\n"),
            r"line 3: .*cat/x.png: no such file or folder; paths",
        ),
        (listing("path,label\ncat/0.png,\n"), r"line 2: label is ''; give a word"),
        (listing("path,label\ncat/0.png,a,b\n"), r"line 2: 3 values for 2 columns"),
        (listing("path,label\n"), r"list.csv lists no image"),
        (listing("path,label\ncat/0.png,a\n"), r"1 different labels"),
        (listing("path,caption\ncat/0.png,a\n"), r"has captions but no column label"),
        (listing("path,label,part\ncat/0.png,a,dev\n"), r"line 2: part 'dev' is not train, valid or test"),
        (
            listing('{"path": "cat/0.png", "label": 1}\n[1]\n', "l.jsonl"),
            "line 2: a list, not a JSON object",
        ),
        (listing('{"path": "cat/0.png"\n', "l.jsonl"), r"line 1 .*each line is one JSON object"),
        (
            listing('{"path": "cat/0.png", "label": 1}\n{"path": "cat/1.png", "caption": "b"}\n', "l.jsonl"),
            "line 2: not every line has",
        ),
    ],
)
def test_mistakes(tmp_path: Path, make: Callable[[Path], Path], told: str) -> None:
    with pytest.raises(Mistake, match=told) as caught:
        read(make(tmp_path)).read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"frame": "fit"}, r"--data.frame fit"),
        ({"channels": 2}, r"--data.channels 2"),
        ({"workers": -2}, r"--data.workers -2"),
        ({"augment": "photos"}, r"--data.augment photos: choose .*Did you mean 'photographs'"),
    ],
)
def test_wrong_values(changes: dict[str, object], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        ImageSource(**changes).changes()  # type: ignore[arg-type]


def test_files_go_through_as_in_training(tmp_path: Path) -> None:
    parts = read(folder(tmp_path)).read()
    prepare = Preprocessing.fit(parts)
    assert (prepare.edges, prepare.image) == ((16,), (3, 16, 16))
    names = [tmp_path / parts.names[i] for i in parts.valid.ids.tolist()]
    assert torch.equal(prepare.files(names), prepare.standardize(parts.valid.x[:]))


def test_images_without_classes(tmp_path: Path) -> None:
    save_all = folder(tmp_path / "sorted", each=10)
    flat = tmp_path / "flat"
    flat.mkdir()
    for i, path in enumerate(sorted(save_all.rglob("*.png"))):
        (flat / f"{i}.png").write_bytes(path.read_bytes())
    found = read(flat).read_unlabelled()
    assert found.labels == ("image",)
    assert [len(part.y) for part in (found.train, found.valid, found.test)] == [18, 6, 6]
    with pytest.raises(Mistake, match="lies in no class folder"):
        read(flat).read()
    assert read(save_all).read_unlabelled().labels == CLASSES
    (tmp_path / "empty").mkdir()
    with pytest.raises(Mistake, match="holds no images; give a folder with files that end in"):
        read(tmp_path / "empty").read_unlabelled()
