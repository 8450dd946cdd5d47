"""A folder that is dropped keeps the names of its files, stays inside, and is bounded."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from descend.errors import Mistake
from descend.workbench import dropped
from descend.workbench.dropped import clean_path
from tests.workbench.conftest import Address


def drop(client: httpx.Client, name: str, into: str, content: bytes = b"1") -> httpx.Response:
    return client.post("/api/upload", params={"name": name, "into": into}, content=content)


def test_a_folder_arrives_as_it_was(client: httpx.Client, studio: Address) -> None:
    first, second = (client.post("/api/folder", json={"name": "my pets"}).json() for _ in range(2))
    assert Path(first["path"]) == studio.studio.place.own / "files" / "my-pets"
    assert first["path"] != second["path"]  # nothing is mixed with what was dropped before
    for name in ("big owl/1.png", "big owl/ü 2.png", "list.csv"):
        assert drop(client, name, first["key"], name.encode()).status_code == 200
    found = {p.relative_to(first["path"]).as_posix(): p.read_text() for p in Path(first["path"]).rglob("*.*")}
    assert found == {name: name for name in ("big owl/1.png", "big owl/ü 2.png", "list.csv")}


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/a", "a//b", "", ".git/x", "a\\b", "a\n", "x" * 201, "a/" * 12 + "b"]
)
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(Mistake):
        clean_path(name)


def test_only_a_folder_that_was_begun_is_filled(client: httpx.Client) -> None:
    for key in ("no", "../..", "."):
        answer = drop(client, "a.txt", key)
        assert answer.status_code == 400
        assert "drop it again" in answer.json()["error"]


def test_a_folder_is_bounded(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped, "MOST", 2)
    key = client.post("/api/folder", json={"name": "many"}).json()["key"]
    assert [drop(client, f"{i}.txt", key).status_code for i in range(4)] == [200, 200, 400, 400]
