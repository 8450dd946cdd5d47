"""descend calibrate: measured, learned, kept beside the weights, and used by whoever opens them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend import cli, recipes
from descend.contracts import Chooses
from descend.errors import Mistake
from descend.inference import open_run
from descend.kinds.recipe import Recipe
from descend.verbs.start import run_recipe
from proofs.tiny import shrink_flags, write_files

WORKING = ("mlp-wine", "lenet-digits", "lstm-sentiment", "bert-classify", "bert-tag", "gcn-karate", "gin-rings")


def shrink(name: str, folder: Path) -> Recipe:
    from descend.verbs.flags import parse
    from descend.verbs.train import TrainFlags

    flags = parse(
        TrainFlags, shrink_flags(name, folder), f"descend train {name}", default=TrainFlags(recipes.get(name))
    )
    return flags.recipe


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that was trained too short to be sure."""
    folder = tmp_path_factory.mktemp("calibrate") / "wine"
    recipe = recipes.get("mlp-wine")
    loop = replace(recipe.loop, steps=12, eval_every=6, save_every=6, threads=1)
    run_recipe("mlp-wine", replace(recipe, loop=loop), folder, quiet=True)
    return folder


def table(run: Path, folder: Path) -> Path:
    columns = open_run(run).columns  # type: ignore[union-attr]
    path = folder / "new.jsonl"
    rows = [{name: float(i + k) for k, name in enumerate(columns.inputs)} for i in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.system("calibration-ece", "temperature")
def test_it_is_learned_kept_and_used(wine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = table(wine, tmp_path)
    before = descend.predict(wine, new)
    dry = descend.calibrate(wine, dry=True)
    assert descend.predict(wine, new) == before  # nothing was written
    found = descend.calibrate(wine)
    assert found == dry
    t = found["temperature"]
    assert t != pytest.approx(1, abs=0.05)
    assert found["valid"]["after"]["loss"] < found["valid"]["before"]["loss"]
    for part in ("valid", "test"):
        assert found[part]["after"]["accuracy"] == found[part]["before"]["accuracy"]
        assert sum(row["count"] for row in found[part]["after"]["bins"]) == found[part]["after"]["count"]
    after = descend.predict(wine, new)
    assert [row["cultivar"] for row in after] == [row["cultivar"] for row in before]
    assert [row["probability"] for row in after] != [row["probability"] for row in before]
    assert cli.main(["calibrate", str(wine), "--dry"]) == 0
    said = capsys.readouterr().out
    assert f"temperature {t:.4f}; nothing was kept (--dry)" in said
    assert "confidence      count  mean confidence  accuracy" in said


@pytest.mark.system("calibration-ece", "temperature")
def test_probabilities_are_those_of_divided_logits(wine: Path) -> None:
    trained = open_run(wine).trained  # type: ignore[union-attr]
    t = descend.calibrate(wine)["temperature"]
    z = torch.tensor([[1.0, 2.0, -1.0]])
    assert torch.equal(type(trained)(trained.model, trained.folder).probabilities(z), (z / t).softmax(-1))


@pytest.mark.system("calibration-ece", "report")
@pytest.mark.parametrize("name", WORKING)
def test_every_classifier_shows_its_reliability(name: str, files: Path) -> None:
    parts = shrink(name, files).build()
    assert isinstance(parts.task, Chooses)
    assert parts.exhibits is not None
    found = {exhibit.kind: exhibit for exhibit in parts.exhibits()}
    assert "Expected calibration error (ECE)" in found["reliability"].note
    assert sum(found["reliability"].content["count"]) > 0


@pytest.mark.system("calibration-ece", "table")
def test_tokens_of_a_language_model_have_a_table(files: Path, tmp_path: Path) -> None:
    recipe = shrink("gpt2-pydoc", files)
    run_recipe("gpt2-pydoc", recipe, tmp_path / "run", quiet=True)
    found = descend.calibrate(tmp_path / "run")
    told = found["valid"]["before"]
    assert "temperature" not in found
    assert "after" not in found["valid"]
    valid = descend.evaluate(tmp_path / "run")["valid"]
    assert told["loss"] == pytest.approx(valid["loss"], rel=1e-4)
    assert not list((tmp_path / "run" / "checkpoints").rglob("calibration.json"))


def test_what_does_not_choose_is_named(tmp_path: Path) -> None:
    released = Path(__file__).parent / "data" / "last_release"
    with pytest.raises(Mistake, match="which does not choose among classes"):
        descend.calibrate(released / "gan-mixture")


@pytest.mark.parametrize("content", ['{"temperature": 0.0}', '{"temperature": "x"}', "{}", '{"temperature": NaN}'])
def test_a_damaged_calibration_is_named(wine: Path, tmp_path: Path, content: str) -> None:
    import shutil

    folder = shutil.copytree((wine / "checkpoints" / "best").resolve(), tmp_path / "model")
    (folder / "calibration.json").write_text(content)
    with pytest.raises(Mistake, match=r"calibration\.json"):
        descend.predict(folder, table(wine, tmp_path))
