"""descend act: episodes, films, instructions and times, and what is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import descend
from descend.cli import main
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.arm_player import ArmPlayer
from descend.kinds.recipe import Recipe
from descend.models.q_network import TINY, QNetwork
from tests.kinds.test_imitation import SMALL


def save_run(recipe: Recipe, folder: Path) -> Path:
    """A run that was trained for a step."""
    loop = replace(recipe.loop, steps=1, eval_every=1, save_every=1, watch="max success")
    descend.train(replace(recipe, loop=loop), out=folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(SMALL["act"], tmp_path_factory.mktemp("act"))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(SMALL["vla"], tmp_path_factory.mktemp("vla"))


@pytest.mark.system("act-policy", "recipe")
def test_episodes_are_told_and_filmed(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = tmp_path / "arm.gif"
    assert main(["act", str(run), "-n", "3", "--film", str(film)]) == 0
    said = capsys.readouterr().out
    assert "success 0.0% of 3 episodes" in said
    assert "policy" in said
    assert "times a second" in said
    with Image.open(film) as found:
        assert found.n_frames == 3 * 27
        assert found.size == (240, 180)
    assert main(["act", str(run), "-n", "1", "--film", str(film)]) == 2
    assert "exists; give --replace" in capsys.readouterr().err


def test_the_same_seed_plays_the_same_episodes(run: Path) -> None:
    first, again = (descend.act(run, episodes=2, seed=3)["episodes"] for _ in range(2))
    assert first == again
    assert isinstance(open_run(run), ArmPlayer)


@pytest.mark.system("vla-policy", "recipe")
def test_a_policy_that_reads_is_told_what_to_do(reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["act", str(reader), "pick the red cube and place it in the blue bin", "-n", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["episodes"]) == 2
    assert found["milliseconds"].keys() == {"observation", "policy"}
    player = ArmPlayer.open(reader)
    scene, texts = player.start([1, 2, 3], "pick red, place blue")
    assert texts == ["pick red, place blue"] * 3
    assert (scene.paint[[0, 1, 2], scene.target] == 0).all()
    assert (scene.bin_paint[[0, 1, 2], scene.place] == 2).all()
    assert all(len({*row}) == 2 for row in scene.paint.tolist())


@pytest.mark.system("vla-policy", "refused")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pick the purple cube"], "names no colour"),
        (["grip red, place blue"], "has not learned the word 'grip'"),
        (["pick red", "-n", "0"], "--episodes 0: give 1 to 10,000"),
        (["pick red", "--film", "film.mp4"], "give the name of a .gif file"),
    ],
)
def test_what_cannot_be_done_is_named(
    words: list[str], message: str, reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["act", str(reader), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_policy_without_a_choice_takes_no_instruction(run: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="trained for pick-place, where there is no choice"):
        descend.act(run, "pick red")
    QNetwork(TINY).save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="holds a QNetwork, which moves no arm"):
        descend.act(tmp_path)
    with pytest.raises(Mistake, match="use: descend act"):
        descend.predict(run, "x")
    (tmp_path / "model").mkdir()
    replace(SMALL["act"]).build().model.save_pretrained(tmp_path / "model")
    with pytest.raises(Mistake, match=r"has no recipe\.json"):
        descend.act(tmp_path / "model")
