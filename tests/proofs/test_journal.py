from __future__ import annotations

from pathlib import Path

import pytest

from proofs import journal
from proofs.journal import Journal


@pytest.fixture(autouse=True)
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FOLDER", tmp_path)
    monkeypatch.setattr(journal, "hash_source", lambda: "abc")


def test_an_interrupted_proof_goes_on() -> None:
    first = Journal("kills", seed=0)
    first.add("a", {"kills": 5, "different": 0})
    first.add("b", {"kills": 4, "different": 1})
    with first.path.open("a") as file:
        file.write('{"part": "c", "cou')  # killed while it was written
    again = Journal("kills", seed=0)
    assert list(again.left(["a", "b", "c"])) == ["c"]
    again.add("c", {"kills": 1, "different": 0})
    assert again.total() == {"kills": 10, "different": 1}
    again.close()
    assert not again.path.exists()
    assert list(Journal("kills", seed=0).left("abc")) == ["a", "b", "c"]


def test_another_seed_or_other_code_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    Journal("kills", seed=0).add("a", {"kills": 5})
    assert Journal("kills", seed=1).done == {}
    Journal("kills", seed=0).add("a", {"kills": 5})
    monkeypatch.setattr(journal, "hash_source", lambda: "changed")
    assert Journal("kills", seed=0).done == {}
