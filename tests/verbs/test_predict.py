from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import descend
from descend import cli
from descend.data.images.captions import Captions, caption_tokens, pixels
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.models import load
from descend.models.bert import BertConfig, BertForSequenceClassification
from descend.models.clip import TINY as CLIP_TINY
from descend.models.clip import Clip
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as GPT2_TINY
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.localiser import Localiser, LocaliserConfig
from descend.models.text_classifier import TINY as TEXT_TINY
from descend.models.text_classifier import TextClassifier
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
    (photos / "bad.png").write_text("no image")
    (photos / "empty").mkdir()
    language = photos / "gpt2"
    tokenizer = Tokenizer.bpe("a text of words " * 9, 270)
    GPT2(replace(GPT2_TINY, vocab=tokenizer.vocab)).save_pretrained(language)
    tokenizer.save(language)
    for args, said in (
        (["nowhere", "a.png"], "nowhere is not a folder"),
        ([str(classifier), "missing.png"], "missing.png does not exist"),
        ([str(classifier), str(photos / "bad.png")], "bad.png"),
        ([str(classifier), str(photos / "empty")], "holds no images"),
        ([str(classifier), str(photos / "a.png"), "--heat", "x.jpg"], "ends in .png"),
        ([str(classifier), str(photos / "a.png"), "--heat", "no/x.png"], "folder no does not exist"),
        ([str(classifier), str(photos / "a.png"), "--top", "0"], "at least 1"),
        ([str(classifier)], "name at least one|missing"),
        ([str(language), "a.png"], "GPT2, which is not a classifier"),
    ):
        assert cli.main(["predict", *args]) == 2, args
        err = capsys.readouterr().err
        assert len(err.splitlines()) == 1, err
        assert any(part in err for part in said.split("|")), err


def test_texts(tmp_path: Path) -> None:
    """A text, a file of texts and a file of records; padding in the batch changes nothing."""
    inputs = Inputs.extend(Tokenizer.bpe("good bad film story " * 20, 280), 16)
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
    (tmp_path / "t.jsonl").write_text('{"text": "good"}\n{"words": "good"}\n')
    with pytest.raises(Mistake, match=r"t.jsonl, line 2: no 'text', which the other records have"):
        predict(tmp_path / "bert", tmp_path / "t.jsonl")
    with pytest.raises(Mistake, match="--heat is for images"):
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


def test_a_localiser_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model = Localiser(LocaliserConfig(image=(3, 16, 16), classes=2, widths=(4, 6))).eval()
    model.save_pretrained(tmp_path / "where")
    Preprocessing((3, 16, 16), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), ("cat", "dog")).save(tmp_path / "where")
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    (row,) = predict(tmp_path / "where", tmp_path / "a.png", heat=tmp_path / "box.png")
    x = torch.from_numpy(image).movedim(-1, 0)[None] / 255
    assert row["box"] == pytest.approx(model(x).box[0].tolist(), abs=1e-5)
    assert (tmp_path / "box.png").exists()
    assert cli.main(["predict", str(tmp_path / "where"), str(tmp_path / "a.png")]) == 0
    assert f"left {row['box'][0]:.0%}" in capsys.readouterr().out


def test_a_clip_chooses_among_the_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = Captions(vocab=280).learn_tokenizer(["a red ring", "a blue star"])
    text = replace(CLIP_TINY.text, vocab=tokenizer.vocab, end=tokenizer.end or 0)
    torch.manual_seed(0)
    model = Clip(replace(CLIP_TINY, text=text)).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    Preprocessing((3, 8, 8), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)).save(tmp_path)
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    labels = ["a red ring", "a blue star", "a ring"]
    (row,) = predict(tmp_path, tmp_path / "a.png", labels=labels, heat=tmp_path / "heat.png")
    x = pixels(torch.from_numpy(image).movedim(-1, 0)[None])
    p = model(x, caption_tokens(tokenizer, labels, text.context)).softmax(dim=1)[0].tolist()
    assert {a["label"]: a["probability"] for a in row["answers"]} == pytest.approx(dict(zip(labels, p, strict=True)))
    assert cli.main(["predict", str(tmp_path), str(tmp_path / "a.png"), "--labels", "a red ring, a ring"]) == 0
    assert "a ring " in capsys.readouterr().out
    with pytest.raises(Mistake, match="has no classes; name some: --labels"):
        predict(tmp_path, tmp_path / "a.png")


def test_labels_are_refused_by_a_model_that_has_its_own(classifier: Path, photos: Path) -> None:
    with pytest.raises(Mistake, match="LeNet, which has its own"):
        predict(classifier, photos / "a.png", labels=["cat"])


def test_texts_of_a_recurrent_classifier(tmp_path: Path) -> None:
    tokenizer = Tokenizer.of_words(["<pad>", "good", "bad", "film"])
    torch.manual_seed(0)
    model = TextClassifier(replace(TEXT_TINY, vocab=tokenizer.vocab, classes=2)).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    (tmp_path / "classes.json").write_text('{"classes": ["no", "yes"]}')
    found = predict(tmp_path, "good film", "bad")
    no, yes = model(torch.tensor([tokenizer.encode("good film")])).softmax(dim=1)[0].tolist()
    assert {a["label"]: a["probability"] for a in found[0]["answers"]} == pytest.approx({"no": no, "yes": yes})
    (empty,) = predict(tmp_path, "")
    assert sum(a["probability"] for a in empty["answers"]) == pytest.approx(1.0)


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i % 7},{'ab'[i % 2]},{'yes' if i % 7 > 3 else 'no'}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["size,kind,bought", *lines]) + "\n")
    flags = ["--data.path", str(tmp_path / "t.csv"), "--data.target", "bought", "--steps", "4", "--quiet"]
    assert cli.main(["train", "mlp-csv", *flags, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert cli.main(["predict", str(tmp_path / "run"), str(tmp_path / "t.csv")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "line,bought,probability"
    assert len(said) == 81
    assert {line.split(",")[1] for line in said[1:]} <= {"yes", "no"}
