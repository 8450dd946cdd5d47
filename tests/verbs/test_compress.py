"""descend compress: runs and folders made smaller, which the other verbs open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import descend
from descend import cli, recipes
from descend.data.text.plain import Text
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.language import LanguageRecipe
from descend.models.lenet import LeNetConfig
from descend.models.llama import LlamaConfig
from descend.verbs.compress import compress, read_sizes

PIPELINE, PTQ, KD = "inference-optimization", "post-training-quantization", "knowledge-distillation"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of digits, trained a little."""
    where = tmp_path_factory.mktemp("reader") / "run"
    base = recipes.get("lenet-digits")
    assert isinstance(base, ClassifyImages)
    loop = replace(base.loop, steps=20, eval_every=20, threads=1)
    descend.train(replace(base, model=LeNetConfig(kernel=3), loop=loop), out=where, quiet=True)
    return where


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model of cats and dogs."""
    where = tmp_path_factory.mktemp("writer")
    (where / "text.txt").write_text("the cat sat on the mat . a dog ran over the hill . " * 60)
    model = LlamaConfig(context=16, width=32, depth=1, heads=2, kv_heads=1, hidden=32)
    recipe = LanguageRecipe(model=model, data=Text(path=str(where / "text.txt"), tokenizer="characters"))
    loop = replace(recipe.loop, steps=60, batch=8, eval_every=60, threads=1)
    descend.train(replace(recipe, loop=loop), out=where / "run", quiet=True)
    return where / "run"


@pytest.mark.system(PIPELINE, "one-entry", "opens")
@pytest.mark.system(PTQ, "before-and-after")
@pytest.mark.system(PIPELINE)
def test_a_classifier(reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Size, speed and accuracy on both sides, as descend evaluate says them; the new run is opened like the old."""
    small = tmp_path / "small"
    assert cli.main(["compress", str(reader), "--int8", "--prune", "0.3", "--out", str(small)]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in said.splitlines()}
    assert {"bytes", "packed", "examples/s", "accuracy", "batch", "written"} <= rows.keys()
    assert "30.0% of the pruned weights are 0" in said
    found = descend.evaluate(small)
    assert float(rows["accuracy"][2]) == pytest.approx(found["valid"]["accuracy"], rel=1e-3)
    assert float(rows["accuracy"][1]) == pytest.approx(descend.evaluate(reader)["valid"]["accuracy"], rel=1e-3)
    assert "accuracy" in found["test"]
    size = lambda run: (descend.models.model_folder(run) / "model.safetensors").stat().st_size
    assert [int(rows["bytes"][i].replace(",", "")) for i in (1, 2)] == [size(reader), size(small)]
    assert size(small) < size(reader) / 2.5
    assert descend.load(small).kept_as["bits"] == 8
    with pytest.raises(Mistake, match="made by descend compress and holds no state of a training"):
        descend.resume(small)
    with pytest.raises(Mistake, match="made by descend compress and holds no training to look at"):
        descend.doctor(small)
    assert cli.main(["runs", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "finished"
    with pytest.raises(Mistake, match="kept in codes of 8 bits; compress the original"):
        compress(small, tmp_path / "smaller", bits=4)


@pytest.mark.system(PIPELINE, "one-entry", "opens")
@pytest.mark.system(PTQ, "before-and-after")
def test_a_language_model(writer: Path, tmp_path: Path) -> None:
    """Perplexity and tokens a second; what is written at 8 bits is read, written and judged by the other verbs."""
    found = compress(writer, tmp_path / "int8", bits=8, group=32)
    rows = {row["what"]: row for row in found["rows"]}
    assert {"bytes", "examples/s", "tokens/s", "loss", "perplexity", "bits_per_byte"} <= rows.keys()
    assert rows["perplexity"]["after"] == pytest.approx(rows["perplexity"]["before"], rel=0.02)
    assert rows["perplexity"]["after"] == descend.evaluate(tmp_path / "int8")["valid"]["perplexity"]
    assert descend.generate(tmp_path / "int8", "the ", tokens=8, seed=1)
    rough = compress(writer, tmp_path / "int4", bits=4, group=0)
    lost = {row["what"]: abs(row["after"] - row["before"]) for row in rough["rows"]}
    assert lost["loss"] > abs(rows["loss"]["after"] - rows["loss"]["before"])
    assert rough["layers"] == found["layers"]


@pytest.mark.system(KD, "language")
@pytest.mark.system(PIPELINE, "one-entry")
def test_a_student(writer: Path, tmp_path: Path) -> None:
    """A smaller model taught by the run, and then rounded."""
    found = compress(writer, tmp_path / "both", bits=8, student={"width": 16, "hidden": 16}, steps=2)
    assert found["student"] == str(tmp_path / "both-student")
    rows = {row["what"]: row for row in found["rows"]}
    assert rows["bytes"]["before"] > 3 * rows["bytes"]["after"]
    assert descend.load(tmp_path / "both").config.width == 16
    facts = json.loads((tmp_path / "both-student" / "recipe.json").read_text())["facts"]
    assert facts["teacher"].startswith(str(writer))
    for sizes, said in (
        ({"with": 16}, "--student with: unknown. Did you mean 'width'"),
        ({"width": "a"}, "--student width=a: it is 32 in the teacher"),
        ({"width": 15}, "must"),
    ):
        with pytest.raises(Mistake, match=said):
            compress(writer, tmp_path / "wrong", student=sizes, steps=1)


@pytest.mark.system(PIPELINE, "one-entry")
def test_a_model_folder(writer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a run there are no data: size and speed are told, quality is not."""
    folder = descend.models.model_folder(writer)
    plain = tmp_path / "plain"
    descend.load(folder).save_pretrained(plain)
    assert cli.main(["compress", str(plain), "--int4", "--out", str(tmp_path / "q")]) == 0
    said = capsys.readouterr().out
    assert "quality is not known" in said
    assert "perplexity" not in said
    assert descend.load(tmp_path / "q").kept_as["bits"] == 4
    assert descend.generate(tmp_path / "q", "the ", tokens=3)


def test_wishes_that_cannot_be() -> None:
    run = "no-such-run"
    for wish, said in (
        ({}, "say how: --int8"),
        ({"bits": 5}, "5 bits: weights are kept in 8 or 4"),
        ({"prune": 1.0}, r"--prune 1.0: .*all would be none left"),
        ({"bits": 8, "group": -1}, "--group -1"),
        ({"bits": 8}, "no-such-run"),
        ({"student": {"width": 1}}, "no-such-run is not a run"),
    ):
        with pytest.raises(Mistake, match=said):
            compress(run, "no-such-out", **wish)  # type: ignore[arg-type]
    assert read_sizes("width=96, hidden=(8, 4)") == {"width": 96, "hidden": (8, 4)}
    for text in ("96", "width", "width=open('x')", "width=", "a b"):
        with pytest.raises(Mistake, match="fields of the model's config"):
            read_sizes(text)
