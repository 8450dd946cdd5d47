"""Windows over a text: every token once an epoch, the same after a resume, split between processes without loss."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.text.plain import Passages, Text, Windows, python_documentation, window
from descend.errors import Mistake


def test_targets_are_one_token_ahead() -> None:
    batch = window(torch.arange(100), torch.tensor([0, 7]), 5)
    assert batch["x"].tolist() == [[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]]
    assert batch["y"].tolist() == [[1, 2, 3, 4, 5], [8, 9, 10, 11, 12]]


def test_an_epoch_covers_the_text_once_in_another_order_each_time() -> None:
    stream = Windows(torch.arange(1000), context=9, batch=10, seed=1)
    epochs = [torch.cat([next(stream)["x"] for _ in range(11)]).flatten() for _ in range(2)]
    for tokens in epochs:
        assert len(tokens.unique()) == len(tokens) == 990
    assert not torch.equal(*epochs)


def test_a_resumed_stream_goes_on_where_it_was() -> None:
    stream, other = (Windows(torch.arange(500), 7, 8, seed=2) for _ in range(2))
    for _ in range(11):
        next(stream)
    other.load_state_dict(stream.state_dict())
    for _ in range(11):
        assert torch.equal(next(stream)["x"], next(other)["x"])


def test_two_processes_see_the_batch_of_one() -> None:
    whole = Windows(torch.arange(500), 7, 8, seed=2)
    halves = [Windows(torch.arange(500), 7, 8, seed=2, rank=r, world=2) for r in range(2)]
    for _ in range(12):
        assert torch.equal(next(whole)["x"], torch.cat([next(half)["x"] for half in halves]))


def test_validation_walks_through_the_text() -> None:
    passages = Passages(torch.arange(50), context=9, batch=2)
    assert torch.cat([b["y"].flatten() for b in passages]).tolist() == list(range(1, 46))
    assert len(list(passages)) == len(list(passages)) == 3
    assert sum(len(b["x"]) for b in Passages(torch.arange(5000), 9, 4, limit=7)) == 7


def test_the_documentation_is_there() -> None:
    text = python_documentation()
    assert len(text) > 300_000
    assert 'The "for" statement' in text or 'The "for" statement' in text


def test_the_tokenizer_does_not_see_the_validation_text(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("ab" * 450 + "z" * 100)
    data = Text(path=str(path), tokenizer="characters")
    tokenizer = data.learn_tokenizer(data.read())
    assert tokenizer.inner.token_to_id("z") is None
    train, valid = data.split(data.read(), tokenizer, context=8)
    assert (len(train), len(valid)) == (900, 100)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"  \n", "is empty"), (b"ok \xff\xfe", "line 1: byte 0xff is not"), (None, "no such file")],
)
def test_a_bad_file_is_named(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Mistake, match=message) as caught:
        Text(path=str(path)).read()
    assert "bad.txt" in str(caught.value)


def test_too_little_text_and_too_large_a_batch() -> None:
    with pytest.raises(Mistake, match="--batch 100 is larger than the data"):
        Windows(torch.arange(100), 10, 100, seed=0)
    data = Text(tokenizer="characters")
    with pytest.raises(Mistake, match="tokens for training, but a context of 64"):
        data.split("short", data.learn_tokenizer("short"), 64)
    with pytest.raises(Mistake, match="choose bpe, characters"):
        Text(tokenizer="wordz").learn_tokenizer("x")
