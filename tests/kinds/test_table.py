"""Table recipes: from a user's file to a trained, saved, examined model that answers for new records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend import recipes
from descend.data.tables.columns import Columns
from descend.data.tables.source import Table
from descend.engine.evaluation import score_set
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.saved import from_json, to_json
from descend.kinds.table import ClassBalance, LearnTable
from descend.models.mlp import MLPConfig
from descend.optim.schedules import Constant
from tests.close import close
from tests.engine.small import train, training, weights

SMALL = LearnTable(model=MLPConfig(hidden=(8,)), data=Table(embedded="iris"), loop=Loop(steps=4, batch=16))


def trained(recipe: Any, steps: int) -> Training:
    run = training(recipe)
    for _ in range(steps):
        run.advance()
    return run


def scores(recipe: Any, run: Training) -> dict[str, float]:
    with torch.no_grad():
        return score_set(run.task, recipe.test())


@pytest.mark.parametrize(
    ("name", "steps", "score", "bar"),
    [  # short runs; a linear model's accuracy on the moons is 0.85
        ("mlp-moons", 200, "accuracy", 0.93),
        ("mlp-wine", 60, "accuracy", 0.93),
        ("mlp-breast-cancer", 60, "accuracy", 0.94),
    ],
)
def test_short_runs_learn(name: str, steps: int, score: str, bar: float) -> None:
    recipe = recipes.get(name)
    recipe = replace(recipe, loop=replace(recipe.loop, ema=0.0))
    assert scores(recipe, trained(recipe, steps))[score] > bar


@pytest.mark.system("mlp", "trains")
@pytest.mark.parametrize(("name", "bar"), [("mlp-csv", 0.2), ("mlp-diabetes", 0.65)])
def test_short_regressions_learn(name: str, bar: float) -> None:
    recipe = recipes.get(name)
    recipe = replace(recipe, loop=replace(recipe.loop, ema=0.0))
    found = scores(recipe, trained(recipe, 150))
    assert found["loss"] < bar  # guessing the mean costs 1


def own(folder: Path) -> str:
    """y depends on x and on the colour; one colour is rare."""
    lines = ["x,colour,label,y"]
    for i in range(120):
        colour = ("red", "blue", "green")[i % 3]
        value = i % 11 + {"red": 5, "blue": 0, "green": -5}[colour]
        lines.append(f"{i % 11},{colour},{'high' if value > 8 else 'low'},{value}.5")
    path = folder / "own.csv"
    path.write_text("\n".join(lines))
    return str(path)


def test_a_users_file_from_training_to_answers(tmp_path: Path) -> None:
    table = Table(path=own(tmp_path), target="y", drop=("label",))
    loop = Loop(steps=150, batch=32, eval_every=50, save_every=150, threads=1)
    recipe = replace(recipes.get("mlp-csv"), data=table, loop=loop)
    run = train(recipe, tmp_path / "run")
    folder = run.checkpoints / "best"
    assert Columns.read(folder) == table.read().columns
    (tmp_path / "new.csv").write_text("colour,x\nred,3\nblue,10\npink,1\n")
    answers = descend.predict(tmp_path / "run", tmp_path / "new.csv")
    assert [a["line"] for a in answers] == [2, 3, 4]
    assert abs(answers[0]["y"] - 8.5) < 0.5
    assert abs(answers[1]["y"] - 10.5) < 0.5
    by_class = replace(recipe, data=replace(table, target="label", drop=("y",)))
    train(by_class, tmp_path / "other")
    answers = descend.predict(tmp_path / "other" / "checkpoints" / "last", tmp_path / "new.csv")
    assert [a["label"] for a in answers[:2]] == ["low", "high"]
    assert all(0.5 <= a["probability"] <= 1 for a in answers)


def test_facts_show_the_imbalance_and_what_is_left_out(tmp_path: Path) -> None:
    table = Table(path=own(tmp_path), target="label", drop=("y",))
    facts = replace(SMALL, data=table).build().facts
    assert facts["predicts"] == "label (2 classes)"
    assert facts["class shares"].startswith("low ")
    assert facts["left out"] == "y (dropped by --data.drop)"
    assert facts["always the largest class"].endswith("right")


def test_exhibits_of_classes_numbers_and_the_plane() -> None:
    for name, kinds in {
        "mlp-moons": ["confusion", "reliability", "table", "regions", "points", "table"],
        "mlp-wine": ["confusion", "reliability", "table", "regions", "table"],
        "mlp-csv": ["against", "table"],
    }.items():
        parts = recipes.get(name).build()
        with torch.no_grad():
            exhibits = parts.exhibits()  # type: ignore[misc]
        assert [e.kind for e in exhibits] == kinds
    against, columns = exhibits
    assert len(against.content["true"]) == parts.facts["validation records"]
    assert [row[1] for row in columns.content["rows"]] == ["number", "category", "truth", "number", "date"]


def test_regions_are_what_the_model_answers() -> None:
    """At the grid cell nearest to a validation record of the moons, the winner is the class the model gives it."""
    parts = recipes.get("mlp-moons").build()
    with torch.no_grad():
        (regions,) = (e.content for e in parts.exhibits() if e.kind == "regions")  # type: ignore[misc]
        batch = next(iter(parts.valid))
        called = parts.model(batch["x"]).argmax(-1)
    lo = torch.tensor([regions["x"][0], regions["y"][0]])
    hi = torch.tensor([regions["x"][1], regions["y"][1]])
    winner = torch.tensor(regions["winner"])
    cell = ((batch["x"] - lo) / (hi - lo) * (len(winner) - 1)).round().long()
    agree = (winner[cell[:, 1], cell[:, 0]] == called).float().mean()
    assert agree > 0.97


@pytest.mark.system("class-imbalance")
@pytest.mark.system("class-imbalance", "true-frequencies")
def test_balanced_batches_then_true_frequencies() -> None:
    recipe = replace(SMALL, balance=ClassBalance("batches", 0.5), data=Table(embedded="breast-cancer"))
    stream = recipe.build().stream
    shares = [next(stream)["y"].float().mean() for _ in range(4)]
    assert [float(s) for s in shares[:2]] == [0.5, 0.5]
    assert torch.stack(shares[2:]).mean() != 0.5
    weighted = replace(recipe, balance=ClassBalance("weights")).build().task
    close(weighted.weight[recipe.data.read().train.y].mean(), torch.tensor(1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": MLPConfig(inputs=5)}, "--model.inputs: the table gives 4"),
        ({"model": MLPConfig(head="softmax")}, "--model.head softmax"),
        ({"balance": ClassBalance("weights"), "data": Table(embedded="diabetes")}, "is a number, it has no classes"),
        ({"balance": ClassBalance("batches", 1.0)}, "--balance.calibrate 1.0"),
        ({"balance": ClassBalance("batches")}, "use a multiple of 3"),
        ({"loop": Loop(batch=16, accumulate=3)}, "does not divide into --accumulate 3"),
        ({"balance": ClassBalance("batches"), "data": Table(embedded="iris", drop_last=True)}, "--data.drop-last"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        replace(SMALL, **changes).build()


def test_a_batch_is_never_more_than_the_data() -> None:
    parts = replace(SMALL, loop=Loop(batch=1000)).build()
    assert len(next(parts.stream)["y"]) == parts.units_per_batch == parts.facts["training records"]


@pytest.mark.system("training-loop", "drop-last")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_rest_of_an_epoch_can_be_dropped(accumulate: int) -> None:
    """105 irises in batches of 16: six batches an epoch, nine records left out, others in every epoch."""
    recipe = replace(SMALL, data=Table(embedded="iris", drop_last=True), loop=Loop(batch=16, accumulate=accumulate))
    parts = recipe.build()
    assert parts.facts["training records"] == 105
    epochs = [[next(parts.stream)["ids"] for _ in range(6 * accumulate)] for _ in range(3)]
    seen = [set(torch.cat(epoch).tolist()) for epoch in epochs]
    assert [len(ids) for ids in seen] == [96, 96, 96]
    assert seen[0] != seen[1] != seen[2]
    kept = replace(recipe, data=Table(embedded="iris")).build().stream
    first = torch.cat([next(kept)["ids"] for _ in range(7 * accumulate)]).tolist()
    assert len(set(first[:105])) == 105  # without the flag the seventh batch holds the nine, and seven of the next
    assert seen[0] == set(first[:96])


@pytest.mark.system("training-loop", "drop-last")
def test_a_run_that_drops_its_rest_resumes_to_the_bit(tmp_path: Path) -> None:
    """Six batches an epoch: the run stops in the second and is taken up there."""
    dropping = replace(SMALL, data=Table(embedded="iris", drop_last=True), schedule=Constant())
    short, long = (replace(dropping, loop=Loop(steps=n, batch=16, eval_every=4, threads=1)) for n in (8, 16))
    whole = train(long, tmp_path / "whole")
    train(short, tmp_path / "parts")
    parts = train(long, tmp_path / "parts", resume=True)
    kept = train(replace(long, data=Table(embedded="iris")), tmp_path / "kept")
    assert weights(whole) == weights(parts) != weights(kept)
    assert from_json(to_json(long)) == long
