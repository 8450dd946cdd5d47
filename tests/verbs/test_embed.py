"""Vectors of a trained encoder: its own numbers, in the order asked, and in a file that numpy reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import descend
from descend import cli
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference.encoder import Encoder
from descend.models.bert import Bert, BertConfig
from descend.models.lenet import LeNet, LeNetConfig
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from proofs.tiny import write_images


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT without a head."""
    folder = tmp_path_factory.mktemp("bert")
    inputs = Inputs.extend(Tokenizer.bpe("a cat sat on the mat and a dog ran " * 9, 280), 16)
    torch.manual_seed(0)
    Bert(BertConfig(inputs.tokenizer.vocab, 16, 8, 1, 2, 16, dropout=0.0, pad=inputs.pad)).save_pretrained(folder)
    inputs.tokenizer.save(folder)
    return folder


def test_texts_files_and_cosines(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_text("a dog ran\n\nthe mat\n")
    found = descend.embed(encoder, "a cat sat", tmp_path / "t.txt", out=tmp_path / "v.npy")
    torch.testing.assert_close(found, Encoder.open(encoder).encode_texts(["a cat sat", "a dog ran", "the mat"]))
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), found.numpy())
    assert cli.main(["embed", str(encoder), "a cat sat", str(tmp_path / "t.txt")]) == 0
    said = capsys.readouterr()
    assert "3 vectors of 8 numbers" in said.out
    cosine = torch.nn.functional.cosine_similarity(found[0], found[1], dim=0)
    assert f"{cosine:.3f}" in said.out
    assert "reading the file" in said.err
    assert cli.main(["embed", str(encoder), "a cat sat", "--out", str(tmp_path / "v.jsonl")]) == 0
    (row,) = map(json.loads, (tmp_path / "v.jsonl").read_text().splitlines())
    assert row["input"] == "a cat sat"
    assert row["vector"] == pytest.approx(found[0].tolist())


def test_images(tmp_path: Path) -> None:
    torch.manual_seed(0)
    LeNet(LeNetConfig(image=(3, 16, 16), classes=3, kernel=3)).save_pretrained(tmp_path / "lenet")
    Preprocessing((3, 16, 16), (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), ("a", "b", "c")).save(tmp_path / "lenet")
    photos = write_images(tmp_path / "photos", ("a", "b"), 2)
    assert len(descend.embed(tmp_path / "lenet", photos)) == 4


def test_mistakes_point_the_way(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v.npy").write_text("mine")
    for args, said in (
        (["embed", str(encoder), "a", "--out", str(tmp_path / "v.npy")], "exists; give --replace"),
        (["embed", str(encoder), "a", "--out", str(tmp_path / "v.txt")], "ends in .npy or .jsonl"),
        (["embed", str(encoder)], "name texts or images|missing"),
        (["embed", str(encoder), "missing.csv"], "missing.csv does not exist"),
        (["predict", str(encoder), "a cat"], f"use: descend embed {encoder}"),
        (["generate", str(encoder), "a cat"], f"descend embed {encoder}"),
    ):
        assert cli.main(args) == 2, args
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        assert any(part in err for part in said.split("|")), err
    assert (tmp_path / "v.npy").read_text() == "mine"
    with pytest.raises(Mistake, match="does not embed"):
        descend.embed(tmp_path_of_gpt2(tmp_path), "a")


def tmp_path_of_gpt2(folder: Path) -> Path:
    from descend.models.gpt2 import GPT2, TINY

    GPT2(TINY).save_pretrained(folder / "gpt2")
    return folder / "gpt2"
