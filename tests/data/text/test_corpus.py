"""A corpus on disk: every document once, the same tokens as in memory, faults named, exact resume in mid-epoch."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.data.reading import digest
from descend.data.text import corpus, documents, kept
from descend.data.text import plain as text
from descend.data.text.corpus import Corpus, Cut, document_numbers, halves, open_corpus
from descend.data.text.documents import Piece, pieces, sources
from descend.data.text.plain import Text, Windows
from descend.errors import Mistake

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "äöü", "日本語"]


def document(number: int) -> str:
    return " ".join(WORDS[(number * k) % len(WORDS)] for k in range(1, 30)) + f" {number}.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """40 documents: 20 in a JSONL file, 10 in a compressed one, 10 in text files of their own."""
    data = tmp_path / "data"
    (data / "below").mkdir(parents=True)
    lines = [json.dumps({"text": document(n), "more": n}) for n in range(30)]
    (data / "a.jsonl").write_text("\n".join(lines[:20]) + "\n\n")
    with gzip.open(data / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines[20:]))
    for n in range(30, 40):
        (data / "below" / f"{n}.txt").write_text(document(n), encoding="utf-8")
    (data / "image.png").write_bytes(b"\xff\xfe")
    return data


def texts(tokens: torch.Tensor, found: Corpus) -> list[str]:
    """The documents of a part, as text."""
    ends = (tokens.long() == found.tokenizer.end).nonzero().flatten().tolist()
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [found.tokenizer.decode(tokens[a:b].tolist()) for a, b in zip(starts, ends, strict=True)]


def test_every_document_comes_back_once(folder: Path, tmp_path: Path) -> None:
    found = open_corpus(str(folder), "bpe", 300, 0.1, str(tmp_path / "cache"))
    train, valid = texts(found.train, found), texts(found.valid, found)
    assert sorted(train + valid) == sorted(document(n) for n in range(40))
    assert len(valid) == 4, "whole documents validate"
    assert found.documents == 40
    assert found.valid_bytes == sum(len(document.encode()) for document in valid)
    assert found.characters == sum(len(document(n)) for n in range(40))


def test_the_second_time_it_is_only_opened(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = open_corpus(str(folder), "bpe", 300, 0.1, str(cache))
    with monkeypatch.context() as patch:
        patch.setattr(corpus, "make", lambda *_: pytest.fail("made again"))
        again = open_corpus(str(folder), "bpe", 300, 0.1, str(cache))
    assert torch.equal(first.train.long(), again.train.long())
    [made] = cache.glob("corpus-*")
    header = json.loads((made / "corpus.json").read_text())
    assert header["dtype"] == "uint16"
    assert len(header["sources"]) == 12
    assert len({source["digest"] for source in header["sources"]}) == 12
    assert (made / "train.bin").stat().st_size == 2 * len(first.train)


@pytest.mark.parametrize("harm", ["shorten", "flip", "tokenizer", "header", "counts"])
def test_a_damaged_cache_is_made_again(
    folder: Path, tmp_path: Path, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    whole = open_corpus(str(folder), "bpe", 300, 0.1, str(cache)).train.long().clone()
    [made] = cache.glob("corpus-*")
    if harm == "shorten":
        (made / "train.bin").write_bytes((made / "train.bin").read_bytes()[:-2])
    elif harm == "flip":
        content = bytearray((made / "train.bin").read_bytes())
        content[100] ^= 1
        (made / "train.bin").write_bytes(content)
    elif harm == "counts":
        header = json.loads((made / "corpus.json").read_text())
        (made / "corpus.json").write_text(json.dumps({**header, "valid bytes": header["valid bytes"] + 1}))
    else:
        path = made / ("tokenizer.json" if harm == "tokenizer" else "corpus.json")
        path.write_text(path.read_text() + " {")
    assert torch.equal(open_corpus(str(folder), "bpe", 300, 0.1, str(cache)).train.long(), whole)
    assert "tokenized again" in capsys.readouterr().err


def test_a_source_replaced_at_equal_size_and_date_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, cache = tmp_path / "book.txt", str(tmp_path / "cache")
    path.write_text("abcd " * 400)
    then = path.stat()
    open_corpus(str(path), "bpe", 300, 0.1, cache)
    path.write_text("dcba " * 400)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    again = open_corpus(str(path), "bpe", 300, 0.1, cache)
    assert again.tokenizer.decode(again.train[:40].tolist()).startswith("dcba")
    assert f"{path} is not the text" in capsys.readouterr().err


def test_a_source_that_only_moved_on_disk_is_known_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "book.txt", str(tmp_path / "cache")
    path.write_text("abcd " * 400)
    open_corpus(str(path), "bpe", 300, 0.1, cache)
    shutil.copy2(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    monkeypatch.setattr(corpus, "make", lambda *_: pytest.fail("made again"))
    open_corpus(str(path), "bpe", 300, 0.1, cache)
    read: list[str] = []
    monkeypatch.setattr(kept, "digest", lambda file: (read.append(file.name), digest(file))[1])
    open_corpus(str(path), "bpe", 300, 0.1, cache)
    assert "train.bin" in read
    assert "book.txt" not in read, "it is known by its place and time again"


def test_a_changed_source_or_setting_makes_another(folder: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    sizes = [len(open_corpus(str(folder), "bpe", vocab, 0.1, cache).train) for vocab in (300, 400)]
    (folder / "c.txt").write_text("something new " * 50)
    sizes.append(len(open_corpus(str(folder), "bpe", 300, 0.1, cache).train))
    assert len(set(sizes)) == 3
    assert len(list(Path(cache).glob("[!.]*"))) == 3, "and nothing is left half made"


def test_a_large_text_is_the_same_on_disk_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "book.txt"
    path.write_text("".join(document(n) for n in range(60)), encoding="utf-8")
    data = Text(path=str(path), tokenizer="characters", cache=str(tmp_path / "cache"))
    here = data.open(16)
    monkeypatch.setattr(text, "LARGE", 1000)
    monkeypatch.setattr(documents, "CHUNK", 777)  # cuts lines and characters
    there = data.open(16)
    assert there.tokenizer.vocab == here.tokenizer.vocab
    assert (there.train.dtype, here.train.dtype) == (torch.uint16, torch.int32)
    whole = here.tokenizer.decode([*here.train.tolist(), *here.valid.tolist()])
    assert there.tokenizer.decode([*there.train.tolist(), *there.valid[:-1].tolist()]) == whole
    assert abs(there.valid_bytes - here.valid_bytes) < 30, "cut by bytes, not by characters"
    assert there.valid_bytes == len(there.tokenizer.decode(there.valid[:-1].tolist()).encode())


def test_a_run_goes_on_in_the_middle_of_an_epoch(folder: Path, tmp_path: Path) -> None:
    data = Text(path=str(folder), vocab=300, cache=str(tmp_path / "cache"))
    stream, other = (Windows(data.open(16).train, 16, 4, seed=3) for _ in range(2))
    for _ in range(7):
        next(stream)
    state = json.loads(json.dumps(stream.state_dict()))
    assert 0 < state["position"] < stream.cursor.n
    other.load_state_dict(state)
    for _ in range(2 * stream.cursor.n // 4):
        a, b = next(stream), next(other)
        assert torch.equal(a["x"], b["x"])
        assert torch.equal(a["y"], b["y"])
        assert a["x"].dtype == torch.int64


def test_only_windows_are_read(folder: Path, tmp_path: Path) -> None:
    found = open_corpus(str(folder), "bpe", 300, 0.1, str(tmp_path / "cache"))
    assert found.train.untyped_storage().nbytes() == 2 * len(found.train)
    [made] = (tmp_path / "cache").glob("corpus-*")
    before = (made / "train.bin").read_bytes()
    found.train[:5] = 0
    assert (made / "train.bin").read_bytes() == before, "the file is never written to"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\nalso good\nbad \xff\n", r"a\.txt, line 3: byte 0xff is not UTF-8"),
        ("a.txt", b"good\n\xe6\x97", r"a\.txt, line 2: byte 0xe6 is not UTF-8"),
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', r"a\.jsonl, line 2 is not valid JSON"),
        ("a.jsonl", b'{"text": "x"}\n\n{"words": "x"}\n', r'a\.jsonl, line 3: the record has no "text"'),
        ("a.jsonl", b'["x"]\n', r"a\.jsonl, line 1: a list"),
        ("a.jsonl", b'{"text": "\xff"}\n', r"a\.jsonl, line 1: byte 0xff"),
        ("a.txt.gz", gzip.compress(b"x" * 9999, mtime=0)[:-9], r"a\.txt\.gz is not a complete gzip file"),
        ("a.txt.gz", b"plain", r"a\.txt\.gz is not a complete gzip file"),
        ("a.jsonl", b"\n", "is empty"),
    ],
)
def test_faults_are_named_by_file_and_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Mistake, match=message):
        open_corpus(str(tmp_path), "bpe", 300, 0.1, str(tmp_path / "cache"))
    assert not list((tmp_path / "cache").glob("[!.]*")), "nothing is left behind"


def test_what_else_it_refuses(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no such file or folder"):
        open_corpus(str(tmp_path / "nothing.jsonl"), "bpe", 300, 0.1)
    (tmp_path / "void").mkdir()
    with pytest.raises(Mistake, match="no text in this folder"):
        sources(tmp_path / "void")
    data = Text(path=str(folder), vocab=300, cache=str(tmp_path / "cache"))
    with pytest.raises(Mistake, match="tokens for validation, but a context of 1000"):
        data.open(1000)
    with pytest.raises(Mistake, match=r"--data\.valid 1\.0"):
        Text(valid=1.0).open(8)


@given(st.text(alphabet="aä日😀\n", max_size=60), st.integers(1, 9))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_pieces_join_to_the_text_whatever_the_block(content: str, chunk: int) -> None:
    path, data = Path("x.txt"), content.encode()
    found = list(documents.passages(path, [data[i : i + chunk] for i in range(0, len(data), chunk)]))
    assert "".join(piece.text for piece in found).encode() == data
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]


@given(st.text(alphabet="aä日\n", min_size=1, max_size=30), st.integers(0, 90))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_cut_loses_nothing(content: str, at: int) -> None:
    first, second = halves(content, min(at, len(content.encode())))
    assert first + second == content


def test_validation_at_the_end_when_documents_are_few() -> None:
    cut = Cut(0.25, documents=1, bytes=8)
    found = list(cut.divide(iter([Piece("abcdefgh", True)])))
    assert found == [("train", Piece("abcdef", False)), ("valid", Piece("gh", True))]
    spread = [part for part, _ in Cut(0.25, 12, 12).divide(Piece("x", True) for _ in range(12))]
    assert spread == (["train"] * 3 + ["valid"]) * 3


def test_read_joins_the_documents(folder: Path) -> None:
    found = Text(path=str(folder)).read()
    assert all(document(n) in found for n in range(40))
    assert next(pieces(folder / "a.jsonl")) == Piece(document(0), True)


def test_document_numbers() -> None:
    tokens = torch.tensor([[5, 6, 0, 7, 0, 8]])
    assert document_numbers(tokens, 0).tolist() == [[0, 0, 0, 1, 1, 2]]
