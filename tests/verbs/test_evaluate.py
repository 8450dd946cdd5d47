"""New labelled data: a file that holds what the run held out gives the run's own score, to the last bit.

Each kind is trained for two steps. Its held-out records are then written to a file of their own, which is judged by the
run's columns, tokenizer and classes: were anything fitted anew on the small file, the numbers would differ.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from descend import cli
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.saved import read_saved
from descend.verbs.evaluate import evaluate
from proofs.tiny import CLASSES, LOOP, SENTENCES, write_images


def train(name: str, out: Path, *flags: object) -> tuple[Path, Any]:
    """A run of two steps, and its recipe."""
    few = [w for flag, value in LOOP.items() for w in (f"--{flag.replace('_', '-')}", str(value))]
    assert cli.main(["train", name, *few, "--quiet", "--out", str(out), *map(str, flags)]) == 0
    return out, read_saved(Run.open(out).recipe, out / "recipe.json").recipe


def write_lines(path: Path, source: Path, lines: Any, header: int = 0) -> Path:
    """Some of the lines of a file, counted from 1, after its first `header` ones."""
    every = source.read_text().splitlines(keepends=True)
    path.write_text("".join([*every[:header], *(every[i - 1] for i in lines)]))
    return path


def test_tables(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    rows = [f"{a},{b},{('low', 'high')[int(a > 0)]},{a + 2 * b + 5:.3f}" for a, b in numbers]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["a,b,size,price", *rows]) + "\n")
    for target in ("size", "price"):
        run, recipe = train("mlp-csv", tmp_path / target, "--data.path", table, "--data.target", target)
        new = write_lines(tmp_path / "new.csv", table, recipe.data.read().test.ids.tolist(), header=1)
        assert evaluate(run, data=new)["new"] == evaluate(run)["test"]
        (tmp_path / "new.csv").write_text("a,b\n1,2\n")
        with pytest.raises(Mistake, match=f"no column '{target}'"):
            evaluate(run, data=new)
    (tmp_path / "new.csv").write_text("a,b,size\n1,2,high\n1,2,hihg\n")
    with pytest.raises(Mistake, match=r"line 3: the model knows no size 'hihg'. Did you mean 'high'"):
        evaluate(tmp_path / "size", data=new)


@pytest.mark.parametrize("name", ["bert-classify", "lstm-sentiment"])
def test_texts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.tsv"
    rows = [f"{i}\t{CLASSES[i * 7 % 3]}\t{SENTENCES[i % 4].strip()} {i}\n" for i in range(60)]
    file.write_text("".join(["number\tanimal\tstory\n", *rows]))
    small = ["--model.context", 16] if name == "bert-classify" else []
    run, recipe = train(name, tmp_path / "run", "--data.path", file, "--data.vocab", 300, *small)
    read = recipe.data.read()
    lines = read.ids[read.parts["test"]].tolist() if name == "bert-classify" else read["test"].ids
    new = write_lines(tmp_path / "new.tsv", file, lines, header=1)
    assert evaluate(run, data=new)["new"] == evaluate(run)["test"]
    new.write_text("number\tanimal\tstory\n1\tcat\tone two\n2\tcow\tthree four\n")
    assert cli.main(["evaluate", str(run), "--data.path", str(new)]) == 2
    said = capsys.readouterr().err
    assert "line 3: the model knows no label 'cow'" in said
    assert said.count("\n") == 1


def test_tags(tmp_path: Path) -> None:
    sentences = [[f"{w} {'NOUN' if w in CLASSES else 'O'}" for w in SENTENCES[i % 4].split()] for i in range(40)]
    file, new = tmp_path / "t.txt", tmp_path / "new.txt"
    file.write_text("\n\n".join("\n".join(lines) for lines in sentences) + "\n")
    run, recipe = train("bert-tag", tmp_path / "run", "--data.path", file, "--data.vocab", 300, "--model.context", 16)
    held = recipe.data.read().parts["test"].tolist()
    new.write_text("\n\n".join("\n".join(sentences[i]) for i in held) + "\n")
    assert evaluate(run, data=new)["new"] == evaluate(run)["test"]
    new.write_text("a VERB\n")
    with pytest.raises(Mistake, match="line 1: the model knows no tag 'VERB'"):
        evaluate(run, data=new)


def test_images(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "photos", CLASSES, 8)
    run, recipe = train("lenet-digits", tmp_path / "run", "--data.path", folder, "--data.size", 16)
    splits, new = recipe.data.read(), tmp_path / "new"
    for i in splits.test.ids.tolist():
        (new / splits.names[i]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / splits.names[i], new / splits.names[i])
    shutil.rmtree(folder / "owl")  # the run's own data are not asked
    found = evaluate(run, data=new)["new"]
    write_images(tmp_path / "photos", CLASSES, 8)
    assert found == pytest.approx(evaluate(run)["test"], rel=1e-6)
    (new / "cat").rename(new / "cats")
    with pytest.raises(Mistake, match=r"knows no class 'cats'. Did you mean 'cat'"):
        evaluate(run, data=new)


def test_masks(tmp_path: Path) -> None:
    root, random = tmp_path / "m", np.random.default_rng(0)
    for part in ("images", "masks"):
        (root / part).mkdir(parents=True)
    for k in range(12):
        Image.fromarray(random.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(root / "images" / f"{k:02}.png")
        Image.fromarray(random.integers(0, 3, (32, 32), dtype=np.uint8)).save(root / "masks" / f"{k:02}.png")
    run, recipe = train("unet-scenes", tmp_path / "run", "--data.path", root)
    splits, new = recipe.data.read(), tmp_path / "new"
    for part in ("images", "masks"):
        (new / part).mkdir(parents=True)
        for i in splits.test.ids.tolist():
            shutil.copy(root / part / f"{splits.names[i]}.png", new / part)
    assert evaluate(run, data=new)["new"] == pytest.approx(evaluate(run)["test"], rel=1e-6)
    (new / "classes.txt").write_text("sky\nsea\nland\n")
    with pytest.raises(Mistake, match="names sky, sea, land, but the model knows 0, 1, 2"):
        evaluate(run, data=new)


def test_a_text_and_pairs(tmp_path: Path) -> None:
    text = "".join(SENTENCES[(i * i + i // 3) % 4] for i in range(200))
    (tmp_path / "t.txt").write_text(text)
    flags = ["--data.path", tmp_path / "t.txt", "--data.vocab", 300, "--model.context", 16]
    run, recipe = train("gpt2-pydoc", tmp_path / "run", *flags)
    (tmp_path / "new.txt").write_text(text[round(len(text) * (1 - recipe.data.valid)) :])
    assert evaluate(run, data=tmp_path / "new.txt")["new"] == pytest.approx(evaluate(run)["valid"], rel=1e-6)
    folder = tmp_path / "pairs"
    folder.mkdir()
    for part, n in (("train", 24), ("val", 6), ("test", 6)):
        for ending, change in (("de", str.upper), ("en", str.lower)):
            lines = [change(f"{SENTENCES[i % 4].strip()} {i % n}") for i in range(n)]
            (folder / f"{part}.{ending}").write_text("\n".join(lines) + "\n")
    flags = ["--data.path", folder, "--data.longest", 40, "--data.tokenizer", "characters"]
    run, _ = train("transformer-translate", tmp_path / "translate", *flags)
    assert evaluate(run, data=folder)["new"] == pytest.approx(evaluate(run)["test"], rel=1e-6)


def test_captions(tmp_path: Path) -> None:
    write_images(tmp_path / "images", CLASSES, 8)
    names = [f"images/{name}/{k}.png" for name in CLASSES for k in range(8)]
    lines = [f"{image},a photo of a {image.split('/')[1]} number {i},{('train', 'valid', 'test')[i % 3]}\n"
             for i, image in enumerate(names)]  # fmt: skip
    (tmp_path / "c.csv").write_text("".join(["image,caption,part\n", *lines]))
    flags = ["--data.path", tmp_path / "c.csv", "--data.vocab", 300, "--data.size", 32]
    run, _ = train("clip-scenes", tmp_path / "run", *flags)
    rows = [line.rpartition(",")[0] + "\n" for line in lines if line.endswith("test\n")]
    (tmp_path / "new.csv").write_text("".join(["image,caption\n", *rows]))
    assert evaluate(run, data=tmp_path / "new.csv")["new"] == evaluate(run)["test"]
    assert evaluate(run, data=tmp_path / "c.csv")["new"] == evaluate(run)["test"], "the test part of a list of parts"
    (tmp_path / "new.csv").write_text("image,label\nimages/cat/0.png,cat\n")
    with pytest.raises(Mistake, match="has no column caption"):
        evaluate(run, data=tmp_path / "new.csv")


@pytest.mark.parametrize("method", ["negative-sampling", "cbow"])
def test_words(method: str, tmp_path: Path) -> None:
    told = [SENTENCES[(i * i + i // 3) % 4] for i in range(200)]
    (tmp_path / "t.txt").write_text("".join(told))
    flags = ["--data.path", tmp_path / "t.txt", "--data.least", 1, "--method", method]
    run, recipe = train("skip-gram-pydoc", tmp_path / "run", *flags)
    spoken = "".join(told).replace(" .", "").split()
    held = spoken[round(len(spoken) * (1 - recipe.data.valid)) :]
    (tmp_path / "new.txt").write_text(" ".join(["Zebra", *held]))  # an unknown word is left out
    assert evaluate(run, data=tmp_path / "new.txt")["new"] == pytest.approx(evaluate(run)["valid"], rel=1e-6)
    (tmp_path / "new.txt").write_text("zebra the cat")
    with pytest.raises(Mistake, match="it has 2 words that the model knows"):
        evaluate(run, data=tmp_path / "new.txt")


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        ("localise-scenes", ["--data.images", 120], "reads no files of boxes"),
        ("glove-pydoc", ["--data.path", "t.txt", "--data.least", 1], "GloVe is fitted to the counts of its own text"),
    ],
)
def test_what_has_no_score_on_new_data_says_why(
    name: str, flags: list[Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("".join(SENTENCES) * 20)
    run, _ = train(name, tmp_path / "run", *flags)
    with pytest.raises(Mistake, match=said):
        evaluate(run, data="new.csv")


def test_a_kind_without_new_data_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = train("gan-mixture", tmp_path / "run", "--data.valid", 8, "--data.test", 8)
    assert cli.main(["evaluate", str(run), "--data.path", "new.csv"]) == 2
    assert "not judged by new data" in capsys.readouterr().err


def test_data_are_built_in_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in training: how sums over the data round depends on the number of threads."""
    run, recipe = train("mlp-wine", tmp_path / "run")
    seen: list[int] = []

    def note(made: Any) -> Any:
        def make(recipe: Any) -> Any:
            seen.append(torch.get_num_threads())
            return made(recipe)

        return make

    for name in ("build", "test"):
        monkeypatch.setattr(type(recipe), name, note(getattr(type(recipe), name)))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        evaluate(run)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
