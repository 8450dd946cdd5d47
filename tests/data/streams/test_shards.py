"""Which process this is."""

from __future__ import annotations

import pytest

from descend.data.streams.shards import process
from descend.errors import Mistake


def test_alone_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert process() == (0, 1)


def test_as_torchrun_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert process() == (2, 4)


@pytest.mark.parametrize(("rank", "world", "named"), [("x", "2", "RANK='x'"), ("2", "2", "RANK=2")])
def test_nonsense_is_named(monkeypatch: pytest.MonkeyPatch, rank: str, world: str, named: str) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(Mistake, match=named):
        process()
