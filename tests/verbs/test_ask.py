"""A folder of documents is indexed, asked, changed and asked again; answers name file and line."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import descend
from descend import cli
from descend.classic.approximate import HnswSearch
from descend.errors import Mistake
from descend.inference.passage_index import PassageIndex
from descend.models.bert import Bert, BertConfig
from descend.models.gpt2 import GPT2, GPT2Config
from descend.text.inputs import Inputs
from descend.text.prompts import ground_prompt
from descend.text.tokenizer import Tokenizer
from tests.close import close

WORDS = "resume a run from its last checkpoint with descend resume the cat sat on the mat and a dog ran far "


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Documents of four kinds."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "runs.md").write_text("# Runs\n\nA run is a folder.\n\nResume it with: descend resume RUN.\n")
    (folder / "cats.txt").write_text("\nThe cat sat on the mat.\n")
    (folder / "code.py").write_text("def gradient():\n    return 'slope'\n")
    (folder / "facts.jsonl").write_text('{"text": "Paris is in France."}\n\n{"text": "The capital of Peru is Lima."}\n')
    return folder


def make_encoder(folder: Path, seed: int = 0) -> str:
    inputs = Inputs.extend(Tokenizer.bpe(WORDS * 9, 280), 48)
    torch.manual_seed(seed)
    Bert(BertConfig(inputs.tokenizer.vocab, 48, 16, 1, 2, 32, dropout=0.0, pad=inputs.pad)).save_pretrained(folder)
    inputs.tokenizer.save(folder)
    return str(folder)


def make_writer(folder: Path, context: int = 128) -> str:
    tokenizer = Tokenizer.bpe(WORDS * 9, 280)
    torch.manual_seed(1)
    GPT2(GPT2Config(tokenizer.vocab, context, 16, 1, 2)).save_pretrained(folder)
    tokenizer.save(folder)
    return str(folder)


@pytest.mark.system("rag")
@pytest.mark.system("rag", "sources")
@pytest.mark.system("rag", "added-at-once")
def test_a_new_document_is_found_at_once(docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = str(tmp_path / "index")
    assert cli.main(["index", str(docs), "--out", index]) == 0
    assert "5 passages (5 new) found by keywords (bm25); files: 4 added" in capsys.readouterr().out
    assert descend.ask(index, "What is the capital of Peru?").sources[0].passage.source == "facts.jsonl:3"
    found = descend.ask(index, "where did the cat sit").sources[0].passage
    assert (found.source, found.text) == ("cats.txt:2", "The cat sat on the mat.")
    (docs / "new.md").write_text("Llamas live in the Andes.\n")
    (docs / "cats.txt").write_text("The cat slept.\n")
    (docs / "code.py").unlink()
    assert cli.main(["ask", index, "Where do llamas live?"]) == 0
    assert "3 files changed since they were indexed (cats.txt, code.py, new.md)" in capsys.readouterr().err
    done = descend.index(docs, index)
    assert (done.added, done.changed, done.removed, done.unchanged) == (("new.md",), ("cats.txt",), ("code.py",), 2)
    assert (done.passages, done.embedded) == (5, 2)
    assert cli.main(["ask", index, "Where do llamas live?", "--json", "--top", "2"]) == 0
    said = capsys.readouterr()
    answered = json.loads(said.out)
    assert not said.err
    assert answered["sources"][0]["source"] == "new.md:1"
    assert answered["answer"] == "Llamas live in the Andes."
    assert len(list(Path(index).iterdir())) == 2  # what the index before had is gone


@pytest.mark.system("rag", "same-embedder")
@pytest.mark.system("sentence-similarity", "ranks-documents")
def test_vectors_of_an_encoder(docs: Path, tmp_path: Path) -> None:
    """The text of a passage finds that passage with cosine 1; what is unchanged is not embedded again."""
    by, index = make_encoder(tmp_path / "bert"), tmp_path / "index"
    descend.index(docs, index, by)
    opened = PassageIndex.open(index)
    for passage in opened.passages:
        best = opened.search(passage.text, 5)
        assert best[0].passage == passage
        close(best[0].score, 1.0, loosen=5)  # texts of several lengths in one batch
        assert best[1].score < 1 - 1e-4
    if find_spec("faiss"):
        near = PassageIndex.open(index, search=HnswSearch)
        assert near.search("the cat", 2)[0].passage == opened.search("the cat", 2)[0].passage
    (docs / "new.md").write_text("A dog ran far.\n")
    assert descend.index(docs, index).embedded == 1
    anew = tmp_path / "anew"
    descend.index(docs, anew, by)
    ours, theirs = PassageIndex.open(index), PassageIndex.open(anew)
    assert ours.passages == theirs.passages
    close(ours.vectors.x, theirs.vectors.x, loosen=5)  # type: ignore[union-attr]
    moved = tmp_path / "moved"
    Path(by).rename(moved)
    with pytest.raises(Mistake, match="which is not there; give --embedder FOLDER"):
        PassageIndex.open(index)
    assert PassageIndex.open(index, str(moved)).search("dog", 1)
    other = make_encoder(tmp_path / "other", seed=1)
    with pytest.raises(Mistake, match=r"was made by .*, not by .*other"):
        PassageIndex.open(index, other)
    with pytest.raises(Mistake, match="give --replace to index anew"):
        descend.index(docs, index, other)
    assert descend.index(docs, index, other, replace=True).embedded == 6


@pytest.mark.system("rag", "generates")
def test_a_language_model_writes_from_the_prompt(docs: Path, tmp_path: Path) -> None:
    index, by = tmp_path / "index", make_writer(tmp_path / "gpt2")
    descend.index(docs, index)
    found = descend.ask(index, "How to resume a run?", by, top=2, tokens=8)
    texts = [one.passage.text for one in found.sources]
    assert found.prompt == ground_prompt("How to resume a run?", texts)
    written = descend.generate(by, found.prompt, tokens=8, temperature=0)
    assert found.text == written.removeprefix(found.prompt).strip()
    small = descend.ask(index, "resume?", make_writer(tmp_path / "small", 64), top=3, tokens=8)
    assert small.sources
    assert len(small.sources) < 3
    assert "left out" in small.note or "fit" in small.note
    with pytest.raises(Mistake, match="no room for a passage"):
        descend.ask(index, "resume " * 40, make_writer(tmp_path / "small", 64), tokens=8)


def test_mistakes(docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, empty = tmp_path / "index", tmp_path / "empty"
    empty.mkdir()
    (empty / "blank.md").write_text("\n \n")
    for args, said in (
        ([str(tmp_path / "none")], "no such file or folder"),
        ([str(docs), "--by", str(tmp_path / "none")], "none"),
        ([str(docs), "--least", "9", "--most", "3"], "passages of 9 to 3 words"),
        ([str(empty)], "hold no word to index"),
    ):
        assert cli.main(["index", *args, "--out", str(index)]) == 2
        assert said in capsys.readouterr().err
    (empty / "blank.md").unlink()
    for out, folder, said in (
        (index, empty, "no document to index"),
        (docs / "i", docs, "lies in"),
        ("", docs, "--out"),
        (docs, docs / "cats.txt", "lies in"),
        (docs.parent, docs, "no index"),
    ):
        assert cli.main(["index", str(folder), "--out", str(out)]) == 2
        assert said in capsys.readouterr().err, said
    assert cli.main(["ask", str(index), "x"]) == 2
    assert "is no index" in capsys.readouterr().err
    descend.index(docs, index)
    (data,) = index.glob("passages-*")
    whole = data.read_bytes()
    data.write_bytes(whole[:-7])
    assert cli.main(["ask", str(index), "x"]) == 2
    assert "is damaged or missing; make the index again: descend index" in capsys.readouterr().err
    descend.index(docs, index, replace=True)
    header = index / "index.json"
    header.write_text(header.read_text()[:40])
    assert cli.main(["ask", str(index), "x"]) == 2
    assert "not valid JSON" in capsys.readouterr().err
    descend.index(docs, index, replace=True)
    assert cli.main(["ask", str(index), " "]) == 2
    assert "the question is empty" in capsys.readouterr().err
