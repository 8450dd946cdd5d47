"""Only the person who started the studio comes in, and only to the folders that it was given."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from descend.errors import Mistake
from descend.workbench.gate import BODY
from descend.workbench.place import Place, clean_name
from tests.workbench.conftest import TOKEN, Address


def test_without_the_token_nothing_is_shown(studio: Address) -> None:
    with httpx.Client(base_url=studio.url) as stranger:
        for path in ("/", "/run?run=moons/first", "/part/runs", "/static/studio.js", "/events"):
            assert stranger.get(path).status_code == 401, path
        assert stranger.get("/", params={"token": "wrong"}).status_code == 401
        page = stranger.get("/", headers={"Accept": "text/html"})
        assert page.status_code == 401
        assert "the address that the terminal shows" in page.text


def test_the_token_becomes_a_cookie_that_no_script_reads(studio: Address) -> None:
    with httpx.Client(base_url=studio.url) as person:
        answer = person.get("/train", params={"token": TOKEN})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/train"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert person.get("/").status_code == 200


def test_a_redirect_stays_here(studio: Address) -> None:
    with httpx.Client(base_url=studio.url) as person:
        answer = person.get(f"{studio.url}//elsewhere.example/", params={"token": TOKEN})
        assert not answer.headers["location"].startswith("//")


def test_another_host_or_origin_is_refused(studio: Address, client: httpx.Client) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    stop = {"run": "moons/first"}
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        assert client.post("/api/stop", json=stop, headers={"Origin": origin}).status_code == 403, origin


def test_what_is_sent_is_bounded_json(client: httpx.Client) -> None:
    assert client.post("/api/stop", content=b"run=x").status_code == 415
    large = {"run": "x" * BODY}
    assert client.post("/api/stop", json=large).status_code == 413
    assert client.post("/api/stop", json={"run": 3}).status_code == 400
    assert client.post("/api/stop", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400


def test_pages_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert "http://" not in answer.text.replace("http://www.w3.org", "")
    assert "https://" not in answer.text


@pytest.mark.parametrize("name", ["..", "../..", "moons/../../secret", "/etc", "moons/first/../../../x", ".studio"])
def test_runs_are_inside(client: httpx.Client, name: str) -> None:
    answer = client.get("/part/run", params={"run": name})
    assert answer.status_code == 400
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", ["../second/recipe.json", "/etc/passwd", "recipe.json", "checkpoints/last/state.json"])
def test_files_are_reports_and_images_of_the_run(client: httpx.Client, name: str) -> None:
    assert client.get("/file", params={"run": "moons/first", "name": name}).status_code == 400


def test_a_report_is_shown_in_a_sandbox(client: httpx.Client) -> None:
    answer = client.get("/file", params={"run": "moons/first", "name": "report.html"})
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("sandbox")


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "recipe.json").write_text("{}")
    os.symlink(tmp_path / "secret", tmp_path / "runs" / "link")
    with pytest.raises(Mistake, match="outside"):
        Place(tmp_path / "runs", tmp_path / "runs").find_run("link")


def test_dropped_files_get_plain_names(client: httpx.Client, studio: Address) -> None:
    assert clean_name("../../a b;$(c).csv") == "a-b-c-.csv"
    with pytest.raises(Mistake, match="no name"):
        clean_name("...")
    answer = client.post("/api/upload", params={"name": "../points of mine.csv"}, content=b"x,y\n1,2\n")
    path = Path(answer.json()["path"])
    assert path.parent == studio.studio.place.own / "files"
    assert path.read_bytes() == b"x,y\n1,2\n"


def test_data_is_in_the_folders_that_were_given(tmp_path: Path) -> None:
    place = Place(tmp_path / "runs", tmp_path / "data")
    assert place.find_data("a.csv") == tmp_path / "data" / "a.csv"
    with pytest.raises(Mistake, match="outside"):
        place.find_data("/etc/passwd")


@pytest.mark.parametrize("name", ["", "-x", "../x", "a/../b", "a b", "x" * 80, "a/b/c/d"])
def test_names_of_new_runs(tmp_path: Path, name: str) -> None:
    with pytest.raises(Mistake, match="name"):
        Place(tmp_path, tmp_path).check_new_run(name)
