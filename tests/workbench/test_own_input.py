"""What a page asks for to look inside, and what it shows of it; films and walks as the commands that they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
import torch

from descend.inference.table_predictor import TablePredictor
from descend.inference.trained import load_trained
from descend.verbs.train import train
from descend.workbench import film_page
from descend.workbench.labs_page import read_verdict
from descend.workbench.own_input import as_records, draw_form, look_at_row
from tests.close import close
from tests.workbench.conftest import Address

ROW = {"x1": "0.5", "x2": "0.25"}


@pytest.fixture
def predictor(studio: Address) -> TablePredictor:
    return TablePredictor.read(load_trained(str(studio.runs / "moons" / "first"), 60))


def test_the_form_of_a_table_has_its_columns(studio: Address) -> None:
    form = str(draw_form(studio.runs / "moons" / "first", 60))
    assert form.count("data-own") == 2
    assert 'data-column="x1"' in form


def test_the_curves_of_a_row_go_through_its_own_answer(predictor: TablePredictor) -> None:
    units, _, by_x1, by_x2 = look_at_row(predictor, ROW)
    inputs = predictor.columns.encode(as_records([ROW]))
    first = predictor.trained.model.layers[0]
    close(torch.tensor(units.content["values"][0]), first(inputs)[0])
    (answer,) = predictor.answer_records(as_records([ROW]))
    for exhibit, name in ((by_x1, "x1"), (by_x2, "x2")):
        at = min(range(41), key=lambda i: abs(exhibit.content["x"][i] - float(ROW[name])))
        moved = {**ROW, name: str(exhibit.content["x"][at])}
        (answer,) = predictor.answer_records(as_records([moved]))
        close(exhibit.content["y"][answer.prediction][at], answer.probability)
        shares = torch.tensor(list(exhibit.content["y"].values()))
        close(shares.sum(0), torch.ones(41))


def test_a_row_of_ones_own_on_the_page(client: httpx.Client) -> None:
    asked = {"run": "moons/first", "step": 60}
    assert "data-column" in client.get("/part/own", params=asked).text
    page = client.post("/part/own", json={**asked, "row": ROW}).text
    assert "Units of layer 1" in page
    assert "by x2" in page
    assert client.post("/part/own", json=asked).status_code == 400
    assert client.post("/part/own", json={**asked, "row": {"x1": 3}}).status_code == 400


def test_films_and_walks_are_commands(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    async def run(words: Sequence[str], folder: Path) -> str:
        asked.append(list(words))
        return "drawn nothing"

    monkeypatch.setattr(film_page, "run_verb", run)
    walk = {"run": "moons/first", "step": 60, "seed": 3, "to": 7, "label": "2"}
    assert client.post("/api/walk", json=walk).json() == {"said": "drawn nothing"}
    (words,) = asked
    assert words[0] == "interpolate"
    assert words[words.index("--to") + 1] == "7"
    assert words[-2:] == ["--class", "2"]
    for wrong in ({"label": "--out=/tmp/x.png"}, {"count": 1}, {"step": "x"}):
        assert client.post("/api/walk", json=walk | wrong).status_code == 400
    assert len(asked) == 1
    film = {"run": "moons/first", "step": 60, "verb": "act", "instruction": "--film=/tmp/x.gif"}
    assert client.post("/api/film", json=film).status_code == 400


def test_the_verdict_of_a_lab_is_that_of_its_page(tmp_path: Path) -> None:
    assert read_verdict(tmp_path / "none.html") == ""
    page = tmp_path / "a.html"
    page.write_text('<h1>a</h1><span class="state refuted">refuted</span> … <span class="state open">open</span>')
    assert read_verdict(page) == "refuted"


def test_a_graph_model_is_asked_about_its_own_graph(client: httpx.Client, studio: Address) -> None:
    train(
        "gcn-karate", {"steps": 2, "eval_every": 2, "save_every": 2, "threads": 1}, out=studio.runs / "club", quiet=True
    )
    opened = client.post("/api/open", json={"run": "club"}).json()
    graph = opened["schema"]["example"]
    assert graph["nodes"] == 34
    assert len(graph["edges"]) == 78  # Zachary's club
    asked = {"model": opened["model"], "graphs": [graph]}
    answers = client.post(f"/model/{opened['key']}/v1/predict", json=asked).json()["answers"]
    assert [answer["node"] for answer in answers] == graph["names"]
