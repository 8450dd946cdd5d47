from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import descend
from descend import cli
from descend.data.images import Preprocessing
from descend.errors import Mistake
from descend.models import load
from descend.models.bert import BertConfig, BertForSequenceClassification
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as GPT2_TINY
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.unet import UNet, UNetConfig
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.verbs.predict import predict
from descend.weights.labels import Labels


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LeNet of three classes, with its preprocessing."""
    folder = tmp_path_factory.mktemp("lenet")
    torch.manual_seed(0)
    LeNet(LeNetConfig(image=(3, 14, 14), classes=3, kernel=3)).save_pretrained(folder)
    Preprocessing((3, 14, 14), (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), ("cat", "dog", "horse")).save(folder)
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    (tmp_path / "more").mkdir()
    for name in ("a.png", "b.png", "more/c.png"):
        Image.fromarray(random.integers(0, 256, (14, 14, 3), dtype=np.uint8)).save(tmp_path / name)
    return tmp_path


def test_answers_are_the_models_own(classifier: Path, photos: Path) -> None:
    found = predict(classifier, photos / "a.png", photos / "more", top=2)
    assert [Path(row["input"]).name for row in found] == ["a.png", "c.png"]
    pixels = torch.from_numpy(np.array(Image.open(photos / "a.png"))).movedim(-1, 0)[None] / 255
    x = (pixels - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor([0.2, 0.25, 0.3])[:, None, None]
    p = load(classifier)(x).softmax(dim=1)[0].detach()
    best = p.argsort(descending=True)[:2].tolist()
    assert [a["label"] for a in found[0]["answers"]] == [("cat", "dog", "horse")[k] for k in best]
    assert found[0]["answers"][0]["probability"] == pytest.approx(float(p.max()), rel=1e-4)
    assert len(predict(classifier, str(photos / "*.png"))) == 2
    assert descend.predict is predict


def test_the_command(classifier: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heat = photos / "heat.png"
    assert (
        cli.main(["predict", str(classifier), str(photos / "a.png"), str(photos / "b.png"), "--heat", str(heat)]) == 0
    )
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.count("%") == 6
    assert "█" in said
    assert Image.open(heat).size == (2 * 14 * 12, 2 * 14 * 12), "two rows, two columns, enlarged to 168"
    assert cli.main(["predict", str(classifier), str(photos / "a.png"), "--json", "--top", "1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert len(row["answers"]) == 1


def test_mistakes_are_one_line(classifier: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "bad.png").write_text("no picture")
    (photos / "empty").mkdir()
    language = photos / "gpt2"
    GPT2(GPT2_TINY).save_pretrained(language)
    for args, said in (
        (["nowhere", "a.png"], "nowhere is not a folder"),
        ([str(classifier), "missing.png"], "missing.png does not exist"),
        ([str(classifier), str(photos / "bad.png")], "bad.png"),
        ([str(classifier), str(photos / "empty")], "holds no pictures"),
        ([str(classifier), str(photos / "a.png"), "--heat", "x.jpg"], "ends in .png"),
        ([str(classifier), str(photos / "a.png"), "--heat", "no/x.png"], "folder no does not exist"),
        ([str(classifier), str(photos / "a.png"), "--top", "0"], "at least 1"),
        ([str(classifier)], "name at least one|missing"),
        ([str(language), "a.png"], "GPT2, which classifies neither"),
    ):
        assert cli.main(["predict", *args]) == 2, args
        err = capsys.readouterr().err
        assert len(err.splitlines()) == 1, err
        assert any(part in err for part in said.split("|")), err


def test_texts(tmp_path: Path) -> None:
    """A text, a file of texts and a file of records; padding in the batch changes nothing."""
    inputs = Inputs.extended(Tokenizer.bpe("good bad film story " * 20, 280), 16)
    config = BertConfig(
        inputs.tokenizer.vocab, 16, 8, 1, 2, 16, dropout=0.0, pad=inputs.pad, labels=Labels(("bad", "good"))
    )
    torch.manual_seed(0)
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path / "bert")
    inputs.tokenizer.save(tmp_path / "bert")
    (tmp_path / "t.txt").write_text("a good film\n\na bad story about a film\n")
    (tmp_path / "t.jsonl").write_text('{"text": "good"}\n')
    found = predict(tmp_path / "bert", "a good film", tmp_path / "t.txt", tmp_path / "t.jsonl")
    assert [row["input"] for row in found] == ["a good film", "a good film", "a bad story about a film", "good"]
    assert found[0]["answers"][0]["probability"] == pytest.approx(found[1]["answers"][0]["probability"], rel=1e-5)
    assert {a["label"] for a in found[0]["answers"]} == {"bad", "good"}
    (tmp_path / "t.jsonl").write_text('{"words": "good"}\n')
    with pytest.raises(Mistake, match=r't.jsonl, line 1: no record with "text"'):
        predict(tmp_path / "bert", tmp_path / "t.jsonl")
    with pytest.raises(Mistake, match="--heat is for pictures"):
        predict(tmp_path / "bert", "good", heat="x.png")


def test_a_segmentation_model_writes_its_mask(tmp_path: Path) -> None:
    torch.manual_seed(0)
    UNet(UNetConfig(channels=3, classes=3, width=4, depth=2, padding=1)).save_pretrained(tmp_path / "unet")
    labels = ("ground", "cat", "dog")
    Preprocessing((3, 16, 16), (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), labels).save(tmp_path / "unet")
    Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(tmp_path / "a.png")
    found = predict(tmp_path / "unet", tmp_path / "a.png", top=99, heat=tmp_path / "m.png")
    assert sum(a["probability"] for a in found[0]["answers"]) == pytest.approx(1.0, rel=1e-5)
    assert (tmp_path / "m.png").exists()
