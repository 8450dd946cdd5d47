"""The playground trains what `descend train` trains, and its page is a state that anybody can open."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import torch

from descend.engine.run import Run
from descend.errors import Mistake
from descend.models.layered import NORMS, STARTS
from descend.nn.activations import ACTIVATIONS
from descend.verbs.train import train
from descend.workbench import playground
from descend.workbench.place import Place
from descend.workbench.playground import OPTIMIZERS, State, choices, make_recipe, read_state, show_step, write_python


@pytest.fixture
def place(tmp_path: Path) -> Place:
    playground.SESSIONS.clear()
    return Place(tmp_path / "runs", tmp_path)


def test_the_same_run_in_the_shell(place: Place) -> None:
    state = State(optimizer="Lion", lr=0.003, activation="gelu", norm="layer", dropout=0.1, hidden=[6], seed=3)
    show_step(state, 20, place)
    session = playground.SESSIONS[state.model_dump_json()]
    path, text = write_python(state, 20, place)
    assert "Lion(lr=0.003" in text
    run, _ = train(str(path), {"threads": 1}, out=place.runs / "same", quiet=True)
    losses = [line["loss"] for line in Run.open(run.folder).lines() if "loss" in line and "event" not in line]
    assert losses == session.losses


def test_steps_can_be_taken_in_any_pieces(place: Place) -> None:
    whole = show_step(State(), 12, place)
    playground.SESSIONS.clear()
    for to in (1, 2, 7, 12):
        pieces = show_step(State(), to, place)
    assert pieces == whole
    back = show_step(State(), 2, place)
    assert back["step"] == 2


def test_what_is_drawn_is_what_the_network_answers(place: Place) -> None:
    found = show_step(State(hidden=[4]), 5, place)
    winner = base64.b64decode(found["winner"])
    assert len(winner) == found["cells"] ** 2
    assert set(winner) <= {0, 1}
    assert [len(layer) for layer in found["layers"]] == [4]
    model = playground.SESSIONS[State(hidden=[4]).model_dump_json()].training.parts.model.eval()
    x0, y0, x1, y1 = found["box"]
    corner = torch.tensor([[x0 + 0.5 * (x1 - x0) / found["cells"], y1 - 0.5 * (y1 - y0) / found["cells"]]])
    assert int(model(corner).argmax()) == winner[0]


def test_points_of_ones_own(place: Place) -> None:
    points = [{"x": i % 3 - 1.0, "y": i / 10, "label": "ab"[i % 2]} for i in range(40)]
    state = read_state({"data": "drawn", "points": points})
    assert show_step(state, 3, place)["labels"] == ["a", "b"]
    with pytest.raises(Mistake, match="10 points or more"):
        show_step(read_state({"data": "drawn", "points": points[:4]}), 1, place)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"hidden": [0]}, "1 to 256"),
        ({"lr": -1}, "lr"),
        ({"speed": 1}, "speed"),
        ({"optimizer": "Magic"}, "Magic"),
        ({"optimizer": "FletcherReeves", "decay": 0.1}, "weight decay"),
        ({"activation": "relo"}, "relu"),
        ({"data": "/etc/passwd"}, "outside"),
    ],
)
def test_mistakes_are_named(place: Place, sent: dict[str, object], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        make_recipe(read_state(sent), place)


def test_the_form_offers_what_the_library_has() -> None:
    offered = choices()
    assert offered["activation"] == list(ACTIVATIONS)
    assert offered["start"] == list(STARTS)
    assert offered["norm"] == list(NORMS)
    assert offered["optimizer"] == list(OPTIMIZERS)


@pytest.mark.parametrize(
    "name", [name for name in OPTIMIZERS if name not in ("LBFGS", "FletcherReeves", "PolakRibiere")]
)
def test_every_optimizer_learns(place: Place, name: str) -> None:
    state = State(optimizer=name, lr=0.01, hidden=[4])
    before, after = show_step(state, 0, place)["train"][0], show_step(state, 30, place)["train"][0]
    assert after < before
