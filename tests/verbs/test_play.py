"""descend play: returns, films and strips of whole episodes; one line where something is wrong."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from descend import cli
from descend.data.video.frames import open_video
from descend.inference.player import Player
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.report.film import LAST, MILLISECONDS
from descend.verbs.play import play
from tests.views import test_worlds

RUN = Path(__file__).parent / "data" / "last_release" / "ppo-cartpole"
assert test_worlds  # registers its environments


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_returns_are_those_of_the_player(capsys: pytest.CaptureFixture[str]) -> None:
    expected = Player.open(RUN).outcome(3, 4)
    found = play(RUN, 3, seed=4)
    assert [row["return"] for row in found] == expected.returns.tolist()
    assert [row["steps"] for row in found] == expected.lengths.tolist()
    assert cli.main(["play", str(RUN), "-n", "3", "--seed", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert not list(Path.cwd().iterdir())  # an answer for a program writes nothing else


def test_a_film_is_written_without_being_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["play", str(RUN)]) == 0
    said = capsys.readouterr().out
    (row,) = play(RUN)
    assert f"{row['return']:.6g}" in said
    assert said.endswith("written ppo-cartpole-episode.gif\n")
    with Image.open("ppo-cartpole-episode.gif") as film:
        times = []
        for at in range(film.n_frames):  # frames that are alike are one that lasts longer
            film.seek(at)
            times.append(film.info["duration"])
    assert sum(times) == MILLISECONDS * row["steps"] + LAST
    assert cli.main(["play", str(RUN)]) == 2
    assert "exists; give --replace" in capsys.readouterr().err


def test_strips_and_videos(capsys: pytest.CaptureFixture[str]) -> None:
    rows = play(RUN, 2, "strip.png")
    with Image.open("strip.png") as strip:
        assert strip.size == (8 * 240, 2 * 160)
    assert play(RUN, 2, "film.mp4") == rows
    frames = list(open_video("film.mp4"))
    assert len(frames) == sum(row["steps"] + 1 for row in rows)
    assert frames[0].shape == (160, 240, 3)
    assert cli.main(["play", str(RUN), "-n", "2", "--out", "strip.png", "--replace"]) == 0
    assert "means of 2 episodes" in capsys.readouterr().out


def test_a_long_film_is_thinned_out() -> None:
    torch.manual_seed(0)
    QNetwork(QNetworkConfig(6, 3, 8)).save_pretrained("model")
    rows = play("model", 2, "film.gif", "Acrobot-v1")
    assert rows[0]["steps"] > 150
    with Image.open(io.BytesIO(Path("film.gif").read_bytes())) as film:
        assert film.n_frames <= 300


def test_without_pictures_the_returns_are_still_told(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    QNetwork(QNetworkConfig(2, 2, 8)).save_pretrained("model")
    assert cli.main(["play", "model", "--env", "Counter-v0"]) == 0
    out = capsys.readouterr().out
    assert "no film: Counter-v0 gives no pictures" in out
    assert not Path("model-episode.gif").exists()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["nowhere"], "nowhere is not a folder"),
        ([str(RUN), "-n", "0"], "--episodes 0: give 1 to 10,000"),
        ([str(RUN), "--out", "film.avi"], "--out film.avi: the file's name ends in .png, .gif, .mp4, .mkv or .mov"),
        ([str(RUN), "--out", "no/film.gif"], "the folder no does not exist"),
        ([str(RUN), "--env", "Acrobot-v1"], "Acrobot-v1 has 6 observations and 3 actions; this ActorCritic"),
        ([str(RUN), "--env", "CartPole-v9"], "--data.env CartPole-v9: gymnasium cannot make it"),
        ([str(RUN), "--env", "Shaped-v0", "--out", "film.gif"], "has 2 observations"),
        ([str(RUN.parent / "gpt2-pydoc")], "which does not play"),
    ],
)
def test_mistakes_are_told_in_one_line(words: list[str], match: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["play", *words]) == 2
    told = capsys.readouterr().err
    assert match in told
    assert told.count("\n") == 1
    assert not list(Path.cwd().glob("*.gif"))
