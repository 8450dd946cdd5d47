"""A name that exists is a file: its records are asked about by the training columns, judged where they tell the truth,
and written beside the answers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from descend import cli
from descend.data.images.labelled import Preprocessing
from descend.data.tables.columns import Columns, Quantity, Target
from descend.errors import Mistake
from descend.models.bert import BertConfig, BertForSequenceClassification, BertForTokenClassification
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.mlp import MLP, MLPConfig
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.verbs.predict import predict
from descend.weights.labels import Labels
from proofs.tiny import write_images

SEED = 0


def write_encoder(folder: Path, kind: type, names: tuple[str, ...]) -> Path:
    """An encoder with random weights in a run's folder, whose training columns were story and verdict."""
    checkpoint = folder / "checkpoints" / "step-000001"
    inputs = Inputs.extend(Tokenizer.bpe("good bad film story " * 20, 280), 32)
    config = BertConfig(inputs.tokenizer.vocab, 32, 8, 1, 2, 16, dropout=0.0, pad=inputs.pad, labels=Labels(names))
    torch.manual_seed(SEED)
    kind(config).save_pretrained(checkpoint)
    inputs.tokenizer.save(checkpoint)
    (folder / "recipe.json").write_text(json.dumps({"facts": {"text column": "story", "label column": "verdict"}}))
    return checkpoint


@pytest.fixture(scope="module")
def opinions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("run"), BertForSequenceClassification, ("bad", "good"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "txt", "md"])
def test_a_file_is_read_and_not_its_name(opinions: Path, tmp_path: Path, ending: str) -> None:
    records = [{"id": "7", "story": "a good film", "verdict": "good"}, {"id": "9", "story": "bad", "verdict": "bad"}]
    file = tmp_path / f"hold.{ending}"
    mark = {"csv": ",", "tsv": "\t"}.get(ending, "")
    lines = [mark.join(records[0]), *(mark.join(r.values()) for r in records)] if mark else [
        json.dumps(r) if ending == "jsonl" else r["story"] for r in records
    ]  # fmt: skip
    file.write_text("\n".join(lines) + "\n")
    found, plain = predict(opinions, file), predict(opinions, "a good film", "bad")
    assert [row["input"] for row in found] == ["a good film", "bad"]
    assert [row["answers"] for row in found] == [row["answers"] for row in plain]
    assert [row.get("truth") for row in found] == ([None] * 2 if ending in ("txt", "md") else ["good", "bad"])
    (itself,) = predict(opinions, file, text=True)
    assert itself["input"] == str(file)


def test_what_is_read_is_said_and_judged(opinions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "hold.csv", tmp_path / "answers.csv"
    file.write_text('id,story,verdict\n1,"a good, long film",good\n2,bad story,bad\n3,film,bad\n')
    assert cli.main(["predict", str(opinions), str(file), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.err == f"reading the file {file}; for the text itself give --text\n"
    rows = list(csv.DictReader(out.open()))
    assert [row["story"] for row in rows] == ["a good, long film", "bad story", "film"]
    assert list(rows[0]) == ["id", "story", "verdict", "prediction", "probability"]
    right = np.mean([row["prediction"] == row["verdict"] for row in rows])
    assert f"accuracy {right:.4g}, macro F1" in said.out
    assert "on 3 answers" in said.out
    before = out.read_text()
    assert cli.main(["predict", str(opinions), str(file), "--out", str(out)]) == 2
    assert "exists; give --replace" in capsys.readouterr().err
    assert cli.main(["predict", str(opinions), "film", "--out", str(out), "--replace"]) == 0
    assert out.read_text() != before
    assert cli.main(["predict", str(opinions), "film", "--out", str(tmp_path / "a.xlsx")]) == 2
    file.write_text("id,story,verdict\n1,film,godo\n2,story,bad\n")
    capsys.readouterr()
    assert cli.main(["predict", str(opinions), str(file)]) == 0
    assert "no score: the model knows no class 'godo'" in capsys.readouterr().err


def test_columns_and_files_that_are_not_there(opinions: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("topic,note,stroy\n1,2,a film and a story\n2,3,a good film\n")
    with pytest.raises(Mistake, match=r"no column 'story', which the model learned from. Did you mean 'stroy'"):
        predict(opinions, tmp_path / "t.csv")
    with pytest.raises(Mistake, match=r"missing.csv does not exist"):
        predict(opinions, "missing.csv")
    (row,) = predict(opinions, "x " * 3000)
    assert row["answers"], "a text longer than a file's name may be is a text"


def test_tables_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(SEED)
    MLP(MLPConfig(inputs=1, outputs=1, hidden=())).save_pretrained(tmp_path / "run")
    Columns((Quantity("a", "number", 0.0, 0.0, 1.0, False),), Target("price", (), "number", 5.0, 2.0)).save(
        tmp_path / "run"
    )
    (tmp_path / "t.csv").write_text("note,a,price\nx,1,3\ny,2,4\nz,3,\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1, "price": 3}\n{"a": 2.0, "price": 4}\n{"a": 3, "price": null}\n')
    found = predict(tmp_path / "run", tmp_path / "t.csv")
    assert [row["price"] for row in predict(tmp_path / "run", tmp_path / "t.jsonl")] == [row["price"] for row in found]
    out = tmp_path / "a.jsonl"
    assert cli.main(["predict", str(tmp_path / "run"), str(tmp_path / "t.csv"), "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0] == {"note": "x", "a": "1", "price": "3", "prediction": found[0]["price"]}
    error = [found[0]["price"] - 3, found[1]["price"] - 4]
    said = capsys.readouterr().out
    assert f"MAE {np.abs(error).mean():.4g}, RMSE {np.sqrt(np.square(error).mean()):.4g}, R²" in said
    assert "on 2 answers" in said, "a record without the target is answered, not judged"
    assert cli.main(["predict", str(tmp_path / "run"), str(tmp_path / "t.csv")]) == 0
    shown = capsys.readouterr()
    assert next(csv.DictReader(shown.out.splitlines())).keys() == {"line", "price"}
    assert "MAE" in shown.err, "what is piped into a file stays a table"


def test_class_folders_and_tags_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(SEED)
    LeNet(LeNetConfig(image=(3, 16, 16), classes=3, kernel=3)).save_pretrained(tmp_path / "lenet")
    Preprocessing((3, 16, 16), (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), ("a", "b", "c")).save(tmp_path / "lenet")
    photos = write_images(tmp_path / "photos", ("a", "b"), 2)
    assert [row["truth"] for row in predict(tmp_path / "lenet", photos)] == ["a", "a", "b", "b"]
    tagger = write_encoder(tmp_path / "tagger", BertForTokenClassification, ("NOUN", "O"))
    (tmp_path / "t.conll").write_text("a O\nfilm NOUN\n\ngood O\nstory NOUN\n")
    found = predict(tagger, tmp_path / "t.conll")
    assert [[tag["word"] for tag in row["tags"]] for row in found] == [["a", "film"], ["good", "story"]]
    assert cli.main(["predict", str(tagger), str(tmp_path / "t.conll")]) == 0
    assert "on 4 answers" in capsys.readouterr().out
