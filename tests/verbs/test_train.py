"""train, resume, evaluate, plan and generate, called as a user calls them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import descend
from descend import recipes
from descend.cli import main
from tests.engine.small import text_file

WIDTHS = ["--model.width", "16", "--model.depth", "1", "--model.heads", "2", "--model.context", "16"]
SMALL = [*WIDTHS, "--batch", "4", "--threads", "1", "--quiet"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of gpt2-pydoc, made small by flags."""
    folder = tmp_path_factory.mktemp("runs")
    text = str(text_file(folder))
    flags = ["--data.path", text, "--data.tokenizer", "characters", "--steps", "6", "--eval-every", "3", "--seed", "1"]
    assert main(["train", "gpt2-pydoc", "--out", str(folder / "run"), *SMALL, *flags]) == 0
    return folder / "run"


def test_a_run_is_a_folder(run: Path) -> None:
    assert (run / "checkpoints/last/model.safetensors").exists()
    assert (run / "checkpoints/best/tokenizer.json").exists()
    saved = json.loads((run / "recipe.json").read_text())
    assert saved["name"] == "gpt2-pydoc"
    assert saved["values"]["loop"]["steps"] == 6
    assert saved["environment"]["threads"] == 1
    assert "<html" in (run / "report.html").read_text()
    assert list((run / "tensorboard").iterdir())
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_evaluate(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["valid"]["perplexity"] == pytest.approx(2.718281828 ** scores["valid"]["loss"])
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = min(line["valid"]["loss"] for line in logged if "valid" in line)
    assert scores["valid"]["loss"] == pytest.approx(best, rel=1e-6)


def test_generate_is_repeatable(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["generate", str(run), "the ", "--tokens", "10", "--temperature", "1.0", "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("the ")


def test_generate_reads_a_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--tokens", "3", "--temperature", "0"]
    assert main(["generate", str(run), "the\nend", *flags]) == 0
    typed = capsys.readouterr().out
    Path("the").write_text("the\nend\n")
    assert main(["generate", str(run), "the", *flags]) == 0
    told = capsys.readouterr()
    assert told.out == typed
    assert told.err == "reading the file the; for the text itself give --text\n"
    assert descend.generate(run, Path("the"), tokens=3, temperature=0) + "\n" == typed
    assert main(["generate", str(run), "the", *flags, "--text"]) == 0
    assert "\nend" not in capsys.readouterr().out


def test_resume_of_a_finished_run_adds_nothing(run: Path) -> None:
    before = (run / "checkpoints/last/model.safetensors").read_bytes()
    assert main(["resume", str(run), "--quiet"]) == 0
    assert (run / "checkpoints/last/model.safetensors").read_bytes() == before


def test_plan(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = str(run.parent / "text.txt")
    flags = [f for f in SMALL if f != "--quiet"]
    assert main(["plan", "gpt2-pydoc", *flags, "--data.path", text, "--data.tokenizer", "characters", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["step_seconds"] > 0
    assert plan["data"]["training tokens"] == pytest.approx(0.9 * plan["data"]["characters"], rel=0.01)


def test_a_budget_sets_the_steps(run: Path) -> None:
    text = str(run.parent / "text.txt")
    flags = ["--data.path", text, "--data.tokenizer", "characters", "--steps", "100000", "--budget", "2s"]
    assert main(["train", "gpt2-pydoc", "--out", str(run.parent / "short"), *SMALL, *flags]) == 0
    saved = json.loads((run.parent / "short/recipe.json").read_text())
    assert saved["values"]["loop"]["steps"] < 100_000


def test_a_budget_lengthens_a_short_recipe_unless_the_steps_are_given(tmp_path: Path) -> None:
    moons = recipes.get("mlp-moons")
    short = replace(moons, loop=replace(moons.loop, steps=3, eval_every=2, save_every=2))
    _, result = descend.train(short, out=tmp_path / "long", budget=60, quiet=True)
    assert (result.reason, result.step) == ("finished", 12)
    _, result = descend.train(short, {"steps": 5}, out=tmp_path / "given", budget=60, quiet=True)
    assert (result.reason, result.step) == ("finished", 5)


WRONG = {
    "an unknown recipe": (["train", "gpt2-pydok"], "Did you mean 'gpt2-pydoc'"),
    "an unknown flag": (["train", "gpt2-pydoc", "--optim.lrr", "1"], "--optim.lr"),
    "a flag without its group": (["train", "gpt2-pydoc", "--lr", "1"], "--optim.lr"),
    "a value of the wrong kind": (["train", "gpt2-pydoc", "--steps", "many"], "--steps"),
    "no such file": (["train", "gpt2-pydoc", "--data.path", "nowhere.txt"], "nowhere.txt: no such file"),
    "a width that does not divide": (["train", "gpt2-pydoc", "--model.heads", "7"], "not a multiple of heads"),
    "a budget that is no time": (["train", "gpt2-pydoc", "--budget", "soon"], "--budget 'soon'"),
    "no run": (["resume", "nowhere"], "not a run folder"),
    "an unknown verb": (["trian"], "Did you mean 'train'"),
    "a watch": (["train", "gpt2-pydoc", "--watch", "loss"], "--watch 'loss'"),
    "no steps": (["train", "gpt2-pydoc", "--steps", "0"], "--steps 0: must be a whole number, at least 1"),
    "a precision": (["train", "gpt2-pydoc", "--precision", "float8"], "--precision float8"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_mistake_is_one_line_and_exit_code_2(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    args, message = WRONG[kind]
    assert main(args) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_an_existing_run_is_not_overwritten(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gpt2-pydoc", "--out", str(run)]) == 2
    assert "--replace" in capsys.readouterr().err


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "gpt2-pydoc" in listed
    assert "lenet-digits" in listed
