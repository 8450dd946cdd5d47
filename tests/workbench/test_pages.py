"""Every page is there, shows what the files say, and escapes what strangers have named."""

from __future__ import annotations

import json
import shutil

import httpx
import pytest

from tests.workbench.conftest import Address

EVIL = "<script>alert(1)</script>"


def test_the_list_shows_runs_with_their_scores(client: httpx.Client) -> None:
    page = client.get("/").text
    assert "moons/first" in page
    assert "moons/second" in page
    assert page.count('class="state finished"') == 2
    assert 'class="spark"' in page


def test_a_run_shows_what_its_report_shows(client: httpx.Client) -> None:
    page = client.get("/run", params={"run": "moons/first"}).text
    for words in ("Validation accuracy", "Learning rate", "best validation loss", "Look inside", "Report"):
        assert words in page, words


def test_two_runs_side_by_side(client: httpx.Client) -> None:
    page = client.get("/compare", params={"run": ["moons/first", "moons/second"]}).text
    assert "optim.lr" in page
    assert "Where the curves part" in page
    one = client.get("/compare", params={"run": "moons/first"})
    assert one.status_code == 400
    assert "mark 2 to 20 runs" in one.text


def test_the_same_run_twice_is_the_same_to_the_bit(client: httpx.Client, studio: Address) -> None:
    shutil.copytree(studio.runs / "moons" / "first", studio.runs / "moons" / "copy", symlinks=True)
    page = client.get("/compare", params={"run": ["moons/first", "moons/copy"]}).text
    shutil.rmtree(studio.runs / "moons" / "copy")
    assert "The same values." in page
    assert "The curves are the same, to the bit" in page


def test_names_of_strangers_stay_text(client: httpx.Client, studio: Address) -> None:
    evil = studio.runs / "moons" / "evil"
    shutil.copytree(studio.runs / "moons" / "first", evil, symlinks=True)
    recipe = json.loads((evil / "recipe.json").read_text())
    recipe |= {"name": EVIL, "about": EVIL, "facts": {**recipe["facts"], EVIL: EVIL}}
    (evil / "recipe.json").write_text(json.dumps(recipe))
    with (evil / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 60, EVIL: 1.0, "loss": 0.1}) + "\n")
    pages = [client.get(path).text for path in ("/", "/run?run=moons/evil", "/compare?run=moons/evil&run=moons/first")]
    shutil.rmtree(evil)
    for page in pages:
        assert EVIL not in page
        assert "&lt;script&gt;" in page


def test_a_damaged_run_is_told(client: httpx.Client, studio: Address) -> None:
    broken = studio.runs / "broken"
    broken.mkdir()
    (broken / "recipe.json").write_text("{")
    page = client.get("/").text
    shutil.rmtree(broken)
    assert "broken" in page
    assert "moons/first" in page


@pytest.mark.parametrize("path", ["/train", "/learn", "/labs", "/use", "/inside"])
def test_every_page_of_the_menu(client: httpx.Client, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert 'aria-current="page"' in page.text


def test_the_form_of_a_recipe_and_of_a_run(client: httpx.Client) -> None:
    page = client.get("/train/form", params={"recipe": "mlp-moons"}).text
    assert 'name="optim.lr" value="0.01"' in page
    assert "Total optimizer steps." in page
    like = client.get("/train/form", params={"like": "moons/second"})
    assert like.status_code == 400  # its recipe was the caller's own, which the studio cannot name
    wrong = client.get("/train/form", params={"recipe": "mlp-moon"}, headers={"Accept": "text/html"})
    assert wrong.status_code == 400
    assert "mlp-moons" in wrong.text


def test_a_form_says_what_command_it_stands_for(client: httpx.Client, studio: Address) -> None:
    asked = {"recipe": "mlp-moons", "name": "new/one", "values": {"optim.lr": "0.05"}}
    found = client.post("/api/command", json=asked).json()
    assert found["command"] == f"descend train mlp-moons --optim.lr 0.05 --out {studio.runs / 'new' / 'one'}"
    wrong = client.post("/api/command", json={**asked, "values": {"optim.lr": "x"}}).json()
    assert "takes a number" in wrong["wrong"]
    outside = client.post("/api/command", json={**asked, "values": {"data.path": "/etc/passwd"}}).json()
    assert "outside" in outside["wrong"]
    taken = client.post("/api/train", json={"recipe": "mlp-moons", "name": "moons/first"})
    assert taken.status_code == 400
    assert "give another name" in taken.json()["error"]


def test_search_knows_the_books_words(client: httpx.Client) -> None:
    page = client.get("/part/find", params={"words": "grouped query"}).text
    assert "/learn/grouped-query-attention" in page
    assert "Nothing fits" in client.get("/part/find", params={"words": "zzzzqqq"}).text


def test_a_system_with_ones_own_numbers(client: httpx.Client) -> None:
    page = client.get("/learn/softmax").text
    assert "With your own numbers" in page
    example = page.partition('data-example="')[2].partition('"')[0]
    found = client.post("/api/recompute", json={"example": example, "inputs": {"nothing": 1}})
    assert found.status_code == 400
    assert "cannot be computed" in found.json()["error"]
    assert client.post("/api/recompute", json={"example": "no", "inputs": {}}).status_code == 400


def test_traces(client: httpx.Client) -> None:
    page = client.get("/trace", params={"what": "x*y", "at": "x=2 y=3"})
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert "adjoint" in page.text
    assert client.get("/trace", params={"what": "runs/moons"}).status_code == 400


def test_a_lab_that_there_is_not(client: httpx.Client) -> None:
    assert client.post("/api/lab", json={"name": "../x"}).status_code == 400
    assert client.get("/lab/attention-scale.html").status_code == 400
    assert "attention-scale" in client.get("/part/labs").text


def test_unknown_pages_are_told(client: httpx.Client) -> None:
    page = client.get("/nowhere", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "there is no such page" in page.text


def test_only_what_there_is_can_be_opened(client: httpx.Client) -> None:
    assert client.post("/api/open", json={"run": "moons/first", "checkpoint": "../last"}).status_code == 400
    assert client.post("/api/open", json={"run": "moons/first", "checkpoint": "step-999"}).status_code == 400
    assert client.get("/model/0123456789abcdef/v1/models").status_code == 404
    assert client.post("/api/film", json={"run": "moons/first", "seed": "x"}).status_code == 400


def test_a_model_answers_through_the_servers_routes(client: httpx.Client) -> None:
    opened = client.post("/api/open", json={"run": "moons/first", "checkpoint": "best"}).json()
    assert opened["schema"]["form"] == "AskRecords"
    names = list(opened["schema"]["request"]["properties"]["records"]["items"]["properties"])
    record = dict.fromkeys(names, 0.5)
    asked = {"model": opened["model"], "records": [record]}
    answer = client.post(f"/model/{opened['key']}/v1/predict", json=asked).json()["answers"]
    assert answer[0]["prediction"] in ("0", "1")
    again = client.post("/api/open", json={"run": "moons/first", "checkpoint": "best"}).json()
    assert again["key"] == opened["key"]
    wrong = client.post(f"/model/{opened['key']}/v1/predict", json={"model": opened["model"], "records": []})
    assert wrong.status_code == 400


def test_layers_and_exhibits_of_a_step(client: httpx.Client) -> None:
    asked = {"run": "moons/first", "step": 30}
    assert "Decision regions" in client.get("/part/inside", params=asked).text
    page = client.get("/part/layers", params=asked).text
    assert "Gradients" in page
    assert "layers.0" in page
    assert client.get("/part/inside", params={**asked, "step": 31}).status_code == 400
